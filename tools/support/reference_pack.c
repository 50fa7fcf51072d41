/*
 * Only what a tap can reach is copied: rows and columns that no output reads
 * are left out, padding is written as 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "reference_pack.h"

#include <string.h>

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- Sizes -------------------------------------------------------------- */

/* Places of a phase in a row of dx, padding on the left included. */
static int64_t dx_places(const shape *z)
{
    return (z->w + z->pad_left + z->stride_w - 1) / z->stride_w;
}

static bool is_small(double floats)
{
    return floats <= (double)REFERENCE_MAX_PACKED;
}

bool reference_sizes_from(const shape *z, int64_t n, reference_sizes *out)
{
    int64_t reach = (z->s - 1) * z->dilation_w / z->stride_w;
    int64_t q_read = round_up(z->q, REFERENCE_LANES);
    int64_t places = round_up(dx_places(z), REFERENCE_DX_COLUMNS);
    int64_t x_width = larger(dx_places(z), reach + q_read);
    int64_t h_padded = (z->p - 1) * z->stride_h + (z->r - 1) * z->dilation_h + 1;
    int64_t dy_width = reach + larger(q_read, places);
    double x_row = (double)z->stride_w * (double)x_width;

    if (!is_small(x_row * (double)z->c * (double)h_padded) ||
        !is_small((double)dy_width * (double)z->k * (double)z->p) ||
        !is_small((double)n * (double)larger(z->p, z->h)))
        return false;
    *out = (reference_sizes){.n = (cl_int)n,
                             .c = (cl_int)z->c,
                             .h = (cl_int)z->h,
                             .w = (cl_int)z->w,
                             .k = (cl_int)z->k,
                             .r = (cl_int)z->r,
                             .s = (cl_int)z->s,
                             .stride_h = (cl_int)z->stride_h,
                             .stride_w = (cl_int)z->stride_w,
                             .pad_top = (cl_int)z->pad_top,
                             .pad_left = (cl_int)z->pad_left,
                             .dilation_h = (cl_int)z->dilation_h,
                             .dilation_w = (cl_int)z->dilation_w,
                             .groups = (cl_int)z->groups,
                             .cg = (cl_int)z->cg,
                             .kg = (cl_int)z->kg,
                             .p = (cl_int)z->p,
                             .q = (cl_int)z->q,
                             .h_padded = (cl_int)h_padded,
                             .x_width = (cl_int)x_width,
                             .dy_width = (cl_int)dy_width,
                             .dy_left = (cl_int)reach};
    return true;
}

size_t reference_packed_x(const reference_sizes *g)
{
    return (size_t)g->c * (size_t)g->h_padded * (size_t)g->stride_w *
           (size_t)g->x_width;
}

size_t reference_packed_dy(const reference_sizes *g)
{
    return (size_t)g->k * (size_t)g->p * (size_t)g->dy_width;
}

size_t reference_packed_w(const reference_sizes *g)
{
    size_t blocks = (size_t)round_up(g->cg, REFERENCE_DX_CHANNELS);

    return (size_t)g->groups * blocks * (size_t)g->kg * (size_t)g->r *
           (size_t)g->s;
}

int64_t reference_place_blocks(const reference_sizes *g)
{
    int64_t places =
        ((int64_t)g->w + g->pad_left + g->stride_w - 1) / g->stride_w;

    return (places + REFERENCE_DX_COLUMNS - 1) / REFERENCE_DX_COLUMNS;
}

/* ---- Packing ------------------------------------------------------------ */

/* One input row into its phases. */
static void pack_x_row(const reference_sizes *g, const float *row, float *out)
{
    int64_t end = (int64_t)g->stride_w * g->x_width;

    for (int64_t w = 0; w < g->w && w + g->pad_left < end; ++w) {
        int64_t j = w + g->pad_left;

        out[j % g->stride_w * g->x_width + j / g->stride_w] = row[w];
    }
}

void reference_pack_x(const reference_sizes *g, const float *x, float *out)
{
    size_t row_size = (size_t)g->stride_w * (size_t)g->x_width;
    size_t images = (size_t)g->n * (size_t)g->c;

    memset(out, 0, (size_t)g->n * reference_packed_x(g) * sizeof(*out));
    for (size_t i = 0; i < images; ++i) {
        const float *from = x + i * (size_t)g->h * (size_t)g->w;
        float *to = out + i * (size_t)g->h_padded * row_size;

        for (int64_t h = 0; h < g->h && h + g->pad_top < g->h_padded; ++h)
            pack_x_row(g, from + h * g->w,
                       to + (size_t)(h + g->pad_top) * row_size);
    }
}

void reference_pack_dy(const reference_sizes *g, const float *dy, float *out)
{
    size_t rows = (size_t)g->n * (size_t)g->k * (size_t)g->p;
    size_t q = (size_t)g->q, left = (size_t)g->dy_left;
    size_t width = (size_t)g->dy_width;

    for (size_t i = 0; i < rows; ++i, out += width, dy += q) {
        memset(out, 0, left * sizeof(*out));
        memcpy(out + left, dy, q * sizeof(*out));
        memset(out + left + q, 0, (width - left - q) * sizeof(*out));
    }
}

/* One block of channels of one filter: [r][s][8] from [8][r][s]. */
static double *pack_w_block(const reference_sizes *g, const float *w,
                            int64_t channels, double *out)
{
    int64_t taps = (int64_t)g->r * g->s;

    for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t i = 0; i < REFERENCE_DX_CHANNELS; ++i)
            *out++ = i < channels ? (double)w[i * taps + tap] : 0.0;
    }
    return out;
}

void reference_pack_w(const reference_sizes *g, const float *w, double *out)
{
    int64_t taps = (int64_t)g->r * g->s;

    for (int64_t group = 0; group < g->groups; ++group) {
        for (int64_t c = 0; c < g->cg; c += REFERENCE_DX_CHANNELS) {
            for (int64_t k = 0; k < g->kg; ++k) {
                int64_t filter = group * g->kg + k;

                out = pack_w_block(g, w + (filter * g->cg + c) * taps,
                                   g->cg - c, out);
            }
        }
    }
}
