/*
 * Sums run in double: the tensors hold up to 3e7 elements, and the gradients
 * made here are the data that the example judges the library by.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "layers.h"

#include <math.h>
#include <string.h>

#define BATCH_NORM_EPSILON 1e-5

size_t tensor_count(tensor_shape shape)
{
    return shape.n * shape.c * shape.h * shape.w;
}

/* Where the plane of image n and channel c starts. */
static size_t plane_at(tensor_shape shape, size_t n, size_t c)
{
    return (n * shape.c + c) * shape.h * shape.w;
}

/* ---- Batch norm and ReLU -------------------------------------------- */

static double channel_mean(tensor_shape shape, const float *y, size_t c)
{
    size_t plane = shape.h * shape.w;
    double sum = 0;

    for (size_t n = 0; n < shape.n; ++n) {
        const float *row = y + plane_at(shape, n, c);

        for (size_t i = 0; i < plane; ++i)
            sum += (double)row[i];
    }
    return sum / (double)(shape.n * plane);
}

static double channel_variance(tensor_shape shape, const float *y, size_t c,
                               double mean)
{
    size_t plane = shape.h * shape.w;
    double sum = 0;

    for (size_t n = 0; n < shape.n; ++n) {
        const float *row = y + plane_at(shape, n, c);

        for (size_t i = 0; i < plane; ++i) {
            double d = (double)row[i] - mean;

            sum += d * d;
        }
    }
    return sum / (double)(shape.n * plane);
}

void batch_norm_relu_forward(tensor_shape shape, batch_norm norm, const float *y,
                             batch_statistics *statistics, float *a)
{
    size_t plane = shape.h * shape.w;

    for (size_t c = 0; c < shape.c; ++c) {
        double mean = channel_mean(shape, y, c);
        double variance = channel_variance(shape, y, c, mean);
        double inv_std = 1 / sqrt(variance + BATCH_NORM_EPSILON);

        statistics[c] = (batch_statistics){mean, inv_std};
        for (size_t n = 0; n < shape.n; ++n) {
            size_t at = plane_at(shape, n, c);

            for (size_t i = at; i < at + plane; ++i) {
                double normal = ((double)y[i] - mean) * inv_std;
                double z = (double)norm.gamma[c] * normal + (double)norm.beta[c];

                a[i] = z > 0 ? (float)z : 0.0f;
            }
        }
    }
}

/* One channel of the backward pass. With g = da where ReLU let z pass and
 * normal = (y - mean) * inv_std:
 *
 *   dbeta = sum g,  dgamma = sum g * normal,
 *   dy = gamma * inv_std * (g - mean(g) - normal * mean(g * normal)).
 */
typedef struct norm_channel {
    double gamma, beta, mean, inv_std;
    double dgamma, dbeta;
} norm_channel;

static double normal_of(const norm_channel *ch, float y)
{
    return ((double)y - ch->mean) * ch->inv_std;
}

static double relu_gradient(const norm_channel *ch, double normal, float da)
{
    return ch->gamma * normal + ch->beta > 0 ? (double)da : 0;
}

static void sum_norm_gradients(norm_channel *ch, const float *da,
                               const float *y, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        double normal = normal_of(ch, y[i]);
        double g = relu_gradient(ch, normal, da[i]);

        ch->dbeta += g;
        ch->dgamma += g * normal;
    }
}

static void write_norm_gradient(const norm_channel *ch, double elements,
                                const float *da, float *y_dy, size_t count)
{
    double mean_g = ch->dbeta / elements;
    double mean_g_normal = ch->dgamma / elements;
    double factor = ch->gamma * ch->inv_std;

    for (size_t i = 0; i < count; ++i) {
        double normal = normal_of(ch, y_dy[i]);
        double g = relu_gradient(ch, normal, da[i]);

        y_dy[i] = (float)(factor * (g - mean_g - normal * mean_g_normal));
    }
}

void batch_norm_relu_backward(tensor_shape shape, batch_norm norm,
                              const batch_statistics *statistics,
                              const float *da, float *y_dy, float *dgamma,
                              float *dbeta)
{
    size_t plane = shape.h * shape.w;
    double elements = (double)(shape.n * plane);

    for (size_t c = 0; c < shape.c; ++c) {
        norm_channel ch = {(double)norm.gamma[c],
                           (double)norm.beta[c],
                           statistics[c].mean,
                           statistics[c].inv_std,
                           0,
                           0};

        for (size_t n = 0; n < shape.n; ++n) {
            size_t at = plane_at(shape, n, c);

            sum_norm_gradients(&ch, da + at, y_dy + at, plane);
        }
        for (size_t n = 0; n < shape.n; ++n) {
            size_t at = plane_at(shape, n, c);

            write_norm_gradient(&ch, elements, da + at, y_dy + at, plane);
        }
        dgamma[c] = (float)ch.dgamma;
        dbeta[c] = (float)ch.dbeta;
    }
}

/* ---- Pooling -------------------------------------------------------- */

/* The four values of a window, by their offset from the first. */
static size_t largest_of_window(const float *window, size_t w)
{
    const size_t offsets[4] = {0, 1, w, w + 1};
    size_t best = 0;

    for (size_t i = 1; i < 4; ++i) {
        if (window[offsets[i]] > window[best])
            best = offsets[i];
    }
    return best;
}

void max_pool_forward(tensor_shape shape, const float *a, float *pooled)
{
    for (size_t plane = 0; plane < shape.n * shape.c; ++plane) {
        const float *from = a + plane * shape.h * shape.w;

        for (size_t p = 0; p < shape.h / 2; ++p) {
            for (size_t q = 0; q < shape.w / 2; ++q) {
                const float *window = from + 2 * p * shape.w + 2 * q;

                *pooled++ = window[largest_of_window(window, shape.w)];
            }
        }
    }
}

static void max_pool_backward_row(size_t w, const float *dpooled, float *a_da)
{
    for (size_t q = 0; q < w / 2; ++q) {
        float *window = a_da + 2 * q;
        size_t best = largest_of_window(window, w);

        window[0] = window[1] = window[w] = window[w + 1] = 0;
        window[best] = dpooled[q];
    }
    if (w % 2)
        a_da[w - 1] = a_da[2 * w - 1] = 0;
}

void max_pool_backward(tensor_shape shape, const float *dpooled, float *a_da)
{
    for (size_t plane = 0; plane < shape.n * shape.c; ++plane) {
        float *row = a_da + plane * shape.h * shape.w;

        for (size_t p = 0; p < shape.h / 2; ++p) {
            max_pool_backward_row(shape.w, dpooled, row);
            dpooled += shape.w / 2;
            row += 2 * shape.w;
        }
        if (shape.h % 2)
            memset(row, 0, shape.w * sizeof(*row));
    }
}

void average_pool_forward(tensor_shape shape, const float *a, float *features)
{
    size_t plane = shape.h * shape.w;

    for (size_t i = 0; i < shape.n * shape.c; ++i) {
        double sum = 0;

        for (size_t j = 0; j < plane; ++j)
            sum += (double)a[i * plane + j];
        features[i] = (float)(sum / (double)plane);
    }
}

void average_pool_backward(tensor_shape shape, const float *dfeatures, float *da)
{
    size_t plane = shape.h * shape.w;

    for (size_t i = 0; i < shape.n * shape.c; ++i) {
        float share = (float)((double)dfeatures[i] / (double)plane);

        for (size_t j = 0; j < plane; ++j)
            da[i * plane + j] = share;
    }
}

/* ---- Linear layer and loss ------------------------------------------ */

void linear_forward(linear layer, size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; ++i) {
        for (size_t o = 0; o < layer.outputs; ++o) {
            double sum = (double)layer.bias[o];

            for (size_t k = 0; k < layer.inputs; ++k)
                sum += (double)layer.weights[o * layer.inputs + k] *
                       (double)x[i * layer.inputs + k];
            y[i * layer.outputs + o] = (float)sum;
        }
    }
}

static void linear_dx(linear layer, size_t n, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < layer.inputs; ++k) {
            double sum = 0;

            for (size_t o = 0; o < layer.outputs; ++o)
                sum += (double)dy[i * layer.outputs + o] *
                       (double)layer.weights[o * layer.inputs + k];
            dx[i * layer.inputs + k] = (float)sum;
        }
    }
}

static void linear_dweights(linear layer, size_t n, const float *x,
                            const float *dy, float *dweights)
{
    for (size_t o = 0; o < layer.outputs; ++o) {
        for (size_t k = 0; k < layer.inputs; ++k) {
            double sum = 0;

            for (size_t i = 0; i < n; ++i)
                sum += (double)dy[i * layer.outputs + o] *
                       (double)x[i * layer.inputs + k];
            dweights[o * layer.inputs + k] = (float)sum;
        }
    }
}

void linear_backward(linear layer, size_t n, const float *x, const float *dy,
                     float *dweights, float *dbias, float *dx)
{
    linear_dweights(layer, n, x, dy, dweights);
    for (size_t o = 0; o < layer.outputs; ++o) {
        double sum = 0;

        for (size_t i = 0; i < n; ++i)
            sum += (double)dy[i * layer.outputs + o];
        dbias[o] = (float)sum;
    }
    linear_dx(layer, n, dy, dx);
}

/* log(sum exp(logits)), safe from overflow. */
static double log_sum_exp(size_t classes, const float *logits)
{
    double largest = (double)logits[0];
    double sum = 0;

    for (size_t k = 1; k < classes; ++k)
        largest = fmax(largest, (double)logits[k]);
    for (size_t k = 0; k < classes; ++k)
        sum += exp((double)logits[k] - largest);
    return largest + log(sum);
}

double cross_entropy(size_t n, size_t classes, const float *logits,
                     const unsigned char *labels, float *dlogits)
{
    double loss = 0;

    for (size_t i = 0; i < n; ++i) {
        const float *row = logits + i * classes;
        double total = log_sum_exp(classes, row);

        loss += total - (double)row[labels[i]];
        for (size_t k = 0; k < classes; ++k) {
            double target = k == labels[i] ? 1 : 0;
            double probability = exp((double)row[k] - total);

            dlogits[i * classes + k] =
                (float)((probability - target) / (double)n);
        }
    }
    return loss / (double)n;
}
