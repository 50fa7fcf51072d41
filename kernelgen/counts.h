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
 * The lines that declare the six classes as $int values named nonzero,
 * zeroed, subnormal, saturated, is_nan, is_inf, each 1 (width 1) or -1 (wider)
 * where it holds, from variables before and after. Needs the holes of
 * clconv_operand_set_width().
 */
void clconv_counts_emit_classes(clconv_emit *e, const clconv_problem *p,
                                clconv_tensor tensor);

#endif
