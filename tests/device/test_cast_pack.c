/*
 * The cast's packed copies: every element and all padding bit for bit, the
 * counts, and dbias, by a plan that is the cast alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl_build.h"
#include "cl_launch.h"
#include "cl_query.h"
#include "counts.h"
#include "host.h"
#include "pack.h"
#include "random.h"

#define OPERANDS (CLCONV_W + 1)
#define ALL                                                                    \
    (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W))
#define ALL_PACKED (ALL << 3)
#define POISON 0xffff

/* ---- A plan that only casts -------------------------------------------- */

typedef struct stage {
    const char *text; /* problem and plan, for messages */
    host host;
    clconv_device facts;
    clconv_steps steps;
    clconv_launch *launch;
    clconv_call call;
    float *value[OPERANDS]; /* as stored: an fp16 tensor's values are fp16's */
    float *db;
    uint16_t *workspace;
    clconv_report report;
} stage;

static void plan_cast(stage *s, const char *problem, const char *plan,
                      unsigned copies)
{
    clconv_desc desc;
    clconv_choice choice[CLCONV_ROLES];
    clconv_step *step = &s->steps.step[0];
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s", problem);
    cr_assert_eq(clconv_problem_init(&desc, &s->steps.problem), CLCONV_OK);
    cr_assert_eq(clconv_choices_parse(plan, choice), CLCONV_OK, "%s", plan);
    const clconv_choice *cast = &choice[CLCONV_ROLE_CAST];
    *step = (clconv_step){
        .kernel = cast->kernel, .copies = copies, .reads = ALL, .bias = true};
    cast->kernel->defaults(&s->steps.problem, &s->facts, step->values);
    for (int i = 0; i < cast->kernel->param_count; ++i)
        if (cast->given[i])
            step->values[i] = cast->values[i];
    s->steps.ops = CLCONV_OP_BACKWARD;
    s->steps.count = 1;
    clconv_steps_lay_out(&s->steps, &s->facts);
}

static void build(stage *s)
{
    const clconv_log quiet = {NULL, NULL};
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_task task = clconv_step_task(&s->steps, 0, &s->facts);
    cl_program program;
    cr_assert(s->steps.step[0].kernel->legal(&task), "%s", s->text);
    char *source = clconv_kernel_source(s->steps.step[0].kernel, &task, &why);
    cr_assert_not_null(source, "%s: %s", s->text, why.data);
    cr_assert_eq(clconv_build_source(s->host.context, s->host.device, "cast",
                                     source, &quiet, &program),
                 CLCONV_OK, "%s: %s", s->text, clconv_last_error());
    free(source);
    cr_assert_eq(clconv_launch_new(s->host.context, s->host.device, &s->steps,
                                   &s->facts, &s->launch),
                 CLCONV_OK);
    cr_assert_eq(clconv_launch_add(s->launch, 0, program), CLCONV_OK, "%s: %s",
                 s->text, clconv_last_error());
}

static void open_stage(stage *s, const char *problem, const char *plan,
                       unsigned copies)
{
    *s = (stage){.text = problem};
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &s->host),
                 HOST_OK);
    cr_assert_eq(
        clconv_query_device(s->host.context, s->host.device, false, &s->facts),
        CLCONV_OK);
    plan_cast(s, problem, plan, copies);
    build(s);
    s->workspace = malloc(s->steps.workspace + 1);
    s->db = calloc((size_t)s->steps.problem.k, sizeof *s->db);
    cr_assert(s->workspace && s->db);
}

static void close_stage(stage *s)
{
    clconv_launch_free(s->launch);
    for (int t = 0; t < OPERANDS; ++t) {
        free(s->value[t]);
        if (s->call.tensor[t].mem)
            clReleaseMemObject(s->call.tensor[t].mem);
    }
    free(s->workspace);
    free(s->db);
    host_close(&s->host);
}

/* ---- Its tensors ------------------------------------------------------- */

/* Random bits, some of them made 0 and some of moderate size, so that every
 * class occurs; none within half a unit beyond fp16's largest. */
static float any_value(random_source *random)
{
    uint32_t bits = (uint32_t)random_bits(random);
    float value;
    if (bits % 7 == 0)
        bits &= 0x80000000u;
    else if (bits % 7 < 6) /* exponents from 2^-37 to 2^10 */
        bits = (bits & 0x807fffffu) | (90u + bits % 48u) << 23;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sums of these are exact. */
static float small_integer(random_source *random)
{
    return (float)random_below(random, 9) - 4.0f;
}

static void fill(stage *s, float (*next)(random_source *random))
{
    random_source random = random_seeded(3);
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        const clconv_problem *p = &s->steps.problem;
        size_t count = (size_t)clconv_problem_elements(p, t);
        uint16_t *half = malloc((count + 1) * sizeof *half);
        float *value = malloc((count + 1) * sizeof *value);
        cr_assert(half && value);
        for (size_t i = 0; i < count; ++i) {
            value[i] = next(&random);
            half[i] = host_half_from_float(value[i]);
            if (p->type[t] == CLCONV_F16)
                value[i] = host_float_from_half(half[i]);
        }
        const void *data = p->type[t] == CLCONV_F16 ? (void *)half : value;
        s->value[t] = value;
        s->call.tensor[t].mem =
            host_buffer(&s->host, clconv_problem_bytes(p, t), data);
        free(half);
    }
}

/* The workspace is poison before each call. */
static void run(stage *s, int64_t batch)
{
    size_t db_bytes = (size_t)s->steps.problem.k * sizeof *s->db;
    clconv_report zero = {0};
    clconv_call call = s->call;
    call.batch = batch;
    call.wanted = CLCONV_OP_BACKWARD;
    call.workspace.mem = host_buffer(&s->host, s->steps.workspace, NULL);
    call.report.mem = host_buffer(&s->host, sizeof zero, &zero);
    call.tensor[CLCONV_DB].mem = host_buffer(&s->host, db_bytes, NULL);
    cr_assert_eq(
        clconv_launch_run(s->launch, s->host.queue, &call, 0, NULL, NULL),
        CLCONV_OK, "%s: %s", s->text, clconv_last_error());
    cr_assert(host_finish(&s->host));
    host_read(&s->host, call.workspace.mem, 0, s->steps.workspace, s->workspace);
    host_read(&s->host, call.report.mem, 0, sizeof s->report, &s->report);
    host_read(&s->host, call.tensor[CLCONV_DB].mem, 0, db_bytes, s->db);
    clReleaseMemObject(call.workspace.mem);
    clReleaseMemObject(call.report.mem);
    clReleaseMemObject(call.tensor[CLCONV_DB].mem);
}

/* ---- What must be in the copies ---------------------------------------- */

static uint16_t cast(const clconv_problem *p, clconv_tensor t, float value)
{
    int log2 = clconv_problem_cast_log2(p, t);
    if (p->overflow == CLCONV_SATURATE)
        value = counts_cast(value, log2);
    return host_half_from_float(ldexpf(value, log2));
}

static bool same(uint16_t a, uint16_t b)
{
    bool is_nan = (a & 0x7fff) > 0x7c00;
    return is_nan ? (b & 0x7fff) > 0x7c00 : a == b;
}

/* A place in a packed copy; c is the channel within the group. */
typedef struct place {
    int64_t image, group, row, column, c;
} place;

/* The element's bits; 0 for padding; poison past the batch. */
static uint16_t expected(const stage *s, clconv_tensor t, const place *at,
                         int64_t batch)
{
    const clconv_problem *p = &s->steps.problem;
    clconv_strides from = clconv_problem_strides(p, t);
    int64_t channels = t == CLCONV_DY ? p->group_k : p->group_c;
    if (t != CLCONV_W && at->image >= batch)
        return POISON;
    if (at->c >= channels)
        return 0;
    int64_t channel = at->c + (t == CLCONV_W ? 0 : at->group * channels);
    int64_t i = at->image * from.image + channel * from.channel +
                at->row * from.row + at->column * from.column;
    return cast(p, t, s->value[t][i]);
}

/* Of W, group is that of image k, and 0 here. */
static place place_of(const clconv_problem *p, clconv_tensor t, int64_t i)
{
    clconv_pack_strides to = clconv_pack_get_strides(p, t);
    int64_t padded = clconv_pack_channels(p, t);
    return (place){
        .image = i / to.image,
        .row = i % to.image / to.row,
        .column = i % to.row / to.column,
        .group = i % to.column / padded,
        .c = i % padded,
    };
}

static void expect_packed(const stage *s, clconv_tensor t, int64_t batch)
{
    const clconv_problem *p = &s->steps.problem;
    const uint16_t *got = s->workspace + s->steps.packed_offset[t] / 2;
    for (int64_t i = 0; i < clconv_pack_elements(p, t); ++i) {
        place at = place_of(p, t, i);
        uint16_t want = expected(s, t, &at, batch);
        cr_assert(same(want, got[i]),
                  "%s, %lld images: packed %s[%lld][%lld][%lld][%lld][%lld] is "
                  "%04x, not %04x",
                  s->text, (long long)batch, clconv_tensor_name(t),
                  (long long)at.image, (long long)at.row, (long long)at.column,
                  (long long)at.group, (long long)at.c, got[i], want);
    }
}

static void expect_plain(const stage *s, clconv_tensor t, int64_t batch)
{
    clconv_problem p = clconv_call_problem(&s->steps, batch);
    const uint16_t *got = s->workspace + s->steps.copy_offset[t] / 2;
    for (int64_t i = 0; i < clconv_problem_elements(&p, t); ++i) {
        uint16_t want = cast(&p, t, s->value[t][i]);
        cr_assert(same(want, got[i]), "%s: plain %s[%lld] is %04x, not %04x",
                  s->text, clconv_tensor_name(t), (long long)i, got[i], want);
    }
}

static void expect_counted(const stage *s, clconv_tensor t, int64_t batch)
{
    clconv_problem p = clconv_call_problem(&s->steps, batch);
    size_t count = (size_t)clconv_problem_elements(&p, t);
    clconv_counts want =
        counts_of_cast(s->value[t], count, clconv_problem_cast_log2(&p, t));
    double a, b;
    const char *class = counts_difference(&(&s->report.dy)[t], &want, &a, &b);
    cr_assert_null(class, "%s, %lld images: %.0f %s elements of %s, not %.0f",
                   s->text, (long long)batch, a, class, clconv_tensor_name(t),
                   b);
}

static void expect_copies(const stage *s, int64_t batch)
{
    unsigned copies = s->steps.step[0].copies;
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        if (copies & CLCONV_PACKED(t))
            expect_packed(s, t, batch);
        if (copies & CLCONV_BIT(t))
            expect_plain(s, t, batch);
        expect_counted(s, t, batch);
    }
}

/* db of small integers is exact. */
static void expect_bias(const stage *s, int64_t batch)
{
    const clconv_problem *p = &s->steps.problem;
    clconv_strides from = clconv_problem_strides(p, CLCONV_DY);
    int64_t pixels = p->p * p->q;
    for (int64_t k = 0; k < p->k; ++k) {
        double want = 0;
        for (int64_t i = 0; i < batch * pixels; ++i)
            want += (double)s->value[CLCONV_DY][i / pixels * from.image +
                                                k * from.channel +
                                                i % pixels * from.column];
        cr_assert_eq((double)s->db[k], want,
                     "%s, %lld images: db[%lld] is %g, not %g", s->text,
                     (long long)batch, (long long)k, (double)s->db[k], want);
    }
}

static void check(const char *problem, const char *plan, unsigned copies)
{
    stage s;
    open_stage(&s, problem, plan, copies);
    int64_t n = s.steps.problem.n;
    fill(&s, any_value);
    const int64_t batches[] = {n, n - 1, 0};
    for (int i = 0; i < 3; ++i) {
        run(&s, batches[i]);
        expect_copies(&s, batches[i]);
    }
    close_stage(&s);
}

static void check_bias(const char *problem, const char *plan)
{
    stage s;
    open_stage(&s, problem, plan, ALL_PACKED);
    int64_t n = s.steps.problem.n;
    fill(&s, small_integer);
    const int64_t batches[] = {n, n - 1, 0};
    for (int i = 0; i < 3; ++i) {
        run(&s, batches[i]);
        expect_bias(&s, batches[i]);
    }
    close_stage(&s);
}

/* ---- Tests ------------------------------------------------------------- */

static const char *const problems[] = {
    "n2c3h9w7k5r3s3p1",      "n3c45h5w6k1r1s1",    "n2c16h13w11k24r3s3",
    "n2c80h12w12k136r3s3p1", "n2c10h9w7k18r2s3g2", "n1c600h2w3k2r1s1",
    "n2c12h6w5k12r3s3g12",   "n3c8h1w1k1040r1s1",  "n2c64h6w5k96r3s3g4",
};

#define PROBLEMS (sizeof problems / sizeof *problems)

/* tail: what follows the sizes in the problem string. */
static void check_all(const char *tail, const char *plan, unsigned copies)
{
    for (size_t i = 0; i < PROBLEMS; ++i) {
        char problem[96];
        snprintf(problem, sizeof problem, "%s%s", problems[i], tail);
        check(problem, plan, copies);
    }
}

Test(cast_pack, every_element_and_the_padding)
{
    check_all("", "cast", ALL_PACKED);
    check_all("_nhwc", "cast", ALL_PACKED);
}

/* Of 256 work-items, whose programs take PoCL seconds: one for each layout, of
 * odd channels and pixels, and one of whole vectors. */
Test(cast_pack, work_groups)
{
    check("n3c45h5w6k1r1s1", "cast:vec=4,lws=256", ALL_PACKED);
    check("n2c80h12w12k136r3s3p1", "cast:vec=4,lws=256", ALL_PACKED);
    check("n2c10h9w7k18r2s3g2_nhwc", "cast:vec=4,lws=256", ALL_PACKED);
    check("n2c80h12w12k136r3s3p1_nhwc", "cast:vec=4,lws=256", ALL_PACKED);
}

/* The number of images is no part of the text. */
Test(cast_pack, sizes_in_the_text)
{
    check("n2c10h9w7k18r2s3g2", "cast:shape=baked", ALL_PACKED);
    check("n2c64h6w5k96r3s3g4_nhwc", "cast:shape=baked", ALL_PACKED);
    check("n2c80h12w12k136r3s3p1", "cast:vec=4,lws=256,shape=baked", ALL_PACKED);
    check_bias("n2c10h9w7k18r2s3g2_nhwc", "cast:vec=4,lws=256,shape=baked");
}

Test(cast_pack, fp16_tensors)
{
    check_all("_x16_w16_dy16", "cast", ALL_PACKED);
    check_all("_nhwc_x16_dy16", "cast", ALL_PACKED);
    check("n2c80h12w12k136r3s3p1_x16_dy16", "cast:vec=4,lws=256", ALL_PACKED);
}

Test(cast_pack, both_forms_and_some)
{
    unsigned dy = CLCONV_BIT(CLCONV_DY) | CLCONV_PACKED(CLCONV_DY);
    unsigned w = CLCONV_BIT(CLCONV_W) | CLCONV_PACKED(CLCONV_W);
    check_all("", "cast", ALL | ALL_PACKED);
    check_all("_nhwc", "cast", ALL | ALL_PACKED);
    check_all("", "cast", dy | CLCONV_BIT(CLCONV_X));
    check_all("_nhwc", "cast", w | CLCONV_PACKED(CLCONV_X));
    check_all("", "cast", CLCONV_PACKED(CLCONV_X));
    check("n3c45h5w6k1r1s1", "cast:vec=4,lws=256", ALL | ALL_PACKED);
    check("n3c45h5w6k1r1s1_nhwc", "cast:vec=4,lws=256", ALL | ALL_PACKED);
}

/* As in a call that wants dbias alone. */
Test(cast_pack, leaves_out_what_is_not_given)
{
    stage s;
    open_stage(&s, problems[0], "cast", ALL_PACKED);
    fill(&s, any_value);
    for (int t = CLCONV_X; t <= CLCONV_W; ++t) {
        clReleaseMemObject(s.call.tensor[t].mem);
        s.call.tensor[t].mem = NULL;
    }
    run(&s, 2);
    expect_packed(&s, CLCONV_DY, 2);
    expect_packed(&s, CLCONV_X, 0);
    cr_assert_eq(s.workspace[s.steps.packed_offset[CLCONV_W] / 2], POISON);
    cr_assert_eq(s.report.x.nonzero + s.report.w.nonzero, 0);
    close_stage(&s);
}

Test(cast_pack, overflows_to_infinity_where_asked)
{
    check_all("_inf_scale3", "cast", ALL_PACKED);
}

Test(cast_pack, dbias_is_summed_in_the_same_pass)
{
    for (size_t i = 0; i < PROBLEMS; ++i) {
        char nhwc[96];
        snprintf(nhwc, sizeof nhwc, "%s_nhwc", problems[i]);
        check_bias(problems[i], "cast");
        check_bias(nhwc, "cast");
    }
    check_bias("n2c10h9w7k18r2s3g2", "cast:vec=4,lws=256");
    check_bias("n2c10h9w7k18r2s3g2_nhwc", "cast:vec=4,lws=256");
}

/* More partial sums than a work-item adds in one go. */
Test(cast_pack, dbias_of_many_tiles)
{
    check_bias("n70c1h40w40k3r1s1", "cast");
    check_bias("n70c1h40w40k3r1s1_nhwc", "cast:vec=4,lws=256");
}
