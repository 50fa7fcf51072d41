/*
 * dW as an implicit matrix product; see nest.h for what is emitted.
 *
 *     A[k][pixel] = dY
 *     B[column][pixel] = X where the column's tap leads, column = (tap, c)
 *     pixel = (image, row, column) of dY
 *
 * There are few blocks and many pixels, so the sum over pixels is split into
 * parts, to make work for the whole device and keep each fp32 sum short. With
 * split > 1, scratch is [split][elements of dW] floats, and a second pass adds
 * the parts, always in the same order. It also puts them in dW's, which a
 * product's own stores may do less well, and takes the last sum of dbias along
 * (bias_sum.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WEIGHT_NEST_H
#define CLCONV_WEIGHT_NEST_H

#include "nest.h"

typedef struct clconv_weight_tile {
    int m, n, k, split;
    int items;     /* of a work-group */
    int sum_items; /* of one that adds the parts */
    bool apart;    /* also one part is left in scratch, for the second pass */
} clconv_weight_tile;

clconv_nest clconv_weight_nest(const clconv_problem *p);

/* least_m, least_n: the smallest tile that the kernel offers. */
bool clconv_weight_nest_covers(const clconv_problem *p, int least_m,
                               int least_n);

/* Is dW [k][c][r][s]? Stores of single elements, far from each other, then take
 * more than a tile's products. */
bool clconv_weight_nest_taps_fastest(const clconv_problem *p);

/* Columns of C in a group. */
int64_t clconv_weight_nest_columns(const clconv_problem *p);

/* Tiles of C, without the split. */
int64_t clconv_weight_nest_blocks(const clconv_problem *p, int tile_m,
                                  int tile_n);

/* dW's tiles, all of them, over the elements that there are. */
double clconv_weight_nest_waste(const clconv_problem *p, int tile_m, int tile_n);

/* Enough work-groups to fill the device twice, parts of at least 8 tiles of
 * pixels, and no more than 64 MiB of partial sums: 1, 4, 16 ... most. */
int clconv_weight_nest_split(const clconv_problem *p, const clconv_device *d,
                             const clconv_weight_tile *tile, int most);

/* Parts of as few bytes; also of as many pixels. */
int64_t clconv_weight_nest_most_room(const clconv_problem *p,
                                     const clconv_device *d);
int64_t clconv_weight_nest_most_parts(const clconv_problem *p,
                                      const clconv_device *d, int tile_k);

/* Is there a pass that adds the parts? */
bool clconv_weight_nest_has_sum(const clconv_weight_tile *tile);

/* Bytes. */
size_t clconv_weight_nest_scratch(const clconv_problem *p,
                                  const clconv_weight_tile *tile);

/* The product, and with split > 1 the sum of its parts: dy, x, then dw, beta,
 * sizes or scratch, sizes; returns their number. */
int clconv_weight_nest_passes(const clconv_task *t, const char *entry,
                              const char *sum_entry,
                              const clconv_weight_tile *tile, clconv_pass *out);

/* Types and functions, sizes_t among them. Needs the holes $tile_m, $tile_n
 * and $tile_k. */
void clconv_weight_nest_emit(clconv_emit *e);

/* Of packed copies: rows are those of whole pieces, and a tap has padded(group_c)
 * columns. */
void clconv_weight_nest_emit_packed(clconv_emit *e);

/* The same without the spots, for kernels that do not ask for elements one by
 * one. tap_columns: columns of a tap, of which those past group_c are not in
 * dW; an expression of sizes_t *s. Besides:
 *     int3 pixel_at(&sizes, pixel)     image, row, column of dY
 *     int3 column_at(&sizes, column)   channel, r, s */
void clconv_weight_nest_emit_blocks(clconv_emit *e, const char *tap_columns);

/* In the entry point: declares block. Needs the hole $split, an int. */
void clconv_weight_nest_emit_place(clconv_emit *e);

/* For kernels whose work-groups take several blocks: the statement that sets
 * block to the one of int number, and int block_count(&sizes). */
#define CLCONV_WEIGHT_NEST_PLACE "block_place(&block, &sizes, $split, $number);"
void clconv_weight_nest_emit_count(clconv_emit *e);

/* The entry of the pass that adds the parts; needs $split. attribute: see
 * entry.h. */
void clconv_weight_nest_emit_sum(clconv_emit *e, const clconv_task *t,
                                 const clconv_pass *pass, const char *attribute);

/* For parts whose channels are last, whatever dW's layout, so that columns of
 * C are neighbours in memory: part_row and part_column instead of dw_row and
 * dw_column, and the sum's entry that goes with them. padded: are there columns
 * past group_c? merge: groups whose channels stand in C as one group's, of which
 * each k has its own alone; t is the task before that. parts, if elements have
 * different numbers of them, at most $split; NULL: all have $split. There is
 *     int3 element_at(&sizes, i)   k, tap, channel of dW's i-th element */
typedef struct clconv_weight_parts {
    void (*begin)(clconv_emit *e); /* for all work-items; $work_items */
    const char *count; /* of the i-th element of dW, an expression of i */
} clconv_weight_parts;

void clconv_weight_nest_emit_parts(clconv_emit *e, bool padded, int merge);
void clconv_weight_nest_emit_parts_sum(clconv_emit *e, const clconv_task *t,
                                       const clconv_pass *pass,
                                       const char *attribute, int merge,
                                       const clconv_weight_parts *parts);

#endif
