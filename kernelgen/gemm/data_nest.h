/*
 * dX as an implicit matrix product; see nest.h for what is emitted.
 *
 *     A[pixel][term] = dY at the output pixel that the term's tap leads to
 *     B[c][term]     = W
 *     term = (tap, k); pixel = (image, row, column) of one phase
 *
 * A phase is the set of pixels whose row and column leave the same remainders
 * by the strides: all its pixels meet the same taps, so no term is spent on a
 * tap that the strides skip, and a NaN of W never meets one. Where a tap leads
 * past dY's edges, A is zero and B is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DATA_NEST_H
#define CLCONV_DATA_NEST_H

#include "nest.h"

/* How the sum runs: for each tap all channels; or for each block of tile_k
 * channels all taps, which read the same few rows of dY again. A last block is
 * padded with zeros; needs the hole $tile_k. By steps is the latter order for
 * kernels that take the terms in turn: block stands at a step of tile_k terms,
 * which are those that <a>_term() and <b>_term() know, and
 *     block_next(&block, &sizes)
 * moves it on to the next one without a division. */
typedef enum clconv_data_order {
    CLCONV_DATA_CHANNELS_FASTEST,
    CLCONV_DATA_CHANNEL_BLOCKS,
    CLCONV_DATA_STEPS
} clconv_data_order;

/* With W as it lies in memory. */
clconv_nest clconv_data_nest(const clconv_problem *p);

/* With W prepared: fp32, channels last, whatever the layout. */
clconv_nest clconv_data_nest_prepared(const clconv_problem *p);

/* least_m, least_n: the smallest tile that the kernel offers. */
bool clconv_data_nest_covers(const clconv_problem *p, int least_m, int least_n);

/* Pixels of one phase in an image: the rows and columns that a phase has at
 * most, so that all phases have equally many. */
int64_t clconv_data_nest_pixels(const clconv_problem *p);

int64_t clconv_data_nest_phases(const clconv_problem *p);

/* Tiles of C, a work-group each. */
int64_t clconv_data_nest_blocks(const clconv_problem *p, int64_t batch,
                                int tile_m, int tile_n);

/* dX's tiles, all of them, over the elements that there are. */
double clconv_data_nest_waste(const clconv_problem *p, int tile_m, int tile_n);

/* The pass: dy, w, dx, beta, sizes. */
void clconv_data_nest_pass(const clconv_task *t, const char *entry,
                           int64_t blocks, int items, clconv_pass *out);

/* Types and functions, sizes_t among them. Needs the holes $tile_m and
 * $tile_n. */
void clconv_data_nest_emit(clconv_emit *e, clconv_data_order order);
void clconv_data_nest_emit_prepared(clconv_emit *e, clconv_data_order order);

/* Of packed copies, by steps: rows and terms are those of whole pieces. */
void clconv_data_nest_emit_packed(clconv_emit *e);

/* The same without the spots, for kernels that do not ask for elements one by
 * one. tap_terms: terms of a tap, of which those past group_k are zeros; an
 * expression of sizes_t *s. Besides:
 *     int3 pixel_at(&block, &sizes, row)    image (-1: none), line, column
 *     int3 term_at(&block, &sizes, k)       channel, r, s */
void clconv_data_nest_emit_blocks(clconv_emit *e, clconv_data_order order,
                                  const char *tap_terms);

/* In the entry point: declares block. */
void clconv_data_nest_emit_place(clconv_emit *e);

/* For kernels whose work-groups take several blocks: the statement that sets
 * block to the one of int number, and int block_count(&sizes). */
#define CLCONV_DATA_NEST_PLACE "block_place(&block, &sizes, $number);"

/* A work-group should take so many that follow each other, which write to the
 * same lines of dX and together have equally many terms; the same as text. */
int64_t clconv_data_nest_run(const clconv_problem *p);
#define CLCONV_DATA_NEST_RUN "block_run(&sizes)"

void clconv_data_nest_emit_count(clconv_emit *e);

#endif
