/*
 * What the kernels on Hopper's warpgroup products share: tunables, the way of
 * a tile of C through a work-group, and what it takes. Which elements are
 * multiplied and where sums go is the nest's (nest.h); a kernel is
 *
 *     ... the nest's functions and block_count(&sizes) ...
 *     clconv_wgmma_emit_functions(e, t, &tile);
 *     ... load_step() and its cursor, if tensor maps load, see below ...
 *     clconv_wgmma_store_emit_functions(e, ...);           (store.h)
 *     clconv_wgmma_open_entry(e, t, &pass);
 *     clconv_wgmma_open_tiles(e, t, &tile, place, maps_at);
 *     clconv_wgmma_store_emit(e, ...);
 *     clconv_wgmma_close_tiles(e);
 *
 * A work-group is one or more warpgroups that multiply and a copier: one
 * work-item that has the copy unit load by tensor maps, or a warpgroup that
 * copies by itself. It takes tiles of C in turns until all are done. For each,
 *
 *     copier: for every stage of terms: wait until it is empty; have A and B
 *             copied there; they are full when all has come
 *     others: for every stage: wait until it is full; acc += A * B; say that it
 *             is empty. Then store acc, while the copier goes on
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_H
#define CLCONV_WGMMA_H

#include "nest.h"
#include "products.h"
#include "side.h"

/* The first rows of params of each such kernel. */
enum {
    CLCONV_WGMMA_TILE_M,
    CLCONV_WGMMA_TILE_N,
    CLCONV_WGMMA_GROUPS,
    CLCONV_WGMMA_STAGES,
    CLCONV_WGMMA_LOAD,
    CLCONV_WGMMA_SHAPE,
    CLCONV_WGMMA_PARAMS
};

enum { CLCONV_WGMMA_MAPS, CLCONV_WGMMA_COPIES };

#define CLCONV_WGMMA_PARAM_ROWS                                                \
    [CLCONV_WGMMA_TILE_M] = {"tile_m", CLCONV_VALUES(128, 64, 192, 256),       \
                             "rows of the result a work-group"},               \
    [CLCONV_WGMMA_TILE_N] = {"tile_n", CLCONV_VALUES(128, 64, 32, 192, 256),   \
                             "columns of the result a work-group"},            \
    [CLCONV_WGMMA_GROUPS] = {"warpgroups", CLCONV_VALUES(2, 1, 3),             \
                             "warpgroups that multiply"},                      \
    [CLCONV_WGMMA_STAGES] = {"stages", CLCONV_VALUES(4, 3, 6),                 \
                             "stages of terms in local memory"},               \
    [CLCONV_WGMMA_LOAD] = {"load", CLCONV_NAMES("maps", "copies"),             \
                           "how operands come to local memory"},               \
    [CLCONV_WGMMA_SHAPE] = CLCONV_SHAPE_PARAM

/* The smallest tile. */
#define CLCONV_WGMMA_LEAST_M 64
#define CLCONV_WGMMA_LEAST_N 32

/* What a work-group computes, and from what. */
typedef struct clconv_wgmma_tile {
    int m, n;
    int terms; /* of a stage */
    int groups, stages;
    bool maps;            /* or copies */
    bool along_m;         /* do the warpgroups share out rows, or columns? */
    int group_m, group_n; /* of one warpgroup */
    clconv_wgmma_side a, b;
    clconv_products products;
} clconv_wgmma_tile;

/* terms: of a stage, if tensor maps load. */
clconv_wgmma_tile clconv_wgmma_tile_of(const clconv_task *t,
                                       const clconv_nest *nest, int terms);

/* Mixed math on a device with the unit, real or emulated. */
bool clconv_wgmma_covers(const clconv_problem *p, const clconv_device *d);

/* Tile, device and operands fit; of tensor maps the kernel's own are still to
 * be looked at. */
bool clconv_wgmma_legal(const clconv_task *t, const clconv_wgmma_tile *c);

/* Of operands, the copies that a cast is to write. */
unsigned clconv_wgmma_wants_copies(const clconv_task *t, unsigned operands);

/* clconv_kernel.cost, see gemm.h: tiles of C in all parts of a split sum. */
double clconv_wgmma_cost(const clconv_task *t, double waste, int64_t tiles,
                         double bytes);

/* A tile among which defaults choose: the one that costs least of those that
 * are legal, by maps if there is one. t reads values. */
typedef struct clconv_wgmma_choice {
    int m, n, groups;
} clconv_wgmma_choice;

void clconv_wgmma_choose(const clconv_task *t, const clconv_wgmma_choice *from,
                         int count, bool (*legal)(const clconv_task *),
                         double (*cost)(const clconv_task *), int *values);

/* The default of shape: the unit is so fast that work-items wait for their own
 * indices, unless most are constants: dX of 1x1 and of strided layers took a
 * third longer on an H200. */
int clconv_wgmma_shape(const clconv_device *d);

/* Work-items of a work-group. */
int clconv_wgmma_items(const clconv_task *t);

/* Work-groups for so many tiles: one a compute unit at most. */
int64_t clconv_wgmma_work_groups(const clconv_task *t, int64_t tiles);

/* Bytes of scratch where work-groups complete their maps; 0 for copies. */
size_t clconv_wgmma_scratch(const clconv_task *t);

/* What an operand's map has of the problem: sizes and strides of its channels-
 * last tensor for so many images, and lines of so many halves. */
clconv_tensor_map clconv_wgmma_map(const clconv_problem *p, clconv_tensor tensor,
                                   int64_t batch, int line);

/* Adds maps (of A, of B) to the pass, and scratch if it has none yet. */
void clconv_wgmma_add_maps(clconv_pass *pass, const clconv_wgmma_tile *c,
                           const clconv_tensor_map *a,
                           const clconv_tensor_map *b);

/*
 * The parts and functions that the loops use. If tensor maps load, the kernel
 * emits after it
 *
 *     cursor_t, cursor_begin(cursor_t *, const block_t *, const sizes_t *)
 *         where the terms of a tile begin
 *     load_step(tiles, at, full, a_source, b_source, block, sizes, cursor,
 *               lane)
 *
 * which clconv_wgmma_open_load() opens: it has the terms at the cursor loaded to
 * address at by load_tiled() and load_im2col(), all bytes of a stage, and moves
 * the cursor on. Holes: $a_line, $b_line (halves),
 * $a_bytes, $a_chunks, $b_chunks, $a_chunk_bytes, $b_chunk_bytes.
 */
void clconv_wgmma_emit_functions(clconv_emit *e, const clconv_task *t,
                                 const clconv_wgmma_tile *c);
void clconv_wgmma_open_load(clconv_emit *e, const clconv_wgmma_tile *c);

void clconv_wgmma_open_entry(clconv_emit *e, const clconv_task *t,
                             const clconv_pass *pass);

/* How tiles are dealt out, and what a copier of them needs. */
typedef struct clconv_wgmma_deal {
    const char *place; /* the statement that sets block for int $number */
    const char *run;   /* so many in turn are one work-group's, in ints */
    int together;      /* of these, tiles that are stored together, from 1 on;
                          then sum[] has blocks_m rows of each, after another */
    size_t maps_at;    /* of the maps in scratch, bytes, a multiple of 128 */
} clconv_wgmma_deal;

void clconv_wgmma_open_tiles(clconv_emit *e, const clconv_task *t,
                             const clconv_wgmma_tile *c,
                             const clconv_wgmma_deal *deal);
void clconv_wgmma_close_tiles(clconv_emit *e);

#endif
