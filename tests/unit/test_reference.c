/*
 * The fp64 reference against one loop over every product, written from the
 * definition in the public header: it scatters where the reference gathers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "random.h"
#include "reference.h"
#include "shape.h"

typedef struct sizes {
    int64_t n, c, h, w, k, r, s;
    int64_t stride_h, stride_w, top, bottom, left, right, dilation_h,
        dilation_w, groups;
} sizes;

static const sizes odd_shapes[] = {
    {2, 3, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {3, 5, 9, 33, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 9, 8, 19, 6, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 1},  /* filter < stride */
    {1, 4, 15, 17, 5, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1}, /* filter < stride */
    {1, 3, 14, 14, 5, 7, 1, 3, 3, 2, 3, 0, 1, 1, 1, 1},
    {2, 3, 14, 14, 5, 4, 7, 3, 3, 1, 0, 2, 3, 1, 1, 1},
    {1, 2, 32, 32, 3, 8, 1, 5, 5, 0, 0, 0, 0, 1, 1, 1},
    {2, 4, 8, 8, 6, 3, 3, 2, 2, 1, 0, 1, 0, 2, 2, 1},
    {2, 4, 8, 8, 6, 3, 3, 3, 3, 1, 1, 1, 1, 3, 3, 1},
    {1, 4, 21, 20, 6, 3, 3, 2, 3, 4, 0, 1, 5, 3, 2, 1},  /* gcd(s, d) = 1 */
    {1, 4, 21, 20, 6, 5, 3, 4, 6, 2, 2, 3, 3, 2, 4, 1},  /* gcd(s, d) = 2 */
    {2, 24, 6, 6, 24, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 24}, /* depthwise */
    {1, 10, 7, 7, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 10}, /* two a channel */
    {2, 15, 7, 9, 10, 3, 2, 1, 2, 1, 1, 0, 2, 1, 1, 5},  /* grouped */
    {2, 18, 6, 6, 27, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 9},  /* grouped 1x1 */
    {1, 1, 2, 2, 1, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 1},    /* taps in padding */
    {1, 2, 4, 4, 3, 5, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1},    /* filter > input */
    {1, 2, 3, 3, 3, 3, 3, 1, 1, 7, 5, 6, 4, 1, 1, 1},    /* pad > filter */
    {1, 3, 16, 16, 4, 7, 7, 3, 3, 2, 2, 2, 2, 1, 1, 1},  /* unread rows */
    {1, 7, 5, 70, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 4, 31, 1, 4, 5, 1, 2, 1, 1, 0, 0, 0, 1, 1, 4},
};

enum { SHAPE_COUNT = sizeof(odd_shapes) / sizeof(odd_shapes[0]) };

static clconv_desc desc_of(const sizes *z)
{
    return (clconv_desc){.struct_size = sizeof(clconv_desc),
                         .n = z->n,
                         .c = z->c,
                         .h = z->h,
                         .w = z->w,
                         .k = z->k,
                         .r = z->r,
                         .s = z->s,
                         .stride_h = z->stride_h,
                         .stride_w = z->stride_w,
                         .pad_top = z->top,
                         .pad_bottom = z->bottom,
                         .pad_left = z->left,
                         .pad_right = z->right,
                         .dilation_h = z->dilation_h,
                         .dilation_w = z->dilation_w,
                         .groups = z->groups};
}

/* Every array of one problem; naive_ by the loop below. */
typedef struct problem {
    shape z;
    float *x, *w, *dy;
    double *dw, *dx, *naive_dw, *naive_dx;
} problem;

static problem problem_new(const sizes *from)
{
    problem p;
    clconv_desc desc = desc_of(from);
    random_source random = random_seeded(7);

    cr_assert(shape_from_desc(&desc, &p.z));
    p.x = calloc(shape_x_count(&p.z), sizeof(float));
    p.w = calloc(shape_w_count(&p.z), sizeof(float));
    p.dy = calloc(shape_dy_count(&p.z), sizeof(float));
    p.dw = calloc(shape_w_count(&p.z), sizeof(double));
    p.dx = calloc(shape_x_count(&p.z), sizeof(double));
    p.naive_dw = calloc(shape_w_count(&p.z), sizeof(double));
    p.naive_dx = calloc(shape_x_count(&p.z), sizeof(double));
    random_fill_integers(&random, 100, shape_x_count(&p.z), p.x);
    random_fill_integers(&random, 100, shape_w_count(&p.z), p.w);
    random_fill_integers(&random, 100, shape_dy_count(&p.z), p.dy);
    return p;
}

static void problem_free(problem *p)
{
    free(p->x);
    free(p->w);
    free(p->dy);
    free(p->dw);
    free(p->dx);
    free(p->naive_dw);
    free(p->naive_dx);
}

/* What dy[n][k][p][q] adds to dw and dx. */
static void scatter(problem *m, const sizes *z, int64_t n, int64_t k, int64_t p,
                    int64_t q)
{
    int64_t cg = z->c / z->groups, group = k / (z->k / z->groups);
    double dy = (double)m->dy[((n * z->k + k) * m->z.p + p) * m->z.q + q];

    for (int64_t i = 0; i < cg * z->r * z->s; ++i) {
        int64_t s = i % z->s, r = i / z->s % z->r, c = i / z->s / z->r;
        int64_t h = p * z->stride_h + r * z->dilation_h - z->top;
        int64_t w = q * z->stride_w + s * z->dilation_w - z->left;
        int64_t at = ((n * z->c + group * cg + c) * z->h + h) * z->w + w;
        int64_t tap = k * cg * z->r * z->s + i;

        if (h < 0 || h >= z->h || w < 0 || w >= z->w)
            continue;
        m->naive_dw[tap] += dy * (double)m->x[at];
        m->naive_dx[at] += dy * (double)m->w[tap];
    }
}

static void run_naive(problem *m, const sizes *z)
{
    for (int64_t n = 0; n < z->n; ++n)
        for (int64_t k = 0; k < z->k; ++k)
            for (int64_t p = 0; p < m->z.p; ++p)
                for (int64_t q = 0; q < m->z.q; ++q)
                    scatter(m, z, n, k, p, q);
}

static void assert_equal(const double *got, const double *expected,
                         size_t count, const char *name, int shape_index)
{
    for (size_t i = 0; i < count; ++i)
        cr_assert(got[i] == expected[i],
                  "shape %d, %s[%zu]: got %g, expected %g", shape_index, name,
                  i, got[i], expected[i]);
}

static void check_shape(reference *ref, int i)
{
    problem p = problem_new(&odd_shapes[i]);

    run_naive(&p, &odd_shapes[i]);
    cr_assert(reference_dw(ref, &p.z, p.x, p.dy, p.dw));
    cr_assert(reference_dx(ref, &p.z, p.w, p.dy, p.dx));
    assert_equal(p.dw, p.naive_dw, shape_w_count(&p.z), "dw", i);
    assert_equal(p.dx, p.naive_dx, shape_x_count(&p.z), "dx", i);
    problem_free(&p);
}

Test(reference, equals_a_loop_over_every_product_on_the_device)
{
    host h;
    reference *ref;

    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &h), HOST_OK);
    cr_assert(reference_new(&h, &ref));
    for (int i = 0; i < SHAPE_COUNT; ++i)
        check_shape(ref, i);
    reference_free(ref);
    host_close(&h);
}

Test(reference, equals_a_loop_over_every_product_without_fp64)
{
    host h = {.has_fp64 = false};
    reference *ref;

    cr_assert(reference_new(&h, &ref));
    for (int i = 0; i < SHAPE_COUNT; ++i)
        check_shape(ref, i);
    reference_free(ref);
}

Test(reference, samples_find_a_wrong_tap)
{
    problem p = problem_new(&odd_shapes[2]);
    random_source random = random_seeded(3);

    run_naive(&p, &odd_shapes[2]);
    cr_assert(reference_agrees_dw(&p.z, p.x, p.dy, p.naive_dw, 100, &random));
    cr_assert(reference_agrees_dx(&p.z, p.w, p.dy, p.naive_dx, 100, &random));
    for (size_t i = 0; i < shape_w_count(&p.z); i += 2)
        p.naive_dw[i] += 1;
    for (size_t i = 0; i < shape_x_count(&p.z); i += 2)
        p.naive_dx[i] -= 1;
    cr_assert_not(reference_agrees_dw(&p.z, p.x, p.dy, p.naive_dw, 100, &random));
    cr_assert_not(reference_agrees_dx(&p.z, p.w, p.dy, p.naive_dx, 100, &random));
    problem_free(&p);
}

Test(reference, db_sums_images_and_places)
{
    const sizes from = {2, 1, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
    const float dy[16] = {1, 2, 3, 4, 10, 20, 30, 40,
                          5, 6, 7, 8, 50, 60, 70, 80};
    clconv_desc desc = desc_of(&from);
    double db[2];
    shape z;

    cr_assert(shape_from_desc(&desc, &z));
    reference_db(&z, dy, db);
    cr_assert_eq(db[0], 36.0);
    cr_assert_eq(db[1], 360.0);
}
