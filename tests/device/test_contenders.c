/*
 * What clconv-bench compares with each other: every contender that was built
 * computes the gradients of the definition, or says that it cannot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contender.h"
#include "naive.h"
#include "random.h"

static host device;

static void open_device(void)
{
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &device), HOST_OK);
}

static void close_device(void)
{
    host_close(&device);
}

TestSuite(contenders, .init = open_device, .fini = close_device);

/* A problem with its data and its gradients. */
typedef struct fixture {
    const char *problem;
    clconv_desc desc;
    size_t x_count, w_count, dy_count;
    float *x, *w, *dy;
    double *dw, *db, *dx;
} fixture;

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    cr_assert_not_null(p);
    return p;
}

static float *random_floats(random_source *random, size_t count)
{
    float *values = allocate(count, sizeof(*values));

    random_fill_normal(random, count, values);
    return values;
}

static fixture fixture_new(const char *problem)
{
    fixture f = {.problem = problem};
    random_source random = random_seeded(11);

    cr_assert_eq(clconv_desc_parse(problem, &f.desc), CLCONV_OK, "%s", problem);
    f.x_count = (size_t)naive_x_elements(&f.desc, f.desc.n);
    f.w_count = (size_t)naive_w_elements(&f.desc);
    f.dy_count = (size_t)naive_dy_elements(&f.desc, f.desc.n);
    f.x = random_floats(&random, f.x_count);
    f.w = random_floats(&random, f.w_count);
    f.dy = random_floats(&random, f.dy_count);
    for (size_t i = 0; i < f.dy_count; ++i)
        f.dy[i] *= 1e-3F;
    f.dw = allocate(f.w_count, sizeof(double));
    f.db = allocate((size_t)f.desc.k, sizeof(double));
    f.dx = allocate(f.x_count, sizeof(double));
    naive_backward(&f.desc, f.desc.n,
                   &(naive_data){.x = f.x, .w = f.w, .dy = f.dy},
                   &(naive_result){.dw = f.dw, .db = f.db, .dx = f.dx});
    return f;
}

static void fixture_free(fixture *f)
{
    free(f->x);
    free(f->w);
    free(f->dy);
    free(f->dw);
    free(f->db);
    free(f->dx);
}

static contender_setup setup_of(const fixture *f, unsigned ops, int sets)
{
    return (contender_setup){.host = &device,
                             .desc = &f->desc,
                             .ops = ops,
                             .sets = sets,
                             .data = {f->x, f->w, f->dy}};
}

static const contender *contender_named(const char *name)
{
    for (int i = 0; i < contender_count; ++i) {
        if (strcmp(contenders[i]->name, name) == 0)
            return contenders[i];
    }
    cr_assert_fail("no contender %s", name);
    return NULL;
}

/* NaN where an element was not written. */
static double relative_error(const float *got, const double *expected,
                             size_t count)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < count; ++i) {
        double difference = (double)got[i] - expected[i];

        error += difference * difference;
        norm += expected[i] * expected[i];
    }
    return sqrt(error / norm);
}

static void expect_near(const contender *c, const fixture *f, const char *name,
                        const float *got, const double *expected, size_t count,
                        double bound)
{
    double error = relative_error(got, expected, count);

    cr_expect(error <= bound, "%s, %s: %s is off by %g, allowed is %g", c->name,
              f->problem, name, error, bound);
}

/* Sums are short here: fp32 is near, whoever computes. */
static double bound_of(const contender *c)
{
    bool fp32 = c->bound <= 1e-4;

    return fp32 ? 1e-5 : c->bound;
}

static void expect_gradients(const contender *c, const fixture *f, void *state,
                             int set, unsigned ops)
{
    float *dw = allocate(f->w_count, sizeof(float));
    float *db = allocate((size_t)f->desc.k, sizeof(float));
    float *dx = allocate(f->x_count, sizeof(float));
    contender_results out = {.dw = ops & CLCONV_OP_DW ? dw : NULL,
                             .db = ops & CLCONV_OP_DB ? db : NULL,
                             .dx = ops & CLCONV_OP_DX ? dx : NULL};
    double bound = bound_of(c);

    cr_assert(c->read(state, set, &out), "%s, %s", c->name, f->problem);
    if (out.dw)
        expect_near(c, f, "dw", dw, f->dw, f->w_count, bound);
    if (out.db)
        expect_near(c, f, "db", db, f->db, (size_t)f->desc.k, bound);
    if (out.dx)
        expect_near(c, f, "dx", dx, f->dx, f->x_count, bound);
    free(dw);
    free(db);
    free(dx);
}

/* ---- Results -------------------------------------------------------------- */

enum { SETS = 2 };

/* Runs a contender on one problem. False: it says that it cannot. */
static bool check_problem(const contender *c, const char *problem, unsigned ops)
{
    fixture f = fixture_new(problem);
    contender_setup setup = setup_of(&f, ops, SETS);
    char why[256] = "";
    void *state = NULL;
    contender_status status = c->open(&setup, &state, why);

    cr_assert_neq(status, CONTENDER_FAILED, "%s, %s: %s", c->name, problem, why);
    if (status == CONTENDER_OK) {
        for (int set = 0; set < SETS; ++set)
            cr_assert(c->enqueue(state, set), "%s, %s", c->name, problem);
        cr_assert(c->wait(state), "%s, %s", c->name, problem);
        for (int set = 0; set < SETS; ++set)
            expect_gradients(c, &f, state, set, ops);
        c->close(state);
    } else {
        cr_expect_str_not_empty(why, "%s, %s", c->name, problem);
        cr_expect_null(state, "%s, %s", c->name, problem);
    }
    fixture_free(&f);
    return status == CONTENDER_OK;
}

/* Which problems must a contender be able to do, where it was built? */
typedef enum reach { EVERYTHING, PLAIN_NCHW, WHAT_THE_DEVICE_HAS } reach;

static void check_contender(const char *name, reach expected)
{
    static const struct {
        const char *problem;
        bool plain_nchw; /* one group, pads alike; stride and dilation coprime */
    } rows[] = {
        {"n2c5h9w7k6r3s3p1", true},
        {"n3c4h8w8k16r1s1", true},
        {"n2c8h9w10k4r1s1u2", true},
        {"n2c3h21w19k8r7s7u2p3", true},
        {"n2c4h13w11k6r3s3p2d2", true},
        {"n2c6h12w9k5r3s2u2x1p1x0", true},
        {"n1c3h6w6k4r3s3u3d2p2", true},
        {"n2c3h9w8k4r3s3u2d2p1", false},
        {"n2c64h7w7k64r3s3p1g32", false},
        {"n2c16h9w9k16r3s3u2p1g16", false},
        {"n2c4h8w8k6r3s3p1x0x2x1", false},
        {"n2c5h9w7k6r3s3p1_nhwc", false},
        {"n2c8h7w6k16r3s3u2p1g4_nhwc", false},
    };
    const contender *c = contender_named(name);

    if (!c->version())
        cr_skip("%s: %s", name, c->missing);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        bool done = check_problem(c, rows[i].problem, CLCONV_OP_BACKWARD);

        if (expected == EVERYTHING)
            cr_expect(done, "%s refuses %s", name, rows[i].problem);
        else if (expected == PLAIN_NCHW)
            cr_expect_eq(done, rows[i].plain_nchw, "%s, %s", name,
                         rows[i].problem);
    }
    for (unsigned op = CLCONV_OP_DW; op <= CLCONV_OP_DX; op <<= 1)
        check_problem(c, rows[0].problem, op);
}

Test(contenders, mixed_gives_the_gradients)
{
    check_contender("mixed", EVERYTHING);
}

Test(contenders, fp16_tensors_give_the_gradients)
{
    check_contender("fp16", EVERYTHING);
}

Test(contenders, fp32_gives_the_gradients)
{
    check_contender("fp32", EVERYTHING);
}

Test(contenders, mixed_with_the_report_gives_the_gradients)
{
    check_contender("report", EVERYTHING);
}

Test(contenders, onednn_gives_the_gradients)
{
    check_contender("onednn", device.is_cpu ? EVERYTHING : WHAT_THE_DEVICE_HAS);
}

Test(contenders, onednn_in_bf16_gives_the_gradients)
{
    check_contender("onednn-bf16", WHAT_THE_DEVICE_HAS);
}

Test(contenders, clblast_gives_the_gradients)
{
    check_contender("clblast", PLAIN_NCHW);
}

Test(contenders, clblast_in_fp16_gives_the_gradients)
{
    check_contender("clblast16", WHAT_THE_DEVICE_HAS);
}

/* ---- The table ------------------------------------------------------------ */

static contender_status open_alone(const contender *c, contender_setup setup,
                                   char why[256])
{
    void *state = NULL;
    contender_status status = c->open(&setup, &state, why);

    if (status == CONTENDER_OK)
        c->close(state);
    return status;
}

Test(contenders, onednn_refuses_a_device_that_is_no_cpu)
{
    const contender *c = contender_named("onednn");
    fixture f = fixture_new("n2c5h9w7k6r3s3p1");
    contender_setup setup = setup_of(&f, CLCONV_OP_BACKWARD, 1);
    host gpu = device;
    char why[256] = "";

    gpu.is_cpu = false;
    setup.host = &gpu;
    cr_expect_eq(open_alone(c, setup, why), CONTENDER_UNSUPPORTED);
    cr_expect_str_not_empty(why);
    fixture_free(&f);
}

Test(contenders, a_plan_string_reaches_the_library)
{
    const contender *c = contender_named("fp32");
    fixture f = fixture_new("n2c5h9w7k6r3s3p1");
    contender_setup setup = setup_of(&f, CLCONV_OP_BACKWARD, 1);
    char why[256] = "";
    void *state = NULL;

    setup.plan = "bwd_data_generic;bwd_weight_generic";
    cr_assert_eq(c->open(&setup, &state, why), CONTENDER_OK, "%s", why);
    cr_expect_not_null(strstr(c->variant(state), "bwd_data_generic"), "%s",
                       c->variant(state));
    c->close(state);
    setup.plan = "no_such_kernel";
    cr_expect_eq(open_alone(c, setup, why), CONTENDER_FAILED);
    cr_expect_not_null(strstr(why, "no_such_kernel"), "%s", why);
    fixture_free(&f);
}

Test(contenders, each_has_a_name_of_its_own_and_a_version_or_a_reason)
{
    for (int i = 0; i < contender_count; ++i) {
        const contender *c = contenders[i];

        cr_expect_eq(contender_named(c->name), c, "%s stands twice", c->name);
        cr_expect_str_not_empty(c->summary, "%s", c->name);
        if (c->version())
            cr_expect(c->bound > 0 && c->bound <= 0.1, "%s", c->name);
        else
            cr_expect_str_not_empty(c->missing, "%s", c->name);
    }
}
