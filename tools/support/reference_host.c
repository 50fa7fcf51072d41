/*
 * The reference in plain loops, one element at a time, straight from the
 * definition in the public header: it shares no index arithmetic with the
 * kernels but shape.c's, which the tests check.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "reference.h"

#include <inttypes.h>
#include <math.h>

#include "message.h"

/* ---- One element -------------------------------------------------------- */

typedef struct sum {
    double value, magnitude;
} sum;

static void add_product(sum *total, float a, float b)
{
    double product = (double)a * (double)b;

    total->value += product;
    total->magnitude += fabs(product);
}

static bool inside(int64_t index, int64_t size)
{
    return index >= 0 && index < size;
}

/* dy[p][q] of one image and filter, x[h][w] of one image and channel. */
static void add_dw_image(const shape *z, const float *x, const float *dy,
                         int64_t r, int64_t s, sum *total)
{
    for (int64_t p = 0; p < z->p; ++p) {
        int64_t h = shape_input_row(z, p, r);

        for (int64_t q = 0; q < z->q && inside(h, z->h); ++q) {
            int64_t w = shape_input_column(z, q, s);

            if (inside(w, z->w))
                add_product(total, dy[p * z->q + q], x[h * z->w + w]);
        }
    }
}

double reference_dw_element(const shape *z, const float *x, const float *dy,
                            size_t index, double *magnitude)
{
    int64_t i = (int64_t)index;
    int64_t s = i % z->s, r = i / z->s % z->r;
    int64_t c = i / (z->s * z->r) % z->cg, k = i / (z->s * z->r * z->cg);
    int64_t channel = k / z->kg * z->cg + c;
    sum total = {0, 0};

    for (int64_t n = 0; n < z->n; ++n)
        add_dw_image(z, x + (n * z->c + channel) * z->h * z->w,
                     dy + (n * z->k + k) * z->p * z->q, r, s, &total);
    if (magnitude)
        *magnitude = total.magnitude;
    return total.value;
}

/* dy[p][q] of one image and filter, filter[r][s] of that and one channel. */
static void add_dx_filter(const shape *z, const float *filter, const float *dy,
                          int64_t h, int64_t w, sum *total)
{
    for (int64_t r = 0; r < z->r; ++r) {
        int64_t p, q;

        if (!shape_output_row(z, h, r, &p) || !inside(p, z->p))
            continue;
        for (int64_t s = 0; s < z->s; ++s) {
            if (shape_output_column(z, w, s, &q) && inside(q, z->q))
                add_product(total, dy[p * z->q + q], filter[r * z->s + s]);
        }
    }
}

double reference_dx_element(const shape *z, const float *w, const float *dy,
                            size_t index, double *magnitude)
{
    int64_t i = (int64_t)index;
    int64_t column = i % z->w, row = i / z->w % z->h;
    int64_t channel = i / (z->w * z->h) % z->c, n = i / (z->w * z->h * z->c);
    int64_t group = channel / z->cg, c = channel % z->cg;
    sum total = {0, 0};

    for (int64_t k = group * z->kg; k < (group + 1) * z->kg; ++k)
        add_dx_filter(z, w + (k * z->cg + c) * z->r * z->s,
                      dy + (n * z->k + k) * z->p * z->q, row, column, &total);
    if (magnitude)
        *magnitude = total.magnitude;
    return total.value;
}

void reference_db(const shape *z, const float *dy, double *db)
{
    int64_t area = z->p * z->q;

    for (int64_t k = 0; k < z->k; ++k) {
        double total = 0;

        for (int64_t n = 0; n < z->n; ++n) {
            const float *image = dy + (n * z->k + k) * area;

            for (int64_t i = 0; i < area; ++i)
                total += (double)image[i];
        }
        db[k] = total;
    }
}

/* ---- Forward ------------------------------------------------------------ */

/* One tap: a plane of x, times one weight, onto a plane of y. */
static void add_tap(const shape *z, const float *x, double weight, int64_t r,
                    int64_t s, double *y)
{
    for (int64_t p = 0; p < z->p; ++p) {
        int64_t h = shape_input_row(z, p, r);

        for (int64_t q = 0; q < z->q && inside(h, z->h); ++q) {
            int64_t w = shape_input_column(z, q, s);

            if (inside(w, z->w))
                y[p * z->q + q] += weight * (double)x[h * z->w + w];
        }
    }
}

/* Plane k of one image. */
static void sum_plane(const shape *z, const float *x, const float *w, int64_t k,
                      double *y)
{
    const float *group = x + k / z->kg * z->cg * z->h * z->w;

    for (int64_t i = 0; i < z->p * z->q; ++i)
        y[i] = 0;
    for (int64_t c = 0; c < z->cg; ++c)
        for (int64_t r = 0; r < z->r; ++r)
            for (int64_t s = 0; s < z->s; ++s)
                add_tap(z, group + c * z->h * z->w,
                        (double)w[((k * z->cg + c) * z->r + r) * z->s + s], r,
                        s, y);
}

void reference_y(const shape *z, const float *x, const float *w, double *y)
{
    for (int64_t n = 0; n < z->n; ++n)
        for (int64_t k = 0; k < z->k; ++k)
            sum_plane(z, x + n * z->c * z->h * z->w, w, k,
                      y + (n * z->k + k) * z->p * z->q);
}

/* ---- Samples ------------------------------------------------------------ */

typedef double element_fn(const shape *z, const float *operand, const float *dy,
                          size_t index, double *magnitude);

/* Sums of 2^40 products in different orders differ by less than this. */
static bool agrees(double a, double b, double magnitude)
{
    return fabs(a - b) <= 0x1p-40 * magnitude;
}

static bool sample(const char *name, element_fn *element, const shape *z,
                   const float *operand, const float *dy, const double *got,
                   size_t size, size_t count, random_source *random)
{
    for (size_t i = 0; i < count && size > 0; ++i) {
        size_t index = (size_t)random_below(random, size);
        double magnitude;
        double expected = element(z, operand, dy, index, &magnitude);

        if (!agrees(got[index], expected, magnitude)) {
            message_error("the reference itself is wrong: %s[%zu] is %.17g on "
                          "the device, %.17g by plain loops",
                          name, index, got[index], expected);
            return false;
        }
    }
    return true;
}

bool reference_agrees_dw(const shape *z, const float *x, const float *dy,
                         const double *dw, size_t count, random_source *random)
{
    return sample("dw", reference_dw_element, z, x, dy, dw, shape_w_count(z),
                  count, random);
}

bool reference_agrees_dx(const shape *z, const float *w, const float *dy,
                         const double *dx, size_t count, random_source *random)
{
    return sample("dx", reference_dx_element, z, w, dy, dx, shape_x_count(z),
                  count, random);
}
