/*
 * The positions of dY in segments of at most so many: some images, or some
 * rows of one, or some columns of one row, whatever fits. The sums of a
 * segment are one chain of additions.
 *
 *     clconv_panel_segment_set(p, positions, &segment);
 *     clconv_panel_segment_shape(&segment, p, &shape);     in the shape
 *     clconv_panel_segment_emit(e);                        in emit(), once
 *     "segment_t s = segment_at(shape, i, batch);"         in the text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_SEGMENT_H
#define CLCONV_PANEL_SEGMENT_H

#include "kernel.h"
#include "kernel_shape.h"

/* More than one image only with all rows, more than one row only with all
 * columns: a segment's positions follow one another. */
typedef struct clconv_panel_segment {
    int64_t images, rows, columns;
    int64_t row_parts, column_parts; /* of an image */
} clconv_panel_segment;

void clconv_panel_segment_set(const clconv_problem *p, int64_t positions,
                              clconv_panel_segment *s);

int64_t clconv_panel_segment_count(const clconv_panel_segment *s,
                                   int64_t images);

/* Adds p, q, segment_images and so on. */
void clconv_panel_segment_shape(const clconv_panel_segment *segment,
                                const clconv_problem *p, clconv_shape *s);

/* segment_t: where a segment begins (image, row, column, longs) and what it
 * has (images, rows, columns, ints); long segment_count(shape, batch);
 * segment_t segment_at(shape, long i, int batch). */
void clconv_panel_segment_emit(clconv_emit *e);

#endif
