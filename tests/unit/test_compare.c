/*
 * The example's fp64 reference against loops that follow the definition, and
 * the two numbers that express agreement.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "compare.h"
#include "conv_fp64.h"
#include "random.h"

/* A layer's tensors, and its gradients by the definition. */
typedef struct layer {
    conv_shape shape;
    float *x, *w, *dy;
    double *dw, *db, *dx;
} layer;

static float *random_floats(random_source *random, size_t count)
{
    float *values = malloc(count * sizeof(*values));

    cr_assert_not_null(values);
    random_fill_normal(random, count, values);
    return values;
}

/* Every tap of one output element: y[n][k][p][q] += x * w. */
static void add_taps(layer *l, size_t n, size_t k, size_t p, size_t q)
{
    conv_shape s = l->shape;
    double dy = (double)l->dy[((n * s.k + k) * s.size + p) * s.size + q];

    l->db[k] += dy;
    for (size_t i = 0; i < s.c * CONV_TAPS; ++i) {
        size_t c = i / CONV_TAPS, r = i / 3 % 3, t = i % 3;
        size_t h = p + r - 1, w = q + t - 1; /* wraps where it is padding */
        size_t at_x = ((n * s.c + c) * s.size + h) * s.size + w;
        size_t at_w = k * s.c * CONV_TAPS + i;

        if (h >= s.size || w >= s.size)
            continue;
        l->dw[at_w] += dy * (double)l->x[at_x];
        l->dx[at_x] += dy * (double)l->w[at_w];
    }
}

static layer layer_open(conv_shape shape)
{
    random_source random = random_seeded(11);
    layer l = {.shape = shape};

    l.x = random_floats(&random, conv_x_count(shape));
    l.w = random_floats(&random, conv_w_count(shape));
    l.dy = random_floats(&random, conv_y_count(shape));
    l.dw = calloc(conv_w_count(shape), sizeof(double));
    l.db = calloc(shape.k, sizeof(double));
    l.dx = calloc(conv_x_count(shape), sizeof(double));
    cr_assert(l.dw && l.db && l.dx);
    for (size_t i = 0; i < conv_y_count(shape); ++i) {
        size_t image = i / shape.size / shape.size;

        add_taps(&l, image / shape.k, image % shape.k,
                 i / shape.size % shape.size, i % shape.size);
    }
    return l;
}

static void layer_close(layer *l)
{
    free(l->x);
    free(l->w);
    free(l->dy);
    free(l->dw);
    free(l->db);
    free(l->dx);
}

static void assert_close(const double *got, const double *expected,
                         size_t count, const char *what, size_t size)
{
    for (size_t i = 0; i < count; ++i)
        cr_assert_float_eq(got[i], expected[i], 1e-11,
                           "size %zu: %s[%zu] = %.17g, expected %.17g", size,
                           what, i, got[i], expected[i]);
}

static void check_reference(conv_shape shape)
{
    layer l = layer_open(shape);
    size_t plane = shape.size * shape.size;
    conv_fp64 truth;

    cr_assert(conv_fp64_open(shape, l.w, &truth));
    for (size_t n = 0; n < shape.n; ++n) {
        conv_fp64_add_image(&truth, l.x + n * shape.c * plane,
                            l.dy + n * shape.k * plane);
        assert_close(truth.dx, l.dx + n * shape.c * plane, shape.c * plane,
                     "dx", shape.size);
    }
    assert_close(truth.dw, l.dw, conv_w_count(shape), "dw", shape.size);
    assert_close(truth.db, l.db, shape.k, "db", shape.size);
    conv_fp64_close(&truth);
    layer_close(&l);
}

Test(compare, reference_follows_the_definition_at_many_sizes)
{
    for (size_t size = 1; size <= 17; ++size)
        check_reference((conv_shape){2, 3, 5, size});
    check_reference((conv_shape){3, 1, 4, 30});
    check_reference((conv_shape){1, 4, 1, 7});
}

static float *to_floats(const double *values, size_t count, double factor)
{
    float *out = malloc(count * sizeof(*out));

    cr_assert_not_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)(values[i] * factor);
    return out;
}

static conv_gradients gradients_of(const layer *l, double factor)
{
    return (conv_gradients){
        to_floats(l->dw, conv_w_count(l->shape), factor),
        to_floats(l->db, l->shape.k, factor),
        to_floats(l->dx, conv_x_count(l->shape), factor),
    };
}

static void assert_agreement(agreement a, double cosine, double error)
{
    cr_assert_float_eq(a.cosine, cosine, 1e-6);
    cr_assert_float_eq(a.error, error, 1e-6);
}

/* Right gradients, then 1.5 times and -1 times the right ones; 5 images, so
 * that threads have different numbers of them. */
Test(compare, right_long_and_opposite_gradients_are_told_apart)
{
    static const double factors[3] = {1, 1.5, -1};
    static const double cosines[3] = {1, 1, -1}, errors[3] = {0, 0.5, 2};
    layer l = layer_open((conv_shape){5, 2, 3, 6});
    conv_gradients got[3];
    comparison found[3];

    for (size_t i = 0; i < 3; ++i)
        got[i] = gradients_of(&l, factors[i]);
    cr_assert(compare_gradients(l.shape, (conv_inputs){l.x, l.w, l.dy}, got, 3,
                                found));
    for (size_t i = 0; i < 3; ++i) {
        assert_agreement(found[i].dw, cosines[i], errors[i]);
        assert_agreement(found[i].db, cosines[i], errors[i]);
        assert_agreement(found[i].dx, cosines[i], errors[i]);
        free(got[i].dw);
        free(got[i].db);
        free(got[i].dx);
    }
    layer_close(&l);
}

Test(compare, one_wrong_image_shows_in_dx)
{
    layer l = layer_open((conv_shape){4, 2, 2, 5});
    conv_gradients got = gradients_of(&l, 1);
    comparison found;

    got.dx[3 * 2 * 25 + 7] += 1; /* in the last image */
    cr_assert(compare_gradients(l.shape, (conv_inputs){l.x, l.w, l.dy}, &got, 1,
                                &found));
    cr_assert_lt(found.dw.error, 1e-6);
    cr_assert_gt(found.dx.error, 1e-3);
    free(got.dw);
    free(got.db);
    free(got.dx);
    layer_close(&l);
}

Test(compare, cosine_and_error_of_two_known_vectors)
{
    const float got[2] = {3, 4};
    const double truth[2] = {4, 3};
    agreement_sums sums = {0};

    agreement_add(&sums, got, truth, 2);
    assert_agreement(agreement_of(&sums), 24.0 / 25, sqrt(2.0) / 5);
}
