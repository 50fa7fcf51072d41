/*
 * One side of a product, A or B, as it lies in local memory for a stage: see
 * kernels/wgmma_matrix.cl. Operands are read with channels last, so that
 *
 *     along k    a line is a row of the nest (nest.h) with its terms side by
 *                side, as many as a line holds
 *     else       a line is a term with rows of the nest side by side; chunks
 *                of as many rows as a line holds lie one after the other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_SIDE_H
#define CLCONV_WGMMA_SIDE_H

#include "nest.h"

typedef struct clconv_wgmma_side {
    const clconv_nest_operand *operand;
    const char *name; /* "a", "b" */
    int rows;         /* of the nest */
    int terms;        /* of a stage */
    int line;         /* halves: 64, 32 or 16; along k: terms */
} clconv_wgmma_side;

/* Halves of a line for so many channels: the shortest that holds them. */
int clconv_wgmma_line(int64_t channels);

/* Chunks of rows; along k: 1. */
int clconv_wgmma_chunks(const clconv_wgmma_side *s);

/* Bytes from chunk to chunk; all bytes. */
int clconv_wgmma_chunk_bytes(const clconv_wgmma_side *s);
int clconv_wgmma_side_bytes(const clconv_wgmma_side *s);

/* Bytes from one row of the nest to another so many further on, a multiple of
 * 64 unless along k. */
int clconv_wgmma_rows_bytes(const clconv_wgmma_side *s, int rows);

/* Bytes from a term to the 16th after it. */
int clconv_wgmma_step_bytes(const clconv_wgmma_side *s);

#endif
