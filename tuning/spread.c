/*
 * The sum over all elements needs no element. For dW each k of a group meets
 * each c of it, and with squares summed over these channels,
 *     A[p][q] = sum over k of dY^2,  B[h][w] = sum over c of X^2,
 * it is the sum over n, groups, p, q and the taps r, s inside the input of
 * A[p][q] * B[h][w]. For dX a k meets its own filter alone, and with
 *     D[r][s] = sum over c of W^2
 * it is the sum over n, k, p, q, r, s of dY^2[p][q] * D[r][s].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "spread.h"

#include <stdlib.h>

/* Adds squares of the channels at values, into plane[rows][columns]. */
static void fold(const float *values, const clconv_strides *stride,
                 int64_t channels, int64_t rows, int64_t columns, double *plane)
{
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
                double value =
                    (double)values[c * stride->channel + i * stride->row +
                                   j * stride->column];
                plane[i * columns + j] += value * value;
            }
}

static void clear(double *plane, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        plane[i] = 0;
}

/* Channels of dY that are summed before they meet the other factor. */
typedef struct block {
    int64_t first, count;
} block;

static void fold_dy(const clconv_problem *p, const float *dy, int64_t image,
                    const block *k, double *plane)
{
    clconv_strides s = clconv_problem_strides(p, CLCONV_DY);
    clear(plane, p->p * p->q);
    fold(dy + image * s.image + k->first * s.channel, &s, k->count, p->p, p->q,
         plane);
}

static void fold_x(const clconv_problem *p, const float *x, int64_t image,
                   const block *k, double *plane)
{
    clconv_strides s = clconv_problem_strides(p, CLCONV_X);
    int64_t group = k->first / p->group_k;
    clear(plane, p->h * p->w);
    fold(x + image * s.image + group * p->group_c * s.channel, &s, p->group_c,
         p->h, p->w, plane);
}

static void fold_w(const clconv_problem *p, const float *w, const block *k,
                   double *plane)
{
    clconv_strides s = clconv_problem_strides(p, CLCONV_W);
    clear(plane, p->r * p->s);
    fold(w + k->first * s.image, &s, p->group_c, p->r, p->s, plane);
}

/* What the taps of output pixel (row, column) add for each unit of A. */
static double sum_taps(const clconv_problem *p, clconv_tensor output,
                       int64_t row, int64_t column, const double *other)
{
    double sum = 0;
    for (int64_t r = 0; r < p->r; ++r)
        for (int64_t s = 0; s < p->s; ++s) {
            int64_t h = row * p->stride_h + r * p->dilation_h - p->pad_top;
            int64_t w = column * p->stride_w + s * p->dilation_w - p->pad_left;
            if (h < 0 || h >= p->h || w < 0 || w >= p->w)
                continue;
            sum += other[output == CLCONV_DW ? h * p->w + w : r * p->s + s];
        }
    return sum;
}

static double sum_plane(const clconv_problem *p, clconv_tensor output,
                        const double *dy, const double *other)
{
    double sum = 0;
    for (int64_t row = 0; row < p->p; ++row)
        for (int64_t column = 0; column < p->q; ++column) {
            double a = dy[row * p->q + column];
            sum += output == CLCONV_DB
                       ? a
                       : a * sum_taps(p, output, row, column, other);
        }
    return sum;
}

bool clconv_spread_squares(const clconv_problem *p, clconv_tensor output,
                           const float *dy, const float *other, double *out)
{
    size_t planes = (size_t)(p->p * p->q + p->h * p->w + p->r * p->s);
    double *dy_plane = malloc(planes * sizeof *dy_plane);
    if (!dy_plane)
        return false;
    double *x_plane = dy_plane + p->p * p->q, *w_plane = x_plane + p->h * p->w;
    block k = {0, output == CLCONV_DW ? p->group_k : 1};
    double sum = 0;
    for (; k.first < p->k; k.first += k.count) {
        if (output == CLCONV_DX)
            fold_w(p, other, &k, w_plane);
        for (int64_t image = 0; image < p->n; ++image) {
            fold_dy(p, dy, image, &k, dy_plane);
            if (output == CLCONV_DW)
                fold_x(p, other, image, &k, x_plane);
            sum += sum_plane(p, output, dy_plane,
                             output == CLCONV_DX ? w_plane : x_plane);
        }
    }
    free(dy_plane);
    *out = sum;
    return true;
}
