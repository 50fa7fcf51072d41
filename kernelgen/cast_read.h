/*
 * How the pass that packs (cast_pack.c) reads a tile of a tensor:
 *
 * void read_<tensor>_tile(__global const T *in, [__global half *copy,]
 *     half *out, const tiles_t *tiles, const tile_t *tile,
 *     [__local float *sums,] int item)
 *
 * writes what becomes fp16, and zeros as its padding: NCHW to local memory,
 * ushort out[pixel][channel], pixels tile->width + $past_channels apart; NHWC to
 * the packed copy itself. Also writes the plain copy, if the task has one. Of dY,
 * if dbias is wanted, sums[part][channel] become the sums of what is read,
 * tile->width apart; parts: tiles->lanes, NHWC: rows of so many lanes. item is
 * the local id of $items.
 *
 * void count_<tensor>_tile(__global const T *in, const tiles_t *tiles,
 *     const tile_t *tile, int item, counts_t *tally)
 *
 * adds the tile to the tally.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CAST_READ_H
#define CLCONV_CAST_READ_H

#include "cast_pack.h"

/* What the functions of all tensors share: once, first. */
void clconv_cast_read_emit_shared(clconv_emit *e, const clconv_task *t);

void clconv_cast_read_emit(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor);

#endif
