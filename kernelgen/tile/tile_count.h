/*
 * How a pack pass counts its operand for the report: some of its work-items
 * see, before they pack, all that they and those after them will read. A run
 * is a few thousand elements, dense in the tensor: short enough to lie in a
 * cache still when it is packed, long enough that the sums cost little. So
 * each element is seen once, however often the pass reads it, and also those
 * that no tap reads.
 *
 *     clconv_tile_count_arg(t, CLCONV_X, &pass);       in passes()
 *     clconv_tile_count_emit(e, t, CLCONV_X);          in emit(), once
 *     "const bool begins_run = index % 8 == 0;"        in the text
 *     clconv_tile_count_open(e, CLCONV_X);
 *     "see_x_run(&seen, x, from, end, total);"
 *     clconv_tile_count_close(e, CLCONV_X);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_COUNT_H
#define CLCONV_TILE_COUNT_H

#include "kernel.h"

/* Elements of a run, where there is a choice. */
#define CLCONV_TILE_RUN 4096

/* Does the task want the operand to be counted? */
bool clconv_tile_is_counted(const clconv_task *t, clconv_tensor tensor);

/* Adds <tensor>_counts if it does. */
void clconv_tile_count_arg(const clconv_task *t, clconv_tensor tensor,
                           clconv_pass *pass);

/* The type seen16_t and see_<tensor>_run(), see counts.h. */
void clconv_tile_count_emit(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor);

/* A block for the work-items that see a run, if there is a report; declares
 * seen, which close adds to the report. */
void clconv_tile_count_open(clconv_emit *e, clconv_tensor tensor);
void clconv_tile_count_close(clconv_emit *e, clconv_tensor tensor);

#endif
