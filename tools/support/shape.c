/*
 * Sizes are at most 2^40 elements a tensor, so that no product of two of
 * them with an element size leaves 64 bits once shape_from_desc() has passed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "shape.h"

/* ---- Making ------------------------------------------------------------- */

/* (size + pads - reach of the filter) / stride + 1; 0 or less: no output. */
static int64_t output_size(int64_t size, int64_t pads, int64_t taps,
                           int64_t dilation, int64_t stride)
{
    int64_t room = size + pads - dilation * (taps - 1) - 1;

    return room < 0 ? 0 : room / stride + 1;
}

/* Limits that keep output_size() within 64 bits. */
static bool in_range(const clconv_desc *d)
{
    const int64_t sizes[] = {
        d->c,        d->h,        d->w,          d->k,          d->r,     d->s,
        d->stride_h, d->stride_w, d->dilation_h, d->dilation_w, d->groups};
    const int64_t pads[] = {d->pad_top, d->pad_bottom, d->pad_left,
                            d->pad_right, d->n};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        if (sizes[i] < 1 || sizes[i] > INT32_MAX)
            return false;
    }
    for (size_t i = 0; i < sizeof(pads) / sizeof(pads[0]); ++i) {
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return false;
    }
    return d->c % d->groups == 0 && d->k % d->groups == 0;
}

static bool fits(int64_t a, int64_t b, int64_t c, int64_t d)
{
    double count = (double)a * (double)b * (double)c * (double)d;

    return count <= (double)SHAPE_MAX_ELEMENTS;
}

bool shape_from_desc(const clconv_desc *d, shape *out)
{
    shape z = {.n = d->n,
               .c = d->c,
               .h = d->h,
               .w = d->w,
               .k = d->k,
               .r = d->r,
               .s = d->s,
               .stride_h = d->stride_h,
               .stride_w = d->stride_w,
               .pad_top = d->pad_top,
               .pad_bottom = d->pad_bottom,
               .pad_left = d->pad_left,
               .pad_right = d->pad_right,
               .dilation_h = d->dilation_h,
               .dilation_w = d->dilation_w,
               .groups = d->groups};

    if (!in_range(d))
        return false;
    z.p = output_size(z.h, z.pad_top + z.pad_bottom, z.r, z.dilation_h,
                      z.stride_h);
    z.q = output_size(z.w, z.pad_left + z.pad_right, z.s, z.dilation_w,
                      z.stride_w);
    z.cg = z.c / z.groups;
    z.kg = z.k / z.groups;
    if (z.p < 1 || z.q < 1 || !fits(z.n, z.c, z.h, z.w) ||
        !fits(z.k, z.cg, z.r, z.s) || !fits(z.n, z.k, z.p, z.q))
        return false;
    *out = z;
    return true;
}

/* ---- Counts ------------------------------------------------------------- */

size_t shape_x_count(const shape *z)
{
    return (size_t)(z->n * z->c * z->h * z->w);
}

size_t shape_w_count(const shape *z)
{
    return (size_t)(z->k * z->cg * z->r * z->s);
}

size_t shape_dy_count(const shape *z)
{
    return (size_t)(z->n * z->k * z->p * z->q);
}

double shape_dw_depth(const shape *z)
{
    return (double)(z->n * z->p) * (double)z->q;
}

double shape_dx_depth(const shape *z)
{
    return (double)(z->kg * z->r) * (double)z->s;
}

double shape_gflop(const shape *z)
{
    return 2e-9 * (double)shape_w_count(z) * shape_dw_depth(z);
}

/* ---- Taps --------------------------------------------------------------- */

int64_t shape_input_row(const shape *z, int64_t p, int64_t r)
{
    return p * z->stride_h + r * z->dilation_h - z->pad_top;
}

int64_t shape_input_column(const shape *z, int64_t q, int64_t s)
{
    return q * z->stride_w + s * z->dilation_w - z->pad_left;
}

/* offset is the position in the padded input, less the tap's. */
static bool on_stride(int64_t offset, int64_t stride, int64_t *index)
{
    /* Rounds down also below 0, where C's % would not. */
    int64_t rest = (offset % stride + stride) % stride;

    *index = (offset - rest) / stride;
    return rest == 0;
}

bool shape_output_row(const shape *z, int64_t h, int64_t r, int64_t *p)
{
    return on_stride(h + z->pad_top - r * z->dilation_h, z->stride_h, p);
}

bool shape_output_column(const shape *z, int64_t w, int64_t s, int64_t *q)
{
    return on_stride(w + z->pad_left - s * z->dilation_w, z->stride_w, q);
}
