/*
 * dY as bwd_weight_panel reads it: tile channels of each position side by
 * side, rounded as they are multiplied, in fp32 or, where that is exact,
 * fp16. Positions are pixels of dY, those of an image row by row, image by
 * image:
 *
 *     channel k of group g at a position lies at
 *     (g * k_blocks + k / tile) * block_stride + position * tile + k % tile
 *
 * The lanes past a group's last channel hold anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_DY_H
#define CLCONV_PANEL_DY_H

#include "kernel.h"
#include "kernel_shape.h"

typedef struct clconv_panel_dy_blocks {
    int64_t tile;         /* channels of a block, a multiple of 16 */
    bool half_type;       /* fp16? */
    int64_t k_blocks;     /* of a group */
    int64_t positions;    /* of an image */
    int64_t block_stride; /* elements */
    int64_t parts;        /* work-items an image or a block of one */
    int64_t floats;       /* of the scratch that all take */
} clconv_panel_dy_blocks;

void clconv_panel_dy_set(const clconv_problem *p, int64_t tile, bool half_type,
                         clconv_panel_dy_blocks *dy);

/* Can sizes be computed from it without overflow? Ask before anything else. */
bool clconv_panel_dy_fits(const clconv_problem *p, int64_t tile);

/* Adds groups, k (of a group), k_blocks, positions, dy_block_stride and
 * dy_parts. */
void clconv_panel_dy_shape(const clconv_panel_dy_blocks *dy,
                           const clconv_problem *p, clconv_shape *s);

void clconv_panel_dy_pass(const clconv_panel_dy_blocks *dy,
                          const clconv_problem *p, const char *entry,
                          int64_t batch, const clconv_shape *s,
                          clconv_pass *pass);

/* The entry point and the functions that it calls; the panels are at the
 * beginning of the scratch. Sets $dy_stored, their type. */
void clconv_panel_dy_emit(clconv_emit *e, const clconv_task *t,
                          const clconv_panel_dy_blocks *dy,
                          const clconv_shape *s, const clconv_pass *pass);

#endif
