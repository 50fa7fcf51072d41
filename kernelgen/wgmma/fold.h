/*
 * A convolution of few channels as one of stride 1 and more channels: a window
 * of the padded image, high x wide pixels of all channels, becomes one
 * position, and windows are strides apart.
 *
 *     position (y, x), channel n = (c, i, j): the pixel of channel c in row
 *         y * stride_h + i - shift_h - pad_top, and the column alike
 *     tap (a, b) and n: the filter's row a * high + i - shift_h, if there is
 *         that, and the column alike
 *     dY[p][q] meets the position (p + a * step_h, q + b * step_w) by tap (a, b)
 *
 * What is no channel of a position, up to a whole line, is zero.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_FOLD_H
#define CLCONV_WGMMA_FOLD_H

#include "emit.h"
#include "problem.h"

/* Halves of a position. */
#define CLCONV_FOLD_LINE 16

typedef struct clconv_fold {
    int high, wide;       /* pixels of a window */
    int taps_h, taps_w;   /* of the folded filter */
    int step_h, step_w;   /* positions from tap to tap */
    int shift_h, shift_w; /* rows and columns before the filter's first */
} clconv_fold;

/* One group, no holes in the filter, no negative padding, and a window of the
 * strides no longer than a line. */
bool clconv_fold_covers(const clconv_problem *p);

/* Windows that do not overlap, for dX: each pixel is in one. */
clconv_fold clconv_fold_of_dx(const clconv_problem *p);

/* The windows that leave dW's products least to do: they may overlap. */
clconv_fold clconv_fold_of_dw(const clconv_problem *p);

/* Cycles in which dW's products of 16 pixels are done. */
int64_t clconv_fold_dw_cycles(const clconv_fold *f);

/* Has a tap channels that no filter's element stands for? */
bool clconv_fold_pads(const clconv_problem *p, const clconv_fold *f);

/*
 * The holes $channels (of X), $r, $s, $high, $wide, $taps_h, $taps_w, $taps,
 * $step_h, $step_w, $shift_h, $shift_w, $stride_h, $stride_w, $fold_line
 * (halves); and
 *
 *     int3 fold_place(n)        c, i, j of a channel of a position, n below
 *                               channels * high * wide
 *     int fold_channel(c, i, j) and back
 *
 * Channels are in the order of the tensors' layout, so that neighbours are
 * neighbours there.
 */
void clconv_fold_emit(clconv_emit *e, const clconv_problem *p,
                      const clconv_fold *f);

#endif
