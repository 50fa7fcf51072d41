/*
 * How bwd_data_tile takes a tile's sums to dX: positions that lie in a gap
 * between rows or images are dropped, phases of columns interleaved.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_STORE_H
#define CLCONV_TILE_STORE_H

#include "emit.h"
#include "problem.h"

/*
 * Needs the holes $tile (positions of a tile) and $tile_sums (sums of a tile
 * and a phase), the type axis_t (tile_phase.h) and, in the shape, pitch,
 * image_stride, dx_image and dx_row: elements of dX from image to image and
 * from row to row of a phase. Sets the holes of output.h for dX, and emits
 *
 *     const float *interleave(const float *sums, int phases, float *strip)
 * the sums of a channel in the order of dX: those of the phases of columns
 * lie $tile_sums apart. In strip, of phases * $tile, or where they are.
 *
 *     place_t place_of(int position, int rows, int images, shape_t shape)
 * position among rows of a phase and joined images, of which there are so
 * many.
 *
 *     void store_positions(dx, place_t p, axis_t w, shape_t shape,
 *                          const float *strip, float beta$tally_parameter)
 * stores what interleave() returned from place p on; dx: the first row of the
 * phase, of the channel in the first of the joined images.
 */
void clconv_tile_store_emit(clconv_emit *e, const clconv_problem *p);

#endif
