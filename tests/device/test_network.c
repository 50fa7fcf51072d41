/*
 * The example's network on a device: the forward convolution that is made
 * from bwd_data, against the definition; and the gradient of every group of
 * parameters, against finite differences of the loss.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "host.h"
#include "network.h"
#include "random.h"

static host device;
static conv_engine engine;

static void open_device(void)
{
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &device), HOST_OK);
    cr_assert(conv_engine_open(&device, &engine));
}

static void close_device(void)
{
    conv_engine_close(&engine);
    host_close(&device);
}

TestSuite(network, .init = open_device, .fini = close_device);

/* ---- Forward convolution -------------------------------------------- */

static float *random_floats(random_source *random, size_t count)
{
    float *values = malloc(count * sizeof(*values));

    cr_assert_not_null(values);
    random_fill_normal(random, count, values);
    return values;
}

/* y[n][k][p][q] by the definition. */
static double y_element(conv_shape s, const float *x, const float *w, size_t at)
{
    size_t q = at % s.size, p = at / s.size % s.size;
    size_t k = at / s.size / s.size % s.k, n = at / s.size / s.size / s.k;
    double sum = 0;

    for (size_t i = 0; i < s.c * CONV_TAPS; ++i) {
        size_t c = i / CONV_TAPS;
        size_t h = p + i / 3 % 3 - 1, v = q + i % 3 - 1; /* wrap in padding */

        if (h < s.size && v < s.size)
            sum += (double)x[((n * s.c + c) * s.size + h) * s.size + v] *
                   (double)w[k * s.c * CONV_TAPS + i];
    }
    return sum;
}

static void check_forward(conv_shape s, clconv_math math, double tolerance)
{
    random_source random = random_seeded(5);
    float *x = random_floats(&random, conv_x_count(s));
    float *w = random_floats(&random, conv_w_count(s));
    float *y = malloc(conv_y_count(s) * sizeof(*y));
    conv_call call;

    cr_assert_not_null(y);
    cr_assert(conv_forward_open(&engine, s, math, &call));
    cr_assert(conv_forward(&call, x, w, y));
    for (size_t i = 0; i < conv_y_count(s); ++i) {
        double expected = y_element(s, x, w, i);

        cr_assert_float_eq((double)y[i], expected, tolerance,
                           "n%zuc%zuh%zuk%zu: y[%zu] = %g, expected %g", s.n,
                           s.c, s.size, s.k, i, (double)y[i], expected);
    }
    conv_call_close(&call);
    free(x);
    free(w);
    free(y);
}

Test(network, forward_convolution_follows_the_definition_in_fp32)
{
    check_forward((conv_shape){2, 3, 5, 7}, CLCONV_FP32, 1e-4);
    check_forward((conv_shape){1, 16, 32, 14}, CLCONV_FP32, 1e-4);
}

/* 27 products, each rounded to 11 bits twice: far below 0.05. */
Test(network, forward_convolution_follows_the_definition_in_fp16)
{
    check_forward((conv_shape){2, 3, 5, 7}, CLCONV_MIXED, 0.05);
}

/* ---- Gradients ------------------------------------------------------ */

static void fill_batch(network_pass *pass)
{
    random_source random = random_seeded(3);
    conv_shape shape = pass->shape[0];

    random_fill_normal(&random, conv_x_count(shape), pass->x[0]);
    for (size_t i = 0; i < shape.n; ++i)
        pass->labels[i] = (unsigned char)(i % NETWORK_CLASSES);
}

static double loss_of(network *net, network_pass *pass)
{
    double loss;

    cr_assert(network_run(net, pass, &loss));
    return loss;
}

static double length(const float *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; ++i)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum);
}

/* Loss with values moved along direction by distance. */
static double loss_at(network *net, network_pass *pass, float *values,
                      const float *direction, size_t count, double distance)
{
    float *kept = malloc(count * sizeof(*kept));
    double scale = distance / length(direction, count);
    double loss;

    cr_assert_not_null(kept);
    memcpy(kept, values, count * sizeof(*kept));
    for (size_t i = 0; i < count; ++i)
        values[i] += (float)(scale * (double)direction[i]);
    loss = loss_of(net, pass);
    memcpy(values, kept, count * sizeof(*kept));
    free(kept);
    return loss;
}

/* Along its own direction a gradient's slope is its length. ReLU and max
 * pooling have kinks, which a step of this size crosses here and there. */
static void check_group(network *net, network_pass *capture, float *values,
                        const float *gradient, size_t count, const char *what)
{
    double distance = 2e-3;
    double high = loss_at(net, capture, values, gradient, count, distance);
    double low = loss_at(net, capture, values, gradient, count, -distance);
    double slope = (high - low) / (2 * distance);
    double expected = length(gradient, count);

    cr_assert_gt(expected, 1e-4, "%s: no gradient", what);
    cr_assert_float_eq(slope / expected, 1, 0.02,
                       "%s: slope of the loss %g, length of the gradient %g",
                       what, slope, expected);
}

/* The gradients of a capture pass lack dw, so these come from training; the
 * losses come from the fp32 pass. */
Test(network, gradients_are_slopes_of_the_loss)
{
    network net;
    network_pass train, capture;
    network_parameters gradient;

    cr_assert(network_open(1, 1, &net));
    cr_assert(network_pass_open(&net, &engine, 8, 12, NETWORK_TRAIN, &train));
    cr_assert(network_pass_open(&net, &engine, 8, 12, NETWORK_CAPTURE, &capture));
    fill_batch(&train);
    fill_batch(&capture);
    loss_of(&net, &train);
    gradient = net.gradient;
    gradient.all = malloc(gradient.count * sizeof(float));
    cr_assert_not_null(gradient.all);
    memcpy(gradient.all, net.gradient.all, gradient.count * sizeof(float));
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        size_t k = train.shape[i].k;
        size_t w = (size_t)(net.gradient.w[i] - net.gradient.all);

        check_group(&net, &capture, net.value.w[i], gradient.all + w,
                    conv_w_count(train.shape[i]), network_conv_name(i));
        w += conv_w_count(train.shape[i]);
        check_group(&net, &capture, net.value.gamma[i], gradient.all + w, k,
                    "gamma");
        check_group(&net, &capture, net.value.beta[i], gradient.all + w + k, k,
                    "beta");
    }
    network_pass_close(&train);
    network_pass_close(&capture);
    free(gradient.all);
    network_close(&net);
}

/* ---- Training ------------------------------------------------------- */

Test(network, a_batch_can_be_learnt_by_heart)
{
    network net;
    network_pass pass;
    double first, last;

    cr_assert(network_open(3, 1, &net));
    cr_assert(network_pass_open(&net, &engine, 8, 8, NETWORK_TRAIN, &pass));
    fill_batch(&pass);
    first = loss_of(&net, &pass);
    for (int i = 0; i < 20; ++i) {
        network_step(&net, 0.05f, 0.9f);
        loss_of(&net, &pass);
    }
    last = loss_of(&net, &pass);
    cr_assert_gt(first, 1, "first loss %g", first);
    cr_assert_lt(last, 0.1, "last loss %g", last);
    network_pass_close(&pass);
    network_close(&net);
}
