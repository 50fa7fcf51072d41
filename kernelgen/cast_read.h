/*
 * How the pass that packs (cast_pack.c) reads a tile of a tensor:
 *
 * void read_<tensor>_tile(__global const T *in, [__global half *copy,]
 *     __local half *out, const tiles_t *tiles, const tile_t *tile,
 *     [__local float *sums,] int item, int counting, counts_t *tally)
 *
 * writes what becomes fp16 to out[pixel][channel], pixels tile->width +
 * $past_channels halves apart; the plain copy, if the task has one; adds to the
 * tally if counting. Of dY, if dbias is wanted, sums[part][channel] become the
 * sums of what is read, tile->width apart; parts: tiles->lanes, NHWC: rows of
 * so many lanes. item is the local id of $items.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CAST_READ_H
#define CLCONV_CAST_READ_H

#include "cast_pack.h"

/* What the functions of all tensors share: once, first. */
void clconv_cast_read_emit_shared(clconv_emit *e, const clconv_task *t,
                                  const clconv_cast_pack *a);

void clconv_cast_read_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_cast_pack *a, clconv_tensor tensor);

#endif
