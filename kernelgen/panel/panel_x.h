/*
 * X as bwd_weight_panel reads it: in fp32, rounded as it is multiplied (one
 * scalar of fp16 takes a CPU longer than sixteen), with zeros where taps
 * reach past the edges, and in the tensor's own order as far as possible:
 * NCHW becomes [channel][image][row][column], NHWC stays
 * [image][row][column][channel]. An fp32 tensor that is not rounded and needs
 * no zeros is read as it is, and then nothing is copied.
 *
 *     element (image, channel, row, column) lies at
 *     image * image_stride + channel * channel_stride
 *         + (top + row) / skip * row_stride + (left + column) * column_stride
 *
 * Filters of one row have a skip, their vertical stride: only rows that they
 * reach are there.
 *
 *     clconv_panel_x_set(p, &x);
 *     clconv_panel_x_shape(&x, p, &shape);                       in the shape
 *     clconv_panel_x_pass(&x, t, entry, batch, &shape, &pass);   in passes()
 *     clconv_panel_x_emit(e, &x, t, &shape, &pass);              in emit()
 *
 * The pass counts each element of X if the task says so, those that no tap
 * reaches too. Not offered if X is read directly: there is no pass then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_X_H
#define CLCONV_PANEL_X_H

#include "kernel.h"
#include "kernel_shape.h"

typedef struct clconv_panel_x {
    int64_t top, left;         /* zeros before row 0 and column 0 */
    int64_t panel_rows, pitch; /* rows and columns with the zeros */
    int64_t skip;              /* of X from row to row */
    bool direct;               /* is the tensor itself read? */
    int64_t image_stride, channel_stride, row_stride, column_stride;
    int64_t elements; /* of all */
    int64_t offset;   /* in the scratch, in floats: yours to set */
} clconv_panel_x;

/* Are all sizes so small that nothing computed from them overflows? Ask
 * before anything else. */
bool clconv_panel_x_fits(const clconv_problem *p);

void clconv_panel_x_set(const clconv_problem *p, clconv_panel_x *x);

/* Can X be read directly with this problem's types: does the main pass need
 * the tensor? */
bool clconv_panel_x_may_be_direct(const clconv_problem *p);

/* Adds x_direct, x_channel_stride, x_image_stride and so on. */
void clconv_panel_x_shape(const clconv_panel_x *x, const clconv_problem *p,
                          clconv_shape *s);

void clconv_panel_x_pass(const clconv_panel_x *x, const clconv_task *t,
                         const char *entry, int64_t batch,
                         const clconv_shape *s, clconv_pass *pass);

/* The entry point and the functions that it calls. */
void clconv_panel_x_emit(clconv_emit *e, const clconv_panel_x *x,
                         const clconv_task *t, const clconv_shape *s,
                         const clconv_pass *pass);

#endif
