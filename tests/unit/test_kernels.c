/*
 * Every row of the kernel table keeps the contract of kernel.h, for a set of
 * problems on every device preset: no kernel is named here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "map_template.h"

static const char *const problems[] = {
    "n2c8h7w7k8r3s3p1",
    "n2c8h7w7k8r3s3p1_nhwc",
    "n4c16h12w12k32r3s3p1_fp32",
    "n4c16h12w12k32r3s3p1_nhwc_fp32",
    "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4",
    "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4_nhwc",
    "n2c6h9w9k6r3s3u2p1g6_x16_w16_dy16_dw16_db16_dx16_dylog3_dxlog5",
    "n2c6h9w9k6r3s3u2p1g6_nhwc_dw16_db16_dx16_inf_scale0",
    "n0c4h5w5k4r1s1",
    "n1c16h2048w2048k16r5s5",
};

static const char *const presets[] = {"cpu", "cpu_avx2", "gpu", "sm_80",
                                      "sm_90"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One use of a kernel, and words for messages. */
typedef struct use {
    const clconv_kernel *kernel;
    const char *problem_text, *device_text;
    clconv_problem problem;
    clconv_device device;
    int values[CLCONV_MAX_PARAMS];
    clconv_task task;
} use;

#define ON(u) (u)->kernel->name, (u)->problem_text, (u)->device_text
#define WHERE "%s, %s on %s: "

static void make_use(const clconv_kernel *k, const char *problem,
                     const char *device, bool emulated, use *out)
{
    clconv_desc desc;
    *out = (use){.kernel = k, .problem_text = problem, .device_text = device};
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s", problem);
    cr_assert_eq(clconv_problem_init(&desc, &out->problem), CLCONV_OK);
    cr_assert(clconv_device_preset(device, &out->device), "%s", device);
    if (emulated)
        clconv_device_emulate(&out->device, CLCONV_UNIT_MMA_M16N8K16);
    out->task = (clconv_task){
        .problem = &out->problem, .device = &out->device, .values = out->values};
}

/* The copies that the values want, as the planner would grant them. */
static unsigned granted(const clconv_task *t, unsigned wanted)
{
    for (int tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        if (!clconv_problem_casts(t->problem, (clconv_tensor)tensor))
            wanted &= ~CLCONV_BIT(tensor);
        if (t->problem->math != CLCONV_MIXED)
            wanted &= ~CLCONV_PACKED(tensor);
    }
    return wanted;
}

/* Casts that write these copies plain, packed, and in both forms. */
static void each_form(use *u, unsigned reads, unsigned copies,
                      void (*check)(use *u))
{
    const unsigned forms[] = {CLCONV_BIT(0), CLCONV_PACKED(0),
                              CLCONV_BIT(0) | CLCONV_PACKED(0)};
    clconv_task *t = &u->task;
    t->reads = reads;
    for (size_t i = 0; i < (copies ? COUNT(forms) : 1); ++i) {
        t->copies = granted(t, copies * forms[i]);
        t->bias = false;
        check(u);
        t->bias = true;
        check(u);
        t->finishes_bias = true;
        check(u);
        t->finishes_bias = false;
    }
}

/* Calls check for each task that a planner makes of these values. */
static void each_task(use *u, void (*check)(use *u))
{
    clconv_task *t = &u->task;
    t->baked = clconv_kernel_bakes(u->kernel, u->values);
    if (u->kernel->role != CLCONV_ROLE_CAST) {
        t->copies = granted(t, u->kernel->wants_copies(t));
        check(u);
        t->finishes_bias =
            u->kernel->finishes_bias && u->kernel->finishes_bias(t);
        if (t->finishes_bias)
            check(u);
        t->finishes_bias = false;
        return;
    }
    for (unsigned reads = 1; reads < 8; reads += 2)
        for (unsigned copies = 0; copies < 8; ++copies)
            each_form(u, reads, copies & reads, check);
}

/* The defaults, and if the kernel offers it the same baked into the text. */
static void each_shape(use *u, void (*check)(use *u))
{
    static const char baked[] = "shape=baked";
    clconv_text why = CLCONV_TEXT_EMPTY;
    u->kernel->defaults(&u->problem, &u->device, u->values);
    each_task(u, check);
    if (clconv_param_parse(u->kernel->params, u->kernel->param_count, baked,
                           strlen(baked), u->values, &why))
        each_task(u, check);
    clconv_text_free(&why);
}

/* Calls check for every problem and device that a kernel covers, with its
 * defaults. */
static int each_default(void (*check)(use *u))
{
    int covered = 0;
    for (int k = 0; k < clconv_kernel_count; ++k)
        for (size_t p = 0; p < COUNT(problems); ++p)
            for (size_t d = 0; d <= COUNT(presets); ++d) {
                bool emulated = d == COUNT(presets);
                use u;
                make_use(clconv_kernels[k], problems[p],
                         emulated ? "cpu" : presets[d], emulated, &u);
                if (!u.kernel->covers(&u.problem, &u.device))
                    continue;
                ++covered;
                each_shape(&u, check);
            }
    return covered;
}

/* ---- Defaults --------------------------------------------------------- */

static void check_legal(use *u)
{
    cr_assert(u->kernel->legal(&u->task), WHERE "defaults are not legal", ON(u));
    cr_assert_leq(u->kernel->scratch(&u->task), u->device.max_allocation,
                  WHERE "scratch", ON(u));
}

static bool in_table(const clconv_param *p, int value)
{
    for (int i = 0; i < p->count; ++i)
        if (p->values[i] == value)
            return true;
    return false;
}

static void check_known(use *u)
{
    for (int i = 0; i < u->kernel->param_count; ++i)
        cr_assert(in_table(&u->kernel->params[i], u->values[i]),
                  WHERE "%s has no value %d", ON(u), u->kernel->params[i].name,
                  u->values[i]);
}

Test(kernels, defaults_are_legal_where_a_kernel_covers)
{
    cr_assert_gt(each_default(check_legal), 0);
    each_default(check_known);
}

Test(kernels, the_generic_ones_cover_every_problem_on_every_device)
{
    static const char *const names[] = {"cast", "bwd_data_generic",
                                        "bwd_weight_generic"};
    for (size_t i = 0; i < COUNT(names); ++i)
        for (size_t p = 0; p < COUNT(problems); ++p)
            for (size_t d = 0; d < COUNT(presets); ++d) {
                const clconv_kernel *k =
                    clconv_kernel_find(names[i], strlen(names[i]));
                use u;
                cr_assert_not_null(k, "%s", names[i]);
                make_use(k, problems[p], presets[d], false, &u);
                cr_assert(k->covers(&u.problem, &u.device), WHERE "not covered",
                          ON(&u));
            }
}

/* ---- Passes ----------------------------------------------------------- */

/* A map is encoded once for the problem's images; a call puts in its own. */
static void check_same_map(const use *u, clconv_tensor_map a,
                           clconv_tensor_map b)
{
    uint64_t a_word[CLCONV_TENSOR_MAP_WORDS], b_word[CLCONV_TENSOR_MAP_WORDS];
    a.size[3] = b.size[3] = clconv_map_images(&a);
    cr_assert(clconv_tensor_map_legal(&a), WHERE "a map", ON(u));
    clconv_tensor_map_describe(&a, a_word);
    clconv_tensor_map_describe(&b, b_word);
    cr_assert_arr_eq(a_word, b_word, sizeof a_word,
                     WHERE "more of a map than its images depends on the batch",
                     ON(u));
}

static void check_same_pass(const use *u, const clconv_pass *a,
                            const clconv_pass *b)
{
    cr_assert_str_eq(a->entry, b->entry, WHERE "entry", ON(u));
    cr_assert_eq(a->arg_count, b->arg_count, WHERE "arg_count", ON(u));
    cr_assert_eq(a->local, b->local, WHERE "local", ON(u));
    cr_assert_eq(a->serves, b->serves, WHERE "serves", ON(u));
    cr_assert_eq(a->counts, b->counts, WHERE "counts", ON(u));
    cr_assert_eq(a->unless, b->unless, WHERE "unless", ON(u));
    for (int i = 0; i < a->arg_count; ++i) {
        cr_assert_eq(a->args[i].kind, b->args[i].kind, WHERE "arg", ON(u));
        cr_assert_eq(a->args[i].tensor, b->args[i].tensor, WHERE "arg", ON(u));
        if (a->args[i].kind == CLCONV_ARG_MAP && a->groups > 0)
            check_same_map(u, a->map[a->args[i].tensor],
                           b->map[a->args[i].tensor]);
    }
}

static void check_passes(use *u)
{
    clconv_pass whole[CLCONV_MAX_PASSES], none[CLCONV_MAX_PASSES];
    int count = u->kernel->passes(&u->task, u->problem.n, whole);
    cr_assert(count >= 1 && count <= CLCONV_MAX_PASSES, WHERE "%d passes",
              ON(u), count);
    cr_assert_eq(u->kernel->passes(&u->task, 0, none), count,
                 WHERE "the number of passes depends on the batch", ON(u));
    for (int i = 0; i < count; ++i) {
        const clconv_pass *pass = &whole[i];
        check_same_pass(u, pass, &none[i]);
        cr_assert(
            strncmp(pass->entry, u->kernel->name, strlen(u->kernel->name)) == 0,
            WHERE "entry %s", ON(u), pass->entry);
        cr_assert(pass->arg_count >= 1 && pass->arg_count <= CLCONV_MAX_ARGS,
                  WHERE "%d args", ON(u), pass->arg_count);
        cr_assert(pass->local >= 1 && pass->local <= u->device.max_work_group,
                  WHERE "local %zu", ON(u), pass->local);
        cr_assert(pass->serves || pass->counts, WHERE "%s serves nothing",
                  ON(u), pass->entry);
    }
}

Test(kernels, passes_do_not_depend_on_the_batch_and_fit_the_device)
{
    cr_assert_gt(each_default(check_passes), 0);
}

/* ---- Cost ------------------------------------------------------------- */

/* How much faster than the fp32 arithmetic that costs are counted in a
 * device's fastest matrix unit is: 990 to 67 TFLOP/s on Hopper, 1024 and 512 to
 * 128 multiply-adds a cycle before. */
static double peak_of(const clconv_device *d)
{
    if (clconv_device_has_unit(d, CLCONV_UNIT_WGMMA))
        return 15;
    if (clconv_device_has_unit(d, CLCONV_UNIT_MMA_M16N8K16))
        return 8;
    return clconv_device_has_unit(d, CLCONV_UNIT_MMA_M16N8K8) ? 4 : 1;
}

/* No kernel beats the device's peak. */
static void check_cost(use *u)
{
    if (u->kernel->role == CLCONV_ROLE_CAST)
        return;
    cr_assert_not_null(u->kernel->cost, WHERE "no cost", ON(u));
    double cost = u->kernel->cost(&u->task);
    cr_assert(isfinite(cost), WHERE "cost %g", ON(u), cost);
    if (!u->device.unit_emulated)
        cr_assert_geq(
            cost, clconv_problem_flops(&u->problem) / 2 / peak_of(&u->device),
            WHERE "cost %g", ON(u), cost);
}

Test(kernels, cost_at_least_what_the_multiplications_take)
{
    cr_assert_gt(each_default(check_cost), 0);
}

/* ---- Source ----------------------------------------------------------- */

static char *source_of(const use *u)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    char *source = clconv_kernel_source(u->kernel, &u->task, &why);
    cr_assert_not_null(source, WHERE "%s", ON(u),
                       why.data ? why.data : "no source");
    clconv_text_free(&why);
    return source;
}

/* Holes left open, and preprocessor lines other than #pragma. */
static void check_text(const use *u, const char *source)
{
    cr_assert_null(strchr(source, '$'), WHERE "a hole is left", ON(u));
    for (const char *s = source; (s = strchr(s, '#')) != NULL; ++s)
        cr_assert(strncmp(s, "#pragma ", 8) == 0,
                  WHERE "a preprocessor line: %.30s", ON(u), s);
}

static void check_entries(const use *u, const char *source)
{
    clconv_pass passes[CLCONV_MAX_PASSES];
    int count = u->kernel->passes(&u->task, u->problem.n, passes);
    for (int i = 0; i < count; ++i) {
        char head[128];
        snprintf(head, sizeof head, "void %s(", passes[i].entry);
        cr_assert_not_null(strstr(source, head), WHERE "no entry %s", ON(u),
                           passes[i].entry);
    }
}

static void check_source(use *u)
{
    char *source = source_of(u);
    check_text(u, source);
    check_entries(u, source);
    free(source);
}

Test(kernels, emit_every_entry_and_no_preprocessor_line)
{
    cr_assert_gt(each_default(check_source), 0);
}

/* Members, one a line, of the struct that ends so in source; 0: none does. */
static int members_of(const char *source, const char *struct_end)
{
    static const char head[] = "typedef struct {\n";
    const char *start = NULL, *end = strstr(source, struct_end);
    for (const char *s = source; end && (s = strstr(s, head)) && s < end; ++s)
        start = s + strlen(head);
    int count = 0;
    for (const char *s = start; s && s < end; ++s)
        count += *s == '\n';
    return count;
}

static void check_members(const use *u, const clconv_pass *pass,
                          const char *source)
{
    for (int i = 0; i < pass->arg_count; ++i) {
        const char *struct_end = NULL;
        if (pass->args[i].kind == CLCONV_ARG_SHAPE)
            struct_end = "} shape_t;";
        if (pass->args[i].kind == CLCONV_ARG_CALL)
            struct_end = "} call_t;";
        if (struct_end)
            cr_assert_eq(pass->shape_count, members_of(source, struct_end),
                         WHERE "%s", ON(u), pass->entry);
    }
}

static void check_shape(use *u)
{
    char *source = source_of(u);
    clconv_pass passes[CLCONV_MAX_PASSES];
    int count = u->kernel->passes(&u->task, u->problem.n, passes);
    for (int i = 0; i < count; ++i)
        check_members(u, &passes[i], source);
    free(source);
}

Test(kernels, launch_with_as_many_sizes_as_the_text_declares)
{
    cr_assert_gt(each_default(check_shape), 0);
}

/* Halves are read as such where the device knows the type, else through
 * vload_half. */
Test(kernels, read_halves_natively_where_the_device_can)
{
    static const char pragma[] =
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
    static const char native[] = "convert_float16(vload16(0, p + i))";
    const clconv_kernel *k = clconv_kernel_find("bwd_weight_generic", 18);
    for (int has_fp16 = 0; has_fp16 < 2; ++has_fp16) {
        use u;
        make_use(k, "n2c8h7w7k8r3s3p1_x16_dy16", "cpu", false, &u);
        u.device.has_fp16 = has_fp16;
        k->defaults(&u.problem, &u.device, u.values);
        char *source = source_of(&u);
        bool enabled = strncmp(source, pragma, strlen(pragma)) == 0;
        cr_assert_eq(enabled, has_fp16);
        cr_assert_eq(strstr(source, native) != NULL, has_fp16);
        cr_assert_eq(strstr(source, "vload_half") == NULL, has_fp16);
        free(source);
    }
}

/* All values of a kernel's parameters for one problem and device. */
static void each_value(use *u)
{
    const clconv_kernel *k = u->kernel;
    if (!k->covers(&u->problem, &u->device))
        return;
    clconv_param_first(k->params, k->param_count, u->values);
    do {
        if (k->legal(&u->task))
            each_task(u, check_source);
    } while (clconv_param_next(k->params, k->param_count, u->values));
}

Test(kernels, emit_every_legal_combination_of_values)
{
    for (int k = 0; k < clconv_kernel_count; ++k)
        for (size_t p = 0; p < 8; p += 3)
            for (int emulated = 0; emulated < 2; ++emulated) {
                use u;
                make_use(clconv_kernels[k], problems[p], "cpu", emulated, &u);
                each_value(&u);
            }
}

/* With its first values, the kernel of that name is one program for both. */
static void expect_one_source(const char *name, const char *small_problem,
                              const char *large_problem)
{
    use small, large;
    const clconv_kernel *k = clconv_kernel_find(name, strlen(name));
    make_use(k, small_problem, "cpu", false, &small);
    make_use(k, large_problem, "cpu", false, &large);
    clconv_param_first(k->params, k->param_count, small.values);
    clconv_param_first(k->params, k->param_count, large.values);
    char *a = source_of(&small), *b = source_of(&large);
    cr_assert_str_eq(a, b, "%s for %s and %s", name, small_problem,
                     large_problem);
    free(a);
    free(b);
}

/* The generic kernels, the panels and the cast are one program for every
 * shape. */
Test(kernels, generic_source_does_not_depend_on_sizes)
{
    static const char *const names[] = {"cast", "bwd_data_generic",
                                        "bwd_weight_generic", "bwd_data_panel",
                                        "bwd_weight_panel"};
    for (size_t i = 0; i < COUNT(names); ++i)
        expect_one_source(names[i], "n2c8h7w7k8r3s3p1",
                          "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4");
}

/* Those on local memory are one for all shapes whose channels come in fours,
 * and one for all whose do not. */
Test(kernels, local_source_depends_on_fours_of_channels_alone)
{
    static const char *const names[] = {"bwd_data_local", "bwd_weight_local"};
    static const char *const pairs[][2] = {
        {"n2c8h7w7k8r3s3p1", "n3c32h9w10k16r3s5u2x3p1x0x2x1d2x1g4"},
        {"n2c9h7w7k6r3s3p1", "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4"},
        {"n2c8h7w7k8r3s3p1_nhwc", "n3c32h9w10k16r3s5u2x3p1x0x2x1d2x1g4_nhwc"},
        {"n2c9h7w7k6r3s3p1_nhwc", "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4_nhwc"},
    };
    for (size_t i = 0; i < COUNT(names); ++i)
        for (size_t j = 0; j < COUNT(pairs); ++j)
            expect_one_source(names[i], pairs[j][0], pairs[j][1]);
}

/* dX's terms are padded to whole blocks of channels: 16 times as many here. */
Test(kernels, local_leaves_sums_that_padding_makes_too_long)
{
    use u;
    const clconv_kernel *k = clconv_kernel_find("bwd_data_local", 14);
    make_use(k, "n1c1h8000w8000k1r8000s8000", "gpu", false, &u);
    cr_assert(k->covers(&u.problem, &u.device));
    make_use(k, "n1c1h9000w9000k1r9000s9000", "gpu", false, &u);
    cr_assert_not(k->covers(&u.problem, &u.device));
}

/* Of the problems of the same types and exponents, a CPU's default plan needs
 * few programs: one for 3 x 3, one for 1 x 1, one for all other filters. */
Test(kernels, default_tile_source_does_not_depend_on_sizes)
{
    static const char *const names[] = {"bwd_data_tile", "bwd_weight_tile"};
    static const char *const pairs[][2] = {
        {"n2c64h28w28k64r3s3p1", "n7c96h61w57k70r3s3p0x1x2x1d1x2"},
        {"n2c64h28w28k64r1s1", "n7c96h61w57k70r1s1p2x1x2x3"},
        {"n2c64h28w28k64r1s3", "n7c96h61w57k70r5s7p2x1x2x3"},
    };
    for (size_t i = 0; i < COUNT(names); ++i)
        for (size_t j = 0; j < COUNT(pairs); ++j) {
            use u[2];
            char *text[2];
            for (int n = 0; n < 2; ++n) {
                make_use(clconv_kernel_find(names[i], strlen(names[i])),
                         pairs[j][n], "cpu", false, &u[n]);
                u[n].kernel->defaults(&u[n].problem, &u[n].device, u[n].values);
                text[n] = source_of(&u[n]);
            }
            cr_assert_str_eq(text[0], text[1], "%s for %s and %s", names[i],
                             pairs[j][0], pairs[j][1]);
            free(text[0]);
            free(text[1]);
        }
}
