/*
 * Emits how elements are counted: the classes of clconv_counts, told from an
 * element's bits before and after rounding, so that NaN, denormals and build
 * options cannot hide one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_COUNTS_H
#define CLCONV_COUNTS_H

#include "kernel.h"

/*
 * void count_<tensor>[width](counts_t *tally, float[width] before,
 *                            float[width] after)
 * adds the classes of the elements to a work-item's tally (kernels/counts.cl,
 * which is emitted too). before is what was rounded, in the tensor's own
 * units; after the fp16 value as a float, in the units that are stored.
 */
void clconv_counts_emit(clconv_emit *e, const clconv_problem *p,
                        clconv_tensor tensor, int width);

/*
 * How a work-item counts what it reads, one vector after the other:
 *
 *     clconv_counts_emit_seen(e, 16);             once a source and width
 *     clconv_counts_emit_see(e, p, CLCONV_X, 16); for each tensor
 *     ... in the kernel:
 *     seen16_t seen = { 0 };
 *     counts_t tally = { 0 };
 *     if (counting)
 *         see_x16(&seen, before);                 as stored, widened to float
 *     ... at the end:
 *     fold16(&tally, &seen);
 *     counts_flush(x_counts, &tally);
 *
 * A lane that shall not count is 0. A work-item sees fewer than 2^27 vectors.
 */
void clconv_counts_emit_seen(clconv_emit *e, int width);
void clconv_counts_emit_see(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int width);

/*
 * void counts_flush_group(__global uint *counts, counts_t *tally,
 *                         __local uint *sums)
 * is counts_flush() for a whole work-group, all of which must call: one
 * addition a group to each count. sums holds CLCONV_COUNTS_CLASSES zeros, set
 * before a barrier. No barrier depends on counts: PoCL 3.1 miscompiles that. Its
 * two halves, for a barrier of one's own between them:
 *
 * void counts_share(const counts_t *tally, __local uint *sums)
 * void counts_flush_shared(__global uint *counts, __local uint *sums)
 */
#define CLCONV_COUNTS_CLASSES 6
void clconv_counts_emit_flush_group(clconv_emit *e);

/*
 * Runs of neighbours, several vectors at a time, which is cheaper:
 *
 *     clconv_counts_emit_seen(e, CLCONV_COUNTS_RUN);  as above
 *     clconv_counts_emit_run(e, t, CLCONV_X);         for each tensor
 *     ...
 *     see_x_run(&seen, x, from, end, total);
 *
 * sees elements from .. end - 1 of the caller's tensor, or a part of it, of
 * total elements; from <= end. Also emits the tensor's see of that width, and
 * rest_of_x with its reads (operand.h).
 *
 * A loop that reads the elements in any case can save most runs:
 *
 *     uint16 above = 0;
 *     above = beyond_x(above, before);                for each vector
 *     ... then, if all are ordinary and none is 0:
 *     if (is_ordinary_x(above))
 *         seen.nonzero += vectors;
 */
#define CLCONV_COUNTS_RUN 16
void clconv_counts_emit_run(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor);

/* Holes for a test of one's own. $normal and $limit: the bits of the least and
 * the largest magnitude that are ordinary. $ordinary: no lane of the int<width>
 * named other is set; may emit a line before. */
void clconv_counts_set_ordinary_bounds(clconv_emit *e, const clconv_problem *p,
                                       clconv_tensor tensor);
void clconv_counts_set_ordinary(clconv_emit *e, int width);

#endif
