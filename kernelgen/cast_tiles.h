/*
 * Tiles of a tensor, for the pass that packs it (cast_pack.h): some channels
 * of one group by some pixels of one image. (NHWC: of all images, whose pixels
 * follow one another. W: an image is an output channel, a pixel one of R x S.)
 * Tiles divide channels and an image's pixels evenly: of 65 pixels there are not
 * 64 and 1. What a tile is does not depend on the batch.
 *
 *     clconv_tiles s = clconv_tiles_of(p, CLCONV_X, batch, lws);
 *     clconv_tiles_add(&s, p->layout, "x", &shape);     the pass's argument
 *     clconv_tiles_emit(e, p->layout);                  once
 *     clconv_tiles_emit_get(e, "x");                    for each tensor
 *     ...
 *     const tiles_t tiles = get_x_tiles(&shape);
 *     const tile_t tile = tile_of(&tiles, id);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CAST_TILES_H
#define CLCONV_CAST_TILES_H

#include "kernel_shape.h"

/* Elements of a tile, with padding, at most; NCHW: pixels of one, of which a
 * work-group should read so many in a row, if there are. */
#define CLCONV_TILES_ELEMENTS 4096
#define CLCONV_TILES_PIXELS 64

/* A work-item reads vectors of four, so many before it uses the first. */
#define CLCONV_TILES_VEC 4
#define CLCONV_TILES_AT_ONCE 4

/* The tensor is [images][groups][channels][pixels] or
 * [images][pixels][groups][channels]; what is emitted as tiles_t has the same
 * members, as longs, but for lanes, of which it has the logarithm, lane_bits, and
 * besides block_bits, that of a tile's blocks of 8 channels, rounded up. */
typedef struct clconv_tiles {
    int64_t images, groups, channels, pixels;
    int64_t padded; /* channels of a group of the packed copy */
    int64_t tile_channels, tile_pixels;
    int64_t channel_parts, pixel_parts; /* tiles of a group, of an image */
    int64_t lanes; /* work-items side by side along what is contiguous */
    int64_t count; /* of tiles */
} clconv_tiles;

/* lws: work-items of a group. */
clconv_tiles clconv_tiles_of(const clconv_problem *p, clconv_tensor tensor,
                             int64_t batch, int lws);

/* Do vectors along what is contiguous divide it, and lie at multiples of their
 * size? */
bool clconv_tiles_are_aligned(const clconv_problem *p, clconv_tensor tensor);

/* Adds the members to a shape, as <name>_images and so on. */
void clconv_tiles_add(const clconv_tiles *s, clconv_layout layout,
                      const char *name, clconv_shape *out);

/*
 * tiles_t, tile_t and
 * tile_t tile_of(const tiles_t *tiles, uint id)
 */
void clconv_tiles_emit(clconv_emit *e, clconv_layout layout);

/* tiles_t get_<name>_tiles(const shape_t *shape) */
void clconv_tiles_emit_get(clconv_emit *e, const char *name);

#endif
