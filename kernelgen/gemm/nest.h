/*
 * The loop nests of dX (data_nest.h) and dW (weight_nest.h) as implicit matrix
 * products,
 *
 *     C[m][n] = sum over k of A[m][k] * B[n][k]
 *
 * for kernels whose work-groups compute tiles of tile_m x tile_n of C. A nest
 * says which elements rows, columns and terms are; staging and multiplication
 * are the kernel's. Every index splits into a part of the row (of A, of B: a
 * column of C) and a part of the term, so that a kernel may work either out
 * once and use it often. Emitted functions, <a> and <b> being the operands'
 * names and <c> the output's:
 *
 *     block_t, block_place(&block, &sizes, number)   the number-th tile
 *         block.begin, block.end: its terms
 *     spot_t <a>_row(&block, &sizes, row)    of the tile (kernels/spot.cl)
 *     spot_t <a>_term(&block, &sizes, k)     of the whole sum; k may be past
 *                                            block.end: outside
 *     and the same for <b>
 *     long <c>_row(&block, &sizes, m), <c>_column(&block, &sizes, n)
 *         their sum is the element's index; -1: not in C
 *
 * Terms past the end are outside in both operands, so that 0 meets 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_NEST_H
#define CLCONV_NEST_H

#include "kernel.h"

/* What nests count in ints on the device stays below this, so that a last
 * tile still fits. */
#define CLCONV_NEST_LIMIT (1 << 30)

/* Four channels, which meet the same tap: one check serves them all. */
typedef struct clconv_nest_quad {
    bool whole;       /* do a group's channels come in fours? */
    bool along_k;     /* are they terms, or rows of the tile? */
    const char *step; /* from one to the next, within sizes; NULL: 1 */
} clconv_nest_quad;

typedef struct clconv_nest_operand {
    clconv_tensor tensor;
    /* Do neighbours in memory follow the terms, or the tile's rows? */
    bool along_k;
    /* Within sizes: see spot_inside(). */
    const char *limit_y, *limit_x;
    bool bordered; /* may a tap lead past the limits? */
    bool prepared; /* is it read as fp32 values, rounded by an earlier pass? */
    clconv_nest_quad quad;
} clconv_nest_operand;

typedef struct clconv_nest {
    clconv_nest_operand a, b;
    clconv_tensor c;
    bool c_along_m; /* do neighbours in memory follow rows of C? */
} clconv_nest;

/* The same nest for packed operands: channels are neighbours in memory. along_k:
 * are those of A terms? Those of B are columns. */
clconv_nest clconv_nest_packed(clconv_nest nest, bool along_k);

/* Padded images, and with them filters and their holes, below the limit. */
bool clconv_nest_covers(const clconv_problem *p);

/* clconv_emit_open() of a function that is inlined, so that a compiler need not
 * put block and sizes, which are passed by pointer, in memory. */
void clconv_nest_open_function(clconv_emit *e, const char *head);

/* Sets the holes $<t>_image, _row, _column, _channel (strides) and _channels
 * (of a group) of an operand t, expressions of sizes_t *s: of the tensor, or of
 * its packed copy (pack.h), which need the part padded. */
void clconv_nest_set_strides(clconv_emit *e, clconv_tensor tensor, bool packed);

#endif
