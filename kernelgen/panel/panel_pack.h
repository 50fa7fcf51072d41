/*
 * The copies that bwd_data_panel reads, and how they are written.
 *
 * dY in fp32, rounded as it is multiplied, with zeros all around. Element
 * (image, group, row, column) of the group's channel k lies at
 *
 *     image * image_stride + group * group_stride
 *         + k / 8 * block_stride + k % 8 * channel_stride
 *         + (top + row) * row_stride + (left + column) * column_stride
 *
 * NHWC keeps the channels of a pixel together (channel_stride 1), NCHW the
 * columns of a row of one channel (column_stride 1), the same row of 8
 * channels one behind the other: neither is transposed.
 *
 * W as panels [group][c_block][r][s][k][16]: for each k of the group 16
 * neighbouring channels of dX, zeros past the group's last; fp32, or fp16
 * where that is exact.
 *
 * The pass of W counts each element if the task says so.
 *
 * Both lie in the scratch, dY first. The passes read these members of the
 * shape: batch, p q, r s, groups group_c group_k c_blocks, weights (where the
 * panels lie, in floats) and what clconv_panel_shape_dy() adds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_PACK_H
#define CLCONV_PANEL_PACK_H

#include "kernel.h"
#include "kernel_shape.h"

/* Channels of dX in a panel. */
#define CLCONV_PANEL_LANES 16
/* Channels of a block of dY. */
#define CLCONV_PANEL_BLOCK 8

typedef struct clconv_panel_dy {
    int64_t top, left;     /* zeros before row 0 and column 0 */
    int64_t rows, columns; /* with the zeros */
    int64_t image_stride, group_stride, block_stride, channel_stride;
    int64_t row_stride, column_stride;
} clconv_panel_dy;

typedef struct clconv_panel_weights {
    int64_t c_blocks; /* of a group */
    bool half_type;
} clconv_panel_weights;

/* The strides that follow from the borders, rows and columns. */
void clconv_panel_set_strides(const clconv_problem *p, clconv_panel_dy *dy);

/* Adds top, left, dy_rows, dy_image, dy_group, dy_block, dy_row, dy_column
 * and dy_channel: borders and strides. */
void clconv_panel_shape_dy(const clconv_panel_dy *dy, clconv_shape *s);

void clconv_panel_pass_dy(const clconv_problem *p, const clconv_panel_dy *dy,
                          int64_t batch, const clconv_shape *s,
                          clconv_pass *pass);
void clconv_panel_pass_weights(const clconv_task *t,
                               const clconv_panel_weights *w,
                               const clconv_shape *s, clconv_pass *pass);

/* The entry points and the functions that they call. */
void clconv_panel_emit_dy(clconv_emit *e, const clconv_task *t,
                          const clconv_shape *s, const clconv_pass *pass);
void clconv_panel_emit_weights(clconv_emit *e, const clconv_task *t,
                               const clconv_panel_weights *w,
                               const clconv_shape *s, const clconv_pass *pass);

#endif
