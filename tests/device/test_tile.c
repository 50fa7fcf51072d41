/*
 * The register-tiled CPU kernels: exact on small integers for shapes at the
 * edges of tiles, vectors and paddings, whatever their values; NaN goes where
 * it belongs and comes from nowhere else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
#include "naive.h"
#include "rig.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char both[] = "bwd_data_tile;bwd_weight_tile";

static void skip_unless_cpu(void)
{
    host h;
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &h), HOST_OK);
    bool is_cpu = h.is_cpu;
    host_close(&h);
    if (!is_cpu)
        cr_skip_test("these kernels are for CPUs");
}

/* ---- Inputs and what is right ------------------------------------------- */

typedef struct inputs {
    clconv_desc desc;
    float *x, *w, *dy;
    double *dw, *dx; /* of x, w, dy as they are */
} inputs;

static float *small_integers(int64_t count, unsigned seed)
{
    float *values = malloc((size_t)count * sizeof *values);
    cr_assert_not_null(values);
    for (int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 24 & 7) - 3.0f;
    }
    return values;
}

static double *doubles(int64_t count)
{
    double *values = malloc((size_t)count * sizeof *values);
    cr_assert_not_null(values);
    return values;
}

static inputs make_inputs(const char *problem)
{
    inputs in;
    cr_assert_eq(clconv_desc_parse(problem, &in.desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    const clconv_desc *d = &in.desc;
    in.x = small_integers(naive_x_elements(d, d->n), 1);
    in.w = small_integers(naive_w_elements(d), 2);
    in.dy = small_integers(naive_dy_elements(d, d->n), 3);
    in.dw = doubles(naive_w_elements(d));
    in.dx = doubles(naive_x_elements(d, d->n));
    return in;
}

static void compute(inputs *in, int64_t batch)
{
    naive_data data = {.x = in->x, .w = in->w, .dy = in->dy};
    naive_result out = {.dw = in->dw, .dx = in->dx};
    naive_backward(&in->desc, batch, &data, &out);
}

static void free_inputs(inputs *in)
{
    free(in->x);
    free(in->w);
    free(in->dy);
    free(in->dw);
    free(in->dx);
}

static backward_case case_of(const inputs *in, const char *problem,
                             const char *plan)
{
    return (backward_case){.problem = problem,
                           .plan = plan,
                           .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                           .x = in->x,
                           .w = in->w,
                           .dy = in->dy};
}

/* got must be want, and all of it. */
static void expect_exact(const char *problem, const char *plan,
                         const char *output, const float *got,
                         const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        cr_assert((double)got[i] == want[i],
                  "%s, plan %s: %s[%lld] is %g, not %g", problem, plan, output,
                  (long long)i, (double)got[i], want[i]);
}

/* An fp16 output is counted, each element once; another is not. */
static void expect_counts(const char *problem, clconv_type type,
                          const clconv_counts *counts, const double *want,
                          int64_t count)
{
    uint64_t nonzero = 0;
    for (int64_t i = 0; i < count; ++i)
        nonzero += type == CLCONV_F16 && want[i] != 0;
    cr_assert_eq(counts->nonzero, nonzero, "%s: %llu elements counted, not %llu",
                 problem, (unsigned long long)counts->nonzero,
                 (unsigned long long)nonzero);
}

static void expect_case_exact(const char *problem, const char *plan)
{
    inputs in = make_inputs(problem);
    backward_case c = case_of(&in, problem, plan);
    backward_result r;
    compute(&in, in.desc.n);
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    int64_t w_elements = naive_w_elements(&in.desc);
    int64_t x_elements = naive_x_elements(&in.desc, in.desc.n);
    expect_exact(problem, plan, "dw", r.dw, in.dw, w_elements);
    expect_exact(problem, plan, "dx", r.dx, in.dx, x_elements);
    expect_counts(problem, in.desc.dw_type, &r.report.dw, in.dw, w_elements);
    expect_counts(problem, in.desc.dx_type, &r.report.dx, in.dx, x_elements);
    backward_free(&r);
    free_inputs(&in);
}

/* ---- Exact -------------------------------------------------------------- */

Test(tile, shapes_at_the_edges_are_exact)
{
    static const char *const problems[] = {
        "n2c16h8w16k16r3s3p1",          /* whole vectors */
        "n3c17h7w7k5r3s3p1",            /* rows shorter than a vector */
        "n1c1h1w1k1r1s1",               /* one of everything */
        "n2c3h5w33k7r3s3p1_fp32",       /* a column beyond two vectors */
        "n2c5h9w15k9r5s5p2_fp32",       /* 25 taps */
        "n2c2h9w9k3r7s7p3",             /* 49 taps */
        "n2c4h6w18k6r1s1p1",            /* padding that no tap needs */
        "n1c3h4w4k2r5s5p1",             /* a filter beyond the input */
        "n2c4h10w20k5r3s2p2x3x0x1",     /* four paddings */
        "n2c4h12w13k5r3s3p0",           /* none */
        "n2c3h9w21k4r3s3p3x5d3x5_fp32", /* dilation */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9",  /* gaps wider than rows */
        "n2c2h2w17k2r3s1p5x0",          /* more padding than rows */
    };
    skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_case_exact(problems[i], both);
}

Test(tile, fp16_tensors_are_exact)
{
    static const char *const problems[] = {
        "n2c5h7w9k6r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_x16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_w16_dy16_dw16",
        "n2c5h7w19k6r3s3p1_dy16",
    };
    skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_case_exact(problems[i], both);
}

Test(tile, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_tile:tile_c=14,tile_w=2,unroll=none,span=4;"
        "bwd_weight_tile:tile_k=1,tile_c=8,segment=24,split_k=2",
        "bwd_data_tile:tile_c=4,tile_w=6,unroll=none,shape=baked;"
        "bwd_weight_tile:tile_k=8,tile_c=3,split_k=64",
        "bwd_data_tile:tile_c=5,tile_w=1,unroll=filter,span=64,cast=separate;"
        "bwd_weight_tile:tile_k=6,tile_c=4,split_k=4,cast=separate,shape=baked",
    };
    skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i)
        expect_case_exact("n5c11h30w31k13r3s3p1", plans[i]);
}

Test(tile, baked_sizes_are_exact)
{
    static const char plan[] =
        "bwd_data_tile:shape=baked;bwd_weight_tile:shape=baked";
    static const char *const problems[] = {
        "n3c17h7w7k5r3s3p1",
        "n2c4h10w20k5r3s2p2x3x0x1_fp32",
        "n2c3h3w2k4r2s3p4x0x17x9d1x9",
    };
    skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_case_exact(problems[i], plan);
}

/* The depth is many times that of one chain of sums in bwd_data_tile, and no
 * multiple of it. */
Test(tile, a_deep_sum_in_blocks_is_exact)
{
    static const char *const problems[] = {
        "n1c9h5w6k131r3s3p1",
        "n1c9h5w6k61r5s5p2_fp32",
        "n1c9h5w6k301r1s1_fp32",
        "n1c2h16w16k3r12s12p6_fp32",
    };
    skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_case_exact(problems[i], "bwd_data_tile;bwd_weight_generic");
}

Test(tile, a_smaller_batch_is_exact_and_leaves_the_rest)
{
    static const char problem[] = "n4c5h6w9k6r3s3p1";
    skip_unless_cpu();
    inputs in = make_inputs(problem);
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        backward_case c = case_of(&in, problem, both);
        backward_result r;
        c.batch = batch;
        compute(&in, batch);
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        expect_exact(problem, both, "dw", r.dw, in.dw,
                     naive_w_elements(&in.desc));
        expect_exact(problem, both, "dx", r.dx, in.dx,
                     naive_x_elements(&in.desc, batch));
        backward_free(&r);
    }
    free_inputs(&in);
}

/* want = beta * old + want, old being small integers too. */
static float *add_old(double *want, int64_t count, double beta)
{
    float *old = small_integers(count, 4);
    for (int64_t i = 0; i < count; ++i)
        want[i] += beta * (double)old[i];
    return old;
}

Test(tile, beta_adds_to_the_old_contents)
{
    static const char problem[] = "n2c5h6w21k6r3s3p1";
    skip_unless_cpu();
    inputs in = make_inputs(problem);
    int64_t w_elements = naive_w_elements(&in.desc);
    int64_t x_elements = naive_x_elements(&in.desc, in.desc.n);
    compute(&in, in.desc.n);
    float *dw = add_old(in.dw, w_elements, 0.5);
    float *dx = add_old(in.dx, x_elements, -2.0);
    backward_case c = case_of(&in, problem, both);
    c.dw = dw, c.dx = dx;
    c.beta_w = 0.5f, c.beta_x = -2.0f;
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    expect_exact(problem, both, "dw", r.dw, in.dw, w_elements);
    expect_exact(problem, both, "dx", r.dx, in.dx, x_elements);
    backward_free(&r);
    free(dw);
    free(dx);
    free_inputs(&in);
}

Test(tile, without_images_dw_is_beta_times_the_old)
{
    static const char problem[] = "n2c5h6w21k6r3s3p1";
    skip_unless_cpu();
    inputs in = make_inputs(problem);
    int64_t w_elements = naive_w_elements(&in.desc);
    memset(in.dw, 0, (size_t)w_elements * sizeof *in.dw);
    float *dw = add_old(in.dw, w_elements, 0.5);
    backward_case c = case_of(&in, problem, "bwd_weight_tile");
    c.ops = CLCONV_OP_DW;
    c.dw = dw, c.beta_w = 0.5f, c.batch_none = true;
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    expect_exact(problem, both, "dw", r.dw, in.dw, w_elements);
    backward_free(&r);
    free(dw);
    free_inputs(&in);
}

/* ---- The workspace ------------------------------------------------------ */

#define GUARD 4096 /* bytes on either side, a multiple of 256 */

static void expect_guards(rig *r, cl_mem mem, size_t size)
{
    unsigned char bytes[2][GUARD];
    cr_assert(host_read(&r->host, mem, 0, GUARD, bytes[0]));
    cr_assert(host_read(&r->host, mem, GUARD + size, GUARD, bytes[1]));
    for (size_t i = 0; i < GUARD; ++i)
        cr_assert(bytes[0][i] == 0xff && bytes[1][i] == 0xff,
                  "byte %zu of a guard was written", i);
}

/* All bits are set before the call: a NaN in fp32 and in fp16. */
Test(tile, a_poisoned_workspace_does_not_show)
{
    skip_unless_cpu();
    rig r;
    size_t size;
    rig_open(&r, HOST_IN_ORDER, "n3c11h9w13k7r3s3p1", NULL);
    const char *plan = rig_explain(r.plan, "plan:");
    cr_assert(strstr(plan, "bwd_data_tile") && strstr(plan, "bwd_weight_tile"),
              "%s", plan);
    cr_assert_eq(clconv_plan_workspace_size(r.plan, &size), CLCONV_OK);
    cl_mem mem = host_buffer(&r.host, size + 2 * GUARD, NULL);
    r.args.workspace = (clconv_buffer){mem, GUARD};
    for (r.args.batch = 3; r.args.batch > 0; --r.args.batch) {
        rig_fill_outputs(&r, NAN);
        rig_run(&r);
        rig_expect(&r, CLCONV_OP_BACKWARD, 1);
        expect_guards(&r, mem, size);
    }
    clReleaseMemObject(mem);
    rig_close(&r);
}

/* ---- NaN ---------------------------------------------------------------- */

/* got must be want where that is a number, NaN where it is NaN; a NaN is
 * also right in the elements whose index lies in [from, to) after division
 * by unit, modulo count: those that only padding connects. */
typedef struct allowed {
    int64_t unit, count, from, to;
} allowed;

static void expect_nan(const char *what, const char *output, const float *got,
                       const double *want, int64_t count, allowed a)
{
    for (int64_t i = 0; i < count; ++i) {
        int64_t place = i / a.unit % a.count;
        bool lenient = place >= a.from && place < a.to && isnan(got[i]);
        bool right = isnan(want[i]) ? isnan(got[i]) : (double)got[i] == want[i];
        cr_assert(right || lenient, "%s: %s[%lld] is %g, not %g", what, output,
                  (long long)i, (double)got[i], want[i]);
    }
}

static const char nan_problem[] = "n3c7h6w18k6r3s3p1x0x2x2";

/* Runs with the NaN in place; dw and dx give what may be NaN besides. */
static void expect_nan_case(const char *what, inputs *in, allowed dw, allowed dx)
{
    const clconv_desc *d = &in->desc;
    backward_case c = case_of(in, nan_problem, both);
    backward_result r;
    compute(in, d->n);
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    expect_nan(what, "dw", r.dw, in->dw, naive_w_elements(d), dw);
    expect_nan(what, "dx", r.dx, in->dx, naive_x_elements(d, d->n), dx);
    backward_free(&r);
}

/* An edge, the other edge and a place between. */
static int64_t place(int i, int64_t size)
{
    return i == 0 ? 0 : i == 1 ? size - 1 : size / 2;
}

/* A NaN at each place of a plane in turn. */
static void expect_nan_plane(const char *what, inputs *in, float *plane,
                             int64_t height, int64_t width, allowed dw,
                             allowed dx)
{
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            float *at = &plane[place(i, height) * width + place(j, width)];
            float old = *at;
            *at = NAN;
            expect_nan_case(what, in, dw, dx);
            *at = old;
        }
}

/* Image 1, c = 2: any tap of that channel may be NaN, and nothing else. */
Test(tile, a_nan_in_x_reaches_its_channel_of_dw_alone)
{
    skip_unless_cpu();
    inputs in = make_inputs(nan_problem);
    const allowed nothing = {1, 1, 0, 0}, channel = {9, 7, 2, 3};
    expect_nan_plane("NaN in x", &in, in.x + (1 * 7 + 2) * 6 * 18, 6, 18,
                     channel, nothing);
    free_inputs(&in);
}

/* Image 1, k = 4: in dX just the taps' elements, of dW that k. */
Test(tile, a_nan_in_dy_reaches_its_taps_of_dx_alone)
{
    skip_unless_cpu();
    inputs in = make_inputs(nan_problem);
    const allowed nothing = {1, 1, 0, 0}, filter = {63, 6, 4, 5};
    int64_t p, q;
    cr_assert_eq(clconv_desc_output_shape(&in.desc, &p, &q), CLCONV_OK);
    expect_nan_plane("NaN in dy", &in, in.dy + (1 * 6 + 4) * p * q, p, q,
                     filter, nothing);
    free_inputs(&in);
}

/* In W: all of that channel of dX may be NaN. */
Test(tile, a_nan_in_w_reaches_its_channel_of_dx_alone)
{
    skip_unless_cpu();
    inputs in = make_inputs(nan_problem);
    const allowed nothing = {1, 1, 0, 0}, channel = {6 * 18, 7, 6, 7};
    in.w[(3 * 7 + 6) * 9 + 2] = NAN;
    expect_nan_case("NaN in w", &in, nothing, channel);
    free_inputs(&in);
}

/* ---- Small gradients ---------------------------------------------------- */

/* The Frobenius norm of the error over that of what is right. */
static double relative_error(const float *got, const double *want, int64_t count)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; ++i) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(error / norm);
}

/* dY of 1e-8 times small numbers: what dW and dX are off by. */
static void tiny_errors(const char *problem, double *dw, double *dx)
{
    inputs in = make_inputs(problem);
    const clconv_desc *d = &in.desc;
    for (int64_t i = 0; i < naive_dy_elements(d, d->n); ++i)
        in.dy[i] *= 1.1e-8f;
    backward_case c = case_of(&in, problem, both);
    backward_result r;
    compute(&in, d->n);
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    *dw = relative_error(r.dw, in.dw, naive_w_elements(d));
    *dx = relative_error(r.dx, in.dx, naive_x_elements(d, d->n));
    backward_free(&r);
    free_inputs(&in);
}

Test(tile, gradients_of_1e_8_survive)
{
    double dw, dx;
    skip_unless_cpu();
    tiny_errors("n2c6h9w17k5r3s3p1", &dw, &dx);
    cr_assert(dw < 5e-3 && dx < 5e-3, "dw %g, dx %g", dw, dx);
}

/* The test above can fail. */
Test(tile, unscaled_gradients_of_1e_8_are_lost)
{
    double dw, dx;
    skip_unless_cpu();
    tiny_errors("n2c6h9w17k5r3s3p1_scale0", &dw, &dx);
    cr_assert(dw > 0.1 && dx > 0.1, "dw %g, dx %g", dw, dx);
}
