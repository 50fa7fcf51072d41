/*
 * How the depthwise kernels of a CPU read rows of their operands into private
 * memory, rounded and as fp32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DEPTHWISE_ROW_H
#define CLCONV_DEPTHWISE_ROW_H

#include "kernel.h"

/* float16 fetch_<operand>(p, long i, int count, long end): elements from i on
 * of a tensor of end elements, zeros from count on. Needs no keep16. */
void clconv_depthwise_emit_fetch(clconv_emit *e, const clconv_task *t,
                                 clconv_tensor tensor);

/*
 * bool row_<operand>(float *to, p, long i, int columns, int channels,
 *                    long step, long end, int least)
 * reads columns from element i of a tensor of end elements; NHWC: that many
 * channels of each, step elements from column to column. Zeros up to the next
 * multiple of 16 columns (NCHW) or channels. True: the bits of all magnitudes
 * that were read are least or more, and none is above fp16's largest; false:
 * not known. Needs keep16; where the task counts the tensor, emit
 * clconv_counts_emit_run() before.
 */
void clconv_depthwise_emit_row(clconv_emit *e, const clconv_task *t,
                               clconv_tensor tensor);

/* void planes_dy(float *to, long pitch, dy, long i, int columns, int channels,
 * shape_t shape): row_dy for all planes of the channels, pitch floats apart.
 * Emits row_dy; needs keep16 and split. */
void clconv_depthwise_emit_planes(clconv_emit *e, const clconv_task *t);

#endif
