/*
 * What the kernels for first layers share: folded tensors (fold.h), tiles of an
 * image that a copier loads by tensor maps through a ring of stages (ring.h),
 * and work-groups that stay for the whole launch and take tiles in turns.
 *
 *     clconv_stem_emit_begin(e, &stem);
 *     clconv_stem_open_tiles(e, &stem, sums);
 *     ... the tile's products are in sum ...
 *     clconv_emit_close(e);
 *
 * The kernel emits before: block_t, block_count(&sizes), block_place(&block,
 * &sizes, number); load_tile(tiles, at, full, dy_source[, x_source], &block,
 * &sizes, lane), which clconv_stem_open_load() opens; multiply(tiles, at, base,
 * sum, warpgroup, lane), see clconv_stem_open_multiply().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_STEM_H
#define CLCONV_WGMMA_STEM_H

#include "fold.h"
#include "kernel.h"
#include "products.h"

/* The first rows of params of each such kernel. */
enum {
    CLCONV_STEM_TILE_W,
    CLCONV_STEM_TILE_H,
    CLCONV_STEM_GROUPS,
    CLCONV_STEM_STAGES,
    CLCONV_STEM_SHAPE,
    CLCONV_STEM_PARAMS
};

#define CLCONV_STEM_PARAM_ROWS                                                 \
    [CLCONV_STEM_TILE_W] = {"tile_w", CLCONV_VALUES(16, 8),                    \
                            "positions of a row that a work-group takes at a " \
                            "time"},                                           \
    [CLCONV_STEM_TILE_H] = {"tile_h", CLCONV_VALUES(16, 8),                    \
                            "rows of positions"},                              \
    [CLCONV_STEM_GROUPS] = {"warpgroups", CLCONV_VALUES(2, 1, 3, 4),           \
                            "warpgroups that multiply"},                       \
    [CLCONV_STEM_STAGES] = {"stages", CLCONV_VALUES(3, 2, 4),                  \
                            "tiles in local memory"},                          \
    [CLCONV_STEM_SHAPE] = CLCONV_SHAPE_PARAM

/* Channels of dY: a line of local memory. */
#define CLCONV_STEM_MOST_K 64

typedef struct clconv_stem {
    clconv_fold fold;
    int w, h; /* positions of a tile */
    int groups, stages;
    int k_line;          /* halves of a pixel of dY */
    int dy_w, dy_h;      /* pixels of dY that a stage holds */
    int x_w, x_h;        /* positions of X, or 0 */
    int64_t fixed_bytes; /* of local memory before the stages */
    clconv_products products;
} clconv_stem;

/* From values; the rest is the kernel's to fill in. */
clconv_stem clconv_stem_of(const clconv_task *t, const clconv_fold *fold);

/* Mixed math on the unit, tensor maps, and a problem to fold whose tiles can
 * be counted in ints. */
bool clconv_stem_suits(const clconv_problem *p, const clconv_device *d);

/* Does it fit local memory, registers (sums a work-item) and the map of dY? */
bool clconv_stem_legal(const clconv_task *t, const clconv_stem *s, int sums);

/* Tiles of so many positions in a row and rows, of so many images. */
int64_t clconv_stem_tiles(const clconv_stem *s, int64_t across, int64_t down,
                          int64_t images);

/* The cheapest tile that is legal. */
void clconv_stem_choose(const clconv_task *t, bool (*legal)(const clconv_task *),
                        double (*cost)(const clconv_task *), int *values);

int clconv_stem_items(const clconv_stem *s);

clconv_tensor_map clconv_stem_dy_map(const clconv_problem *p,
                                     const clconv_stem *s, int64_t batch);

/* The holes of all that follows, and the parts it uses. */
void clconv_stem_emit_parts(clconv_emit *e, const clconv_stem *s);

/* block_t: image, and y0, x0, the tile's first position from the first of all.
 * down and across: how many there are, of sizes_t *s. */
void clconv_stem_emit_blocks(clconv_emit *e, const char *down,
                             const char *across);

void clconv_stem_open_load(clconv_emit *e, const clconv_stem *s);
void clconv_stem_open_multiply(clconv_emit *e);

void clconv_stem_open_entry(clconv_emit *e, const clconv_task *t,
                            const clconv_stem *s, const clconv_pass *pass);

/* Declares tiles, base (where they begin; a multiple of 1024), item, warpgroup,
 * lane and the ring's barriers. */
void clconv_stem_emit_begin(clconv_emit *e, const clconv_stem *s);

/* x_source is the folded X's, half *folded; maps lie at the start of scratch.
 * each: sums start from zero with each tile. In emulation the copier goes on
 * with the next tile. */
void clconv_stem_open_tiles(clconv_emit *e, const clconv_stem *s, bool each);

#endif
