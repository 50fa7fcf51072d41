/*
 * Planes get a border of one zero and are then seen as one long row of
 * length = size * (size + 2) elements, counted from the first inner row. A
 * tap (r, s) is a constant distance r * (size + 2) + s in it, so both
 * gradients become long loops without edges:
 *
 *   dw[k][c][r][s] = sum over i of dy[k][i] * x[c][i + distance(r,s)]
 *   dx[c][i] = sum over k,r,s of dy[k][i + distance(2-r,2-s)] * w[k][c][r][s]
 *
 * The two border elements of a row are zero in dy, so they add nothing to dw;
 * dx computes them as well and drops them. The sums of a loop are vectors of
 * LANES doubles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conv_fp64.h"

#include <stdlib.h>
#include <string.h>

/* Two doubles: the vector that every 64-bit machine has. */
#define LANES 2
#define STEP (4 * LANES)

/* A vector in a register, and one that may lie at any double in memory. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef double lanes_at __attribute__((vector_size(LANES * sizeof(double)),
                                       aligned(8), __may_alias__));

/* ---- Memory --------------------------------------------------------- */

static double *zeros(size_t count)
{
    return calloc(count, sizeof(double));
}

bool conv_fp64_open(conv_shape shape, const float *w, conv_fp64 *out)
{
    conv_fp64 t = {.shape = shape, .w = w};

    t.row = shape.size + 2;
    t.length = (shape.size * t.row + STEP - 1) / STEP * STEP;
    t.stride = t.length + 2 * t.row + LANES;
    t.dw = zeros(conv_w_count(shape));
    t.db = zeros(shape.k);
    t.db_abs = zeros(shape.k);
    t.dx = zeros(shape.c * shape.size * shape.size);
    t.x_planes = zeros(shape.c * t.stride);
    t.dy_planes = zeros(shape.k * t.stride);
    if (!t.dw || !t.db || !t.db_abs || !t.dx || !t.x_planes || !t.dy_planes) {
        conv_fp64_close(&t);
        return false;
    }
    *out = t;
    return true;
}

void conv_fp64_close(conv_fp64 *truth)
{
    free(truth->dw);
    free(truth->db);
    free(truth->db_abs);
    free(truth->dx);
    free(truth->x_planes);
    free(truth->dy_planes);
    *truth = (conv_fp64){0};
}

/* The border stays as calloc() made it. */
static void fill_planes(const conv_fp64 *t, const float *from, size_t count,
                        double *planes)
{
    size_t size = t->shape.size;

    for (size_t i = 0; i < count; ++i) {
        double *inner = planes + i * t->stride + t->row + 1;

        for (size_t h = 0; h < size; ++h) {
            for (size_t w = 0; w < size; ++w)
                inner[h * t->row + w] = (double)*from++;
        }
    }
}

/* ---- db ------------------------------------------------------------- */

static void add_db(conv_fp64 *t, const float *dy)
{
    size_t plane = t->shape.size * t->shape.size;

    for (size_t k = 0; k < t->shape.k; ++k) {
        for (size_t i = 0; i < plane; ++i) {
            double value = (double)dy[k * plane + i];

            t->db[k] += value;
            t->db_abs[k] += value < 0 ? -value : value;
        }
    }
}

/* ---- dw ------------------------------------------------------------- */

/* One filter: nine sums over the same dy, each with x at its distance. */
static void add_filter(const double *dy, const double *x, size_t length,
                       size_t row, double *dw)
{
    lanes sums[CONV_TAPS] = {{0}};

    for (size_t i = 0; i < length; i += LANES) {
        const lanes d = *(const lanes_at *)(dy + i);

        for (size_t r = 0; r < 3; ++r) {
            const double *at = x + i + r * row;

            sums[3 * r] += d * *(const lanes_at *)at;
            sums[3 * r + 1] += d * *(const lanes_at *)(at + 1);
            sums[3 * r + 2] += d * *(const lanes_at *)(at + 2);
        }
    }
    for (size_t tap = 0; tap < CONV_TAPS; ++tap) {
        for (size_t lane = 0; lane < LANES; ++lane)
            dw[tap] += sums[tap][lane];
    }
}

static void add_dw(conv_fp64 *t)
{
    size_t c_count = t->shape.c;

    for (size_t k = 0; k < t->shape.k; ++k) {
        const double *dy = t->dy_planes + k * t->stride + t->row + 1;

        for (size_t c = 0; c < c_count; ++c)
            add_filter(dy, t->x_planes + c * t->stride, t->length, t->row,
                       t->dw + (k * c_count + c) * CONV_TAPS);
    }
}

/* ---- dx ------------------------------------------------------------- */

/* STEP elements of one dx plane from one dy plane: sums += dy * filter, the
 * filter turned by 180 degrees. */
static void add_step(const double *dy, size_t stride, size_t k_count,
                     const float *filters, size_t filter_stride, size_t row,
                     double *out)
{
    lanes a = {0}, b = {0}, c = {0}, d = {0};

    for (size_t k = 0; k < k_count; ++k) {
        const double *plane = dy + k * stride;
        const float *filter = filters + k * filter_stride;

        for (size_t tap = 0; tap < CONV_TAPS; ++tap) {
            const double *at = plane + tap / 3 * row + tap % 3;
            double weight = (double)filter[CONV_TAPS - 1 - tap];

            a += weight * *(const lanes_at *)at;
            b += weight * *(const lanes_at *)(at + LANES);
            c += weight * *(const lanes_at *)(at + 2 * LANES);
            d += weight * *(const lanes_at *)(at + 3 * LANES);
        }
    }
    *(lanes_at *)out = a;
    *(lanes_at *)(out + LANES) = b;
    *(lanes_at *)(out + 2 * LANES) = c;
    *(lanes_at *)(out + 3 * LANES) = d;
}

/* Copies the elements of one step that are not border into the dx plane. */
static void keep_inner(const conv_fp64 *t, const double *step, size_t i,
                       double *dx)
{
    size_t size = t->shape.size;
    size_t h = i / t->row, w = i % t->row;

    for (size_t j = 0; j < STEP && h < size; ++j) {
        if (w < size)
            dx[h * size + w] = step[j];
        if (++w == t->row) {
            w = 0;
            ++h;
        }
    }
}

static void compute_dx(conv_fp64 *t)
{
    size_t c_count = t->shape.c, size = t->shape.size;
    double step[STEP];

    for (size_t i = 0; i < t->length; i += STEP) {
        for (size_t c = 0; c < c_count; ++c) {
            add_step(t->dy_planes + i, t->stride, t->shape.k,
                     t->w + c * CONV_TAPS, c_count * CONV_TAPS, t->row, step);
            keep_inner(t, step, i, t->dx + c * size * size);
        }
    }
}

void conv_fp64_add_image(conv_fp64 *truth, const float *x, const float *dy)
{
    fill_planes(truth, x, truth->shape.c, truth->x_planes);
    fill_planes(truth, dy, truth->shape.k, truth->dy_planes);
    add_db(truth, dy);
    add_dw(truth);
    compute_dx(truth);
}
