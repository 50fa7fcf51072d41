/*
 * Emits how a tile of one operand moves from global to local memory, zero
 * where the convolution has nothing:
 *
 *     static const clconv_stage a = {CLCONV_DY, "a", 64, .along_k = true};
 *     clconv_stage_emit(e, t, &a, vector);
 *
 * emits
 *
 *     void stage_a(__local ushort *tile, __global const T *dy,
 *                  const block_t *block, const sizes_t *sizes, int k0,
 *                  int item)
 *
 * which all work-items call, with a barrier after. The tile then holds fp16
 * bits at [row][k], a row every $pitch halves, for k from k0 on. The source
 * has two functions that say where an element comes from, emitted before:
 *
 *     long dy_at(const block_t *, const sizes_t *, int row, int k)
 *         the index in the tensor, or -1 for zero
 *     int dy_run(const block_t *, const sizes_t *, int row, int k)
 *         do the CLCONV_STAGE_VECTOR elements from here on lie in one row of
 *         the tensor's innermost dimension, whether or not they exist?
 *
 * row is relative to the tile, k to the whole sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GEMM_STAGE_H
#define CLCONV_GEMM_STAGE_H

#include "kernel.h"

/* Elements that vector staging moves at once. */
#define CLCONV_STAGE_VECTOR 8

typedef struct clconv_stage {
    clconv_tensor tensor; /* DY, X or W */
    const char *name;     /* "a" or "b": stage_a, tile_a */
    int rows;             /* a multiple of CLCONV_STAGE_VECTOR */
    bool along_k; /* do neighbours in memory follow k, or the tile's rows? */
} clconv_stage;

/* Needs the holes $tile_k, $pitch and $work_items. */
void clconv_stage_emit(clconv_emit *e, const clconv_task *t,
                       const clconv_stage *s, bool vector);

#endif
