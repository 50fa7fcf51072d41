/*
 * Only in-bounds taps are visited, so a NaN spreads exactly as far as the
 * definition says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "naive.h"

#include <string.h>

typedef struct shape {
    const clconv_desc *d;
    int64_t p, q, group_c, group_k;
} shape;

static int64_t output_size(int64_t in, int64_t before, int64_t after,
                           int64_t filter, int64_t dilation, int64_t stride)
{
    return (in + before + after - dilation * (filter - 1) - 1) / stride + 1;
}

static shape shape_of(const clconv_desc *d)
{
    return (shape){
        .d = d,
        .p = output_size(d->h, d->pad_top, d->pad_bottom, d->r, d->dilation_h,
                         d->stride_h),
        .q = output_size(d->w, d->pad_left, d->pad_right, d->s, d->dilation_w,
                         d->stride_w),
        .group_c = d->c / d->groups,
        .group_k = d->k / d->groups,
    };
}

int64_t naive_x_elements(const clconv_desc *d, int64_t batch)
{
    return batch * d->c * d->h * d->w;
}

int64_t naive_w_elements(const clconv_desc *d)
{
    return d->k * (d->c / d->groups) * d->r * d->s;
}

int64_t naive_dy_elements(const clconv_desc *d, int64_t batch)
{
    shape s = shape_of(d);
    return batch * d->k * s.p * s.q;
}

/* Index into a dense tensor of `channels` planes of rows x columns. */
static int64_t at(clconv_layout layout, int64_t channels, int64_t rows,
                  int64_t columns, int64_t image, int64_t channel, int64_t row,
                  int64_t column)
{
    if (layout == CLCONV_NCHW)
        return ((image * channels + channel) * rows + row) * columns + column;
    return ((image * rows + row) * columns + column) * channels + channel;
}

static void add_product(double *sum, double *squares, int64_t i, double a,
                        double b)
{
    if (sum)
        sum[i] += a * b;
    if (squares)
        squares[i] += a * a * b * b;
}

/* All taps of one element of dY. */
static void add_taps(const shape *s, const naive_data *in,
                     const naive_result *out, int64_t n, int64_t k, int64_t p,
                     int64_t q)
{
    const clconv_desc *d = s->d;
    double dy = (double)in->dy[at(d->layout, d->k, s->p, s->q, n, k, p, q)];
    int64_t first_c = k / s->group_k * s->group_c;
    for (int64_t c = 0; c < s->group_c; ++c)
        for (int64_t r = 0; r < d->r; ++r)
            for (int64_t t = 0; t < d->s; ++t) {
                int64_t h = p * d->stride_h + r * d->dilation_h - d->pad_top;
                int64_t w = q * d->stride_w + t * d->dilation_w - d->pad_left;
                if (h < 0 || h >= d->h || w < 0 || w >= d->w)
                    continue;
                int64_t x =
                    at(d->layout, d->c, d->h, d->w, n, first_c + c, h, w);
                int64_t f = at(d->layout, s->group_c, d->r, d->s, k, c, r, t);
                if (in->x)
                    add_product(out->dw, out->dw_squares, f, dy,
                                (double)in->x[x]);
                if (in->w)
                    add_product(out->dx, out->dx_squares, x, dy,
                                (double)in->w[f]);
            }
    if (out->db)
        out->db[k] += dy;
}

static void clear(double *values, int64_t count)
{
    if (values)
        memset(values, 0, (size_t)count * sizeof *values);
}

void naive_backward(const clconv_desc *d, int64_t batch, const naive_data *data,
                    const naive_result *out)
{
    shape s = shape_of(d);
    clear(out->dw, naive_w_elements(d));
    clear(out->dw_squares, naive_w_elements(d));
    clear(out->dx, naive_x_elements(d, batch));
    clear(out->dx_squares, naive_x_elements(d, batch));
    clear(out->db, d->k);
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t k = 0; k < d->k; ++k)
            for (int64_t p = 0; p < s.p; ++p)
                for (int64_t q = 0; q < s.q; ++q)
                    add_taps(&s, data, out, n, k, p, q);
}
