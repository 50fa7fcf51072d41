/*
 * The example's plain-C layers: forward by hand, backward against finite
 * differences of the forward pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "layers.h"
#include "random.h"

#define MAX 512
#define STEP 1e-3f

/* What a forward pass under test gets and makes; in, gamma and beta are what
 * the loss is differentiated by. */
typedef struct fixture {
    tensor_shape shape;
    float in[MAX], gamma[8], beta[8];
    float weight[MAX]; /* loss = sum of weight * out */
    void (*forward)(const struct fixture *f, float *out);
    size_t out_count;
} fixture;

static double loss_of(const fixture *f)
{
    float out[MAX];
    double loss = 0;

    f->forward(f, out);
    for (size_t i = 0; i < f->out_count; ++i)
        loss += (double)f->weight[i] * (double)out[i];
    return loss;
}

/* d loss / d value, value being part of f. */
static double slope(const fixture *f, float *value)
{
    float kept = *value, above = kept + STEP, below = kept - STEP;
    double high, low;

    *value = above;
    high = loss_of(f);
    *value = below;
    low = loss_of(f);
    *value = kept;
    return (high - low) / ((double)above - (double)below);
}

static void check_slopes(const fixture *f, float *values, const float *got,
                         size_t count, const char *what)
{
    for (size_t i = 0; i < count; ++i) {
        double expected = slope(f, &values[i]);

        cr_assert_float_eq((double)got[i], expected, 2e-3 * (1 + fabs(expected)),
                           "%s[%zu]: got %g, finite difference %g", what, i,
                           (double)got[i], expected);
    }
}

static void fill(fixture *f, tensor_shape shape, size_t out_count)
{
    random_source random = random_seeded(7);

    f->shape = shape;
    f->out_count = out_count;
    cr_assert(tensor_count(shape) <= MAX && out_count <= MAX && shape.c <= 8);
    random_fill_normal(&random, tensor_count(shape), f->in);
    random_fill_normal(&random, out_count, f->weight);
    random_fill_normal(&random, shape.c, f->gamma);
    random_fill_normal(&random, shape.c, f->beta);
}

/* ---- Batch norm and ReLU -------------------------------------------- */

static batch_norm norm_of(const fixture *f)
{
    return (batch_norm){f->gamma, f->beta};
}

static void forward_batch_norm_relu(const fixture *f, float *out)
{
    batch_statistics statistics[8];

    batch_norm_relu_forward(f->shape, norm_of(f), f->in, statistics, out);
}

/* A finite difference across ReLU's kink means nothing: the data must keep
 * away from it, by more than a step moves any z. */
static void assert_away_from_kink(const fixture *f,
                                  const batch_statistics *statistics)
{
    size_t plane = f->shape.h * f->shape.w;

    for (size_t i = 0; i < tensor_count(f->shape); ++i) {
        size_t c = i / plane % f->shape.c;
        double normal =
            ((double)f->in[i] - statistics[c].mean) * statistics[c].inv_std;
        double z = (double)f->gamma[c] * normal + (double)f->beta[c];

        cr_assert(fabs(z) > 4e-3, "z[%zu] = %g", i, z);
    }
}

Test(layers, batch_norm_relu_backward_is_the_slope_of_forward)
{
    static fixture f = {.forward = forward_batch_norm_relu};
    batch_statistics statistics[8];
    float a[MAX], y_dy[MAX], dgamma[8], dbeta[8];

    fill(&f, (tensor_shape){2, 3, 3, 4}, 2 * 3 * 3 * 4);
    batch_norm_relu_forward(f.shape, norm_of(&f), f.in, statistics, a);
    assert_away_from_kink(&f, statistics);
    memcpy(y_dy, f.in, sizeof(y_dy));
    batch_norm_relu_backward(f.shape, norm_of(&f), statistics, f.weight, y_dy,
                             dgamma, dbeta);
    check_slopes(&f, f.in, y_dy, tensor_count(f.shape), "dy");
    check_slopes(&f, f.gamma, dgamma, f.shape.c, "dgamma");
    check_slopes(&f, f.beta, dbeta, f.shape.c, "dbeta");
}

Test(layers, batch_norm_makes_mean_beta_and_deviation_gamma)
{
    static fixture f;
    batch_statistics statistics[1];
    float a[MAX];
    double sum = 0, squares = 0;

    fill(&f, (tensor_shape){5, 1, 8, 9}, 1);
    f.gamma[0] = 0.5f;
    f.beta[0] = 4; /* eight deviations: ReLU cuts nothing off */
    batch_norm_relu_forward(f.shape, norm_of(&f), f.in, statistics, a);
    for (size_t i = 0; i < 360; ++i) {
        sum += (double)a[i];
        squares += ((double)a[i] - 4) * ((double)a[i] - 4);
    }
    cr_assert_float_eq(sum / 360, 4, 1e-5);
    cr_assert_float_eq(squares / 360, 0.25, 1e-4);
}

/* ---- Pooling -------------------------------------------------------- */

static void forward_max_pool(const fixture *f, float *out)
{
    max_pool_forward(f->shape, f->in, out);
}

Test(layers, max_pool_takes_the_largest_and_drops_odd_edges)
{
    const float a[15] = {1, 2, 5, 4, 9, //
                         3, 0, 6, 7, 9, //
                         9, 9, 9, 9, 9};
    float pooled[2];

    max_pool_forward((tensor_shape){1, 1, 3, 5}, a, pooled);
    cr_assert_eq(pooled[0], 3);
    cr_assert_eq(pooled[1], 7);
}

Test(layers, max_pool_backward_is_the_slope_of_forward)
{
    static fixture f = {.forward = forward_max_pool};
    float a_da[MAX];

    fill(&f, (tensor_shape){2, 2, 5, 7}, 2 * 2 * 2 * 3);
    memcpy(a_da, f.in, sizeof(a_da));
    max_pool_backward(f.shape, f.weight, a_da);
    check_slopes(&f, f.in, a_da, tensor_count(f.shape), "da");
}

Test(layers, max_pool_backward_gives_ties_to_the_first)
{
    const float dpooled[1] = {5};
    float a_da[4] = {0, 1, 1, 1};
    const float expected[4] = {0, 5, 0, 0};

    max_pool_backward((tensor_shape){1, 1, 2, 2}, dpooled, a_da);
    cr_assert_arr_eq(a_da, expected, sizeof(expected));
}

static void forward_average_pool(const fixture *f, float *out)
{
    average_pool_forward(f->shape, f->in, out);
}

Test(layers, average_pool_backward_is_the_slope_of_forward)
{
    static fixture f = {.forward = forward_average_pool};
    float da[MAX];

    fill(&f, (tensor_shape){2, 3, 3, 5}, 2 * 3);
    average_pool_backward(f.shape, f.weight, da);
    check_slopes(&f, f.in, da, tensor_count(f.shape), "da");
}

/* ---- Linear layer and loss ------------------------------------------ */

/* in holds weights [3][5], bias [3] and x [2][5], one after the other. */
static linear linear_of(const fixture *f)
{
    return (linear){5, 3, f->in, f->in + 15};
}

static void forward_linear(const fixture *f, float *out)
{
    linear_forward(linear_of(f), 2, f->in + 18, out);
}

Test(layers, linear_backward_is_the_slope_of_forward)
{
    static fixture f = {.forward = forward_linear};
    float dweights[15], dbias[3], dx[10];

    fill(&f, (tensor_shape){1, 1, 1, 28}, 6);
    linear_backward(linear_of(&f), 2, f.in + 18, f.weight, dweights, dbias, dx);
    check_slopes(&f, f.in, dweights, 15, "dweights");
    check_slopes(&f, f.in + 15, dbias, 3, "dbias");
    check_slopes(&f, f.in + 18, dx, 10, "dx");
}

static const unsigned char labels[3] = {3, 0, 1};

static void forward_cross_entropy(const fixture *f, float *out)
{
    float dlogits[12];

    out[0] = (float)cross_entropy(3, 4, f->in, labels, dlogits);
}

Test(layers, cross_entropy_gradient_is_the_slope_of_the_loss)
{
    static fixture f = {.forward = forward_cross_entropy};
    float dlogits[12];

    fill(&f, (tensor_shape){3, 1, 1, 4}, 1);
    f.weight[0] = 1;
    cross_entropy(3, 4, f.in, labels, dlogits);
    check_slopes(&f, f.in, dlogits, 12, "dlogits");
}

Test(layers, cross_entropy_of_equal_logits_is_the_log_of_classes)
{
    const float logits[8] = {0};
    float dlogits[8];

    cr_assert_float_eq(cross_entropy(2, 4, logits, labels + 1, dlogits),
                       log(4.0), 1e-12);
}

Test(layers, cross_entropy_survives_large_logits)
{
    const float logits[2] = {1e4f, -1e4f};
    const unsigned char label = 1;
    float dlogits[2];

    cr_assert_float_eq(cross_entropy(1, 2, logits, &label, dlogits), 2e4, 1e-9);
    cr_assert_eq(dlogits[0], 1);
    cr_assert_eq(dlogits[1], -1);
}
