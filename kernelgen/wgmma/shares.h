/*
 * A sum over pixels shared out among a fixed number of work-groups, so that
 * each has as many steps, where dW has fewer tiles than that.
 *
 * Each tile has as many work-groups to itself as there are for all of them, and
 * these take its first steps, an equal part each. What the others have to do,
 * the sharers, is what is left at the end of all tiles: one after another, cut
 * where a sharer has its part. So work-groups that run at the same time read
 * the same few stretches of pixels, which caches hold.
 *
 * The parts of a tile are numbered in the order of their pixels; tiles differ
 * by one in how many there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_SHARES_H
#define CLCONV_WGMMA_SHARES_H

#include "weight_nest.h"

typedef struct clconv_shares {
    int groups;  /* work-groups */
    int blocks;  /* tiles of dW, at most as many */
    int whole;   /* work-groups of each tile */
    int sharers; /* the others */
    int parts;   /* of a tile at most */
    int pieces;  /* of tiles, that a work-group takes, at most */
    bool wide;   /* steps are counted in longs */
} clconv_shares;

/* Work-groups that share on this device. */
int clconv_shares_groups(const clconv_device *d);

/* blocks: 1 to clconv_shares_groups(). steps: of a tile, at most. */
clconv_shares clconv_shares_of(const clconv_device *d, int64_t blocks,
                               int64_t steps);

/* After the functions of clconv_weight_nest_emit_parts():
 *     int block_count(&sizes)
 *     int block_share(&block, &sizes, number)   0: there are no such pixels */
void clconv_shares_emit(clconv_emit *e, const clconv_shares *s);

/* For the pass that adds the parts. */
clconv_weight_parts clconv_shares_parts(void);

/* As CLCONV_WEIGHT_NEST_PLACE. */
#define CLCONV_SHARES_PLACE                                                    \
    "if (!block_share(&block, &sizes, $number)) continue;"

#endif
