/*
 * Large inputs that broke other convolution libraries: long reductions, and
 * tensors whose offsets 32 bits do not hold. The known list is in
 * test_bug_cases.c. They take gigabytes and minutes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "host.h"

static const char *const plans[] = {NULL,
                                    "bwd_data_generic;bwd_weight_generic"};

static void exact(const char *problem)
{
    for (int i = 0; i < 2; ++i)
        family_exact(&(family){.plan = plans[i]}, problem);
}

Test(bug_cases_large, l05_deep_pointwise_with_a_stride)
{
    exact("n256c2048h2w2k1024r1s1u2");
    exact("n64c2048h2w2k256r1s1u2_nhwc");
}

Test(bug_cases_large, l10_a_long_filter_of_many_channels)
{
    exact("n1c128h83w11k512r5s1u3x1p2x0");
    exact("n1c128h83w11k512r5s1u3x1p2x0_nhwc");
}

/* Both plans must give what the definition does, and so agree. */
Test(bug_cases_large, l12_a_reduction_over_four_million_pixels)
{
    exact("n1c16h2048w2048k1r5s5");
}

/* fp32 counts no further than this one by one. */
Test(bug_cases_large, l18_a_reduction_of_2_to_the_24)
{
    exact("n64c1h512w512k1r1s1");
}

/* ---- Offsets ------------------------------------------------------------ */

/*
 * A filter of 1x1 with a stride of 256 on 1024 channels of 1024x1024 pixels,
 * fp16: 2^30 elements an image, of which a tap reaches 2^14. x is NaN but
 * there; dX must be 0 but there.
 */
enum { SIZE = 1024, STRIDE = 256, OUT = SIZE / STRIDE };

#define TENSORS "c1024h1024w1024k1r1s1u256_x16_w16_dy16_dx16"
#define IMAGE ((uint64_t)SIZE * SIZE * SIZE)

typedef struct giant {
    host host;
    clconv_context *context;
    clconv_plan *plan;
    clconv_desc desc;
    cl_mem big, dy, w, dw;
} giant;

/* Small integers that differ between neighbours, as dY, W and X. */
static int small(uint64_t index)
{
    return (int)(index * 2654435761u >> 7) % 7 - 3;
}

static int dy_value(uint64_t n, uint64_t p, uint64_t q)
{
    return small((n * OUT + p) * OUT + q + 1);
}

static int x_value(uint64_t n, uint64_t c, uint64_t p, uint64_t q)
{
    return small(((n * SIZE + c) * OUT + p) * OUT + q + 77);
}

/* Where x[n][c][STRIDE * p][STRIDE * q] lies. */
static uint64_t x_index(const clconv_desc *d, uint64_t n, uint64_t c,
                        uint64_t p, uint64_t q)
{
    uint64_t h = STRIDE * p, w = STRIDE * q;
    if (d->layout == CLCONV_NCHW)
        return ((n * SIZE + c) * SIZE + h) * SIZE + w;
    return ((n * SIZE + h) * SIZE + w) * SIZE + c;
}

static void open_giant(const char *problem, unsigned ops, const char *plan,
                       giant *g)
{
    clconv_plan_options options;
    cl_ulong largest = 0;
    cr_assert_eq(clconv_desc_parse(problem, &g->desc), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &g->host),
                 HOST_OK);
    clGetDeviceInfo(g->host.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                    sizeof largest, &largest, NULL);
    if (largest < 2 * IMAGE * (uint64_t)g->desc.n)
        cr_skip_test("this device allocates no such buffer");
    cr_assert_eq(clconv_context_create(g->host.context, g->host.device, NULL,
                                       &g->context),
                 CLCONV_OK, "%s", clconv_last_error());
    clconv_plan_options_init(&options);
    options.plan = plan;
    cr_assert_eq(
        clconv_plan_create(g->context, &g->desc, ops, &options, &g->plan),
        CLCONV_OK, "%s: %s", problem, clconv_last_error());
}

static void make_tensors(giant *g)
{
    enum { MOST = 3 * OUT * OUT };
    uint16_t dy[MOST], w[SIZE];
    int count = (int)g->desc.n * OUT * OUT;
    cr_assert_leq(count, MOST);
    for (int i = 0; i < count; ++i)
        dy[i] = host_half_from_float((float)small((uint64_t)i + 1));
    for (uint64_t c = 0; c < SIZE; ++c)
        w[c] = host_half_from_float((float)small(c));
    g->dy = host_buffer(&g->host, (size_t)count * 2, dy);
    g->w = host_buffer(&g->host, sizeof w, w);
    g->dw = host_buffer(&g->host, SIZE * sizeof(float), NULL);
    g->big = host_buffer(&g->host, 2 * IMAGE * (size_t)g->desc.n, NULL);
    cr_assert(g->dy && g->w && g->dw && g->big);
}

static void close_giant(giant *g)
{
    clReleaseMemObject(g->big);
    clReleaseMemObject(g->dy);
    clReleaseMemObject(g->w);
    clReleaseMemObject(g->dw);
    clconv_plan_release(g->plan);
    clconv_context_release(g->context);
    host_close(&g->host);
}

static void enqueue(giant *g, unsigned op)
{
    clconv_backward_args args;
    clconv_backward_args_init(&args);
    args.dy.mem = g->dy;
    if (op == CLCONV_OP_DX) {
        args.w.mem = g->w;
        args.dx.mem = g->big;
    } else {
        args.x.mem = g->big;
        args.dw.mem = g->dw;
    }
    cr_assert_eq(
        clconv_enqueue_backward(g->plan, g->host.queue, &args, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    cr_assert(host_finish(&g->host));
}

/* ---- dW reads far ------------------------------------------------------- */

static void write_x(const giant *g)
{
    for (uint64_t n = 0; n < (uint64_t)g->desc.n; ++n)
        for (uint64_t c = 0; c < SIZE; ++c)
            for (uint64_t i = 0; i < OUT * OUT; ++i) {
                uint16_t value =
                    host_half_from_float((float)x_value(n, c, i / OUT, i % OUT));
                uint64_t at = x_index(&g->desc, n, c, i / OUT, i % OUT);
                cr_assert(host_write(&g->host, g->big, at * 2, 2, &value));
            }
}

static void expect_dw(const giant *g, const char *problem)
{
    float dw[SIZE];
    cr_assert(host_read(&g->host, g->dw, 0, sizeof dw, dw));
    for (uint64_t c = 0; c < SIZE; ++c) {
        int want = 0;
        for (uint64_t i = 0; i < (uint64_t)g->desc.n * OUT * OUT; ++i) {
            uint64_t n = i / OUT / OUT, p = i / OUT % OUT, q = i % OUT;
            want += dy_value(n, p, q) * x_value(n, c, p, q);
        }
        cr_assert_eq(dw[c], (float)want, "%s: dw[%" PRIu64 "] is %g, not %d",
                     problem, c, (double)dw[c], want);
    }
}

static void far_dw(const char *problem)
{
    for (int i = 0; i < 2; ++i) {
        giant g;
        open_giant(problem, CLCONV_OP_DW,
                   plans[i] ? "bwd_weight_generic" : NULL, &g);
        make_tensors(&g);
        write_x(&g);
        enqueue(&g, CLCONV_OP_DW);
        expect_dw(&g, problem);
        close_giant(&g);
    }
}

/* ---- dX writes far ------------------------------------------------------ */

/* Elements that are not 0 among the first count of a chunk, all of which are
 * where a tap is. */
static uint64_t count_nonzero(const uint16_t *chunk, uint64_t count)
{
    uint64_t nonzero = 0;
    for (uint64_t i = 0; i < count; ++i)
        nonzero += (chunk[i] & 0x7fff) != 0;
    return nonzero;
}

static uint64_t count_all_nonzero(const giant *g)
{
    const uint64_t chunk = (uint64_t)1 << 24;
    uint16_t *data = malloc(chunk * 2);
    uint64_t nonzero = 0;
    cr_assert_not_null(data);
    for (uint64_t at = 0; at < IMAGE * (uint64_t)g->desc.n; at += chunk) {
        cr_assert(host_read(&g->host, g->big, at * 2, chunk * 2, data));
        nonzero += count_nonzero(data, chunk);
    }
    free(data);
    return nonzero;
}

/* Those that taps reach are right, and no other is anything but 0. */
static void expect_dx(const giant *g, const char *problem)
{
    uint64_t nonzero = 0;
    for (uint64_t n = 0; n < (uint64_t)g->desc.n; ++n)
        for (uint64_t c = 0; c < SIZE; ++c)
            for (uint64_t i = 0; i < OUT * OUT; ++i) {
                float want = (float)(dy_value(n, i / OUT, i % OUT) * small(c));
                uint64_t at = x_index(&g->desc, n, c, i / OUT, i % OUT);
                uint16_t got;
                cr_assert(host_read(&g->host, g->big, at * 2, 2, &got));
                cr_assert_eq(host_float_from_half(got), want,
                             "%s: dx[%" PRIu64 "] is %g, not %g", problem, at,
                             (double)host_float_from_half(got), (double)want);
                nonzero += want != 0;
            }
    cr_assert_eq(count_all_nonzero(g), nonzero, "%s", problem);
}

static void far_dx(const char *problem)
{
    for (int i = 0; i < 2; ++i) {
        giant g;
        open_giant(problem, CLCONV_OP_DX, plans[i] ? "bwd_data_generic" : NULL,
                   &g);
        make_tensors(&g);
        enqueue(&g, CLCONV_OP_DX);
        expect_dx(&g, problem);
        close_giant(&g);
    }
}

/* 2^31 elements: their number is no int. */
Test(bug_cases_large, l18_dw_of_2_to_the_31_elements)
{
    far_dw("n2" TENSORS);
    far_dw("n2" TENSORS "_nhwc");
}

Test(bug_cases_large, l18_dx_of_2_to_the_31_elements)
{
    far_dx("n2" TENSORS);
    far_dx("n2" TENSORS "_nhwc");
}

/* Half as many again: neither are their indices. */
Test(bug_cases_large, l18_dw_of_more_than_2_to_the_31_elements)
{
    far_dw("n3" TENSORS);
    far_dw("n3" TENSORS "_nhwc");
}

Test(bug_cases_large, l18_dx_of_more_than_2_to_the_31_elements)
{
    far_dx("n3" TENSORS);
    far_dx("n3" TENSORS "_nhwc");
}
