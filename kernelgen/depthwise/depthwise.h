/*
 * What the depthwise kernels share. A problem is depthwise where each group
 * has one channel of X, and group_k of dY (its "planes", 1 in most networks):
 * nothing is summed over channels of X, so the arithmetic is small and moving
 * each tensor once is the floor.
 *
 * The CPU kernels hold rows in private memory, rounded and as fp32, with
 * zeros around them. A vector of 16 floats is 16 columns of a row (NCHW) or 16
 * channels of a pixel (NHWC).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DEPTHWISE_H
#define CLCONV_DEPTHWISE_H

#include "kernel.h"
#include "kernel_shape.h"

#define CLCONV_DEPTHWISE_LANES 16

/* Limits of the CPU kernels, sizes of their private arrays. */
#define CLCONV_DEPTHWISE_MAX_TAPS 256  /* planes * R * S */
#define CLCONV_DEPTHWISE_MAX_LINES 64  /* planes * R */
#define CLCONV_DEPTHWISE_MAX_STRIDE 16 /* along w */
#define CLCONV_DEPTHWISE_RING 65536
#define CLCONV_DEPTHWISE_LINE 8192       /* of a row being worked on */
#define CLCONV_DEPTHWISE_TAP_FLOATS 8192 /* of a filter, of all channels */
#define CLCONV_DEPTHWISE_PIXEL 2048      /* of a pixel of dY */

/* One channel of X in each of several groups. */
bool clconv_depthwise_is(const clconv_problem *p);

/*
 * The CPU kernels' parameter "vectors": those of a pixel of NHWC that a
 * work-item computes. Channels of a work-item, which is also the number of
 * floats that a column takes in a row held: 1 if NCHW; and the number of such
 * blocks of channels.
 */
int64_t clconv_depthwise_channels(const clconv_problem *p, int vectors);
int64_t clconv_depthwise_channel_blocks(const clconv_problem *p, int vectors);

/* Do filter, planes and stride keep the limits? Rows are for the caller. */
bool clconv_depthwise_is_small(const clconv_problem *p, int vectors);

/* a rounded up to a multiple of b; the largest integer not above a / b. */
int64_t clconv_depthwise_align(int64_t a, int64_t b);
int64_t clconv_depthwise_floor(int64_t a, int64_t b);

/* The first value of a parameter, ascending, with which items * value is at
 * least wanted, or the last that is not above most. */
int clconv_depthwise_split(const clconv_param *param, double items,
                           double wanted, int64_t most);

/* A term of a kernel's cost: reading an operand once, with the pass that
 * writes its copy if the task reads one. */
double clconv_depthwise_read_cost(const clconv_task *t, clconv_tensor tensor);

/* Members of the shape: n, the batch, the problem's sizes, the strides of dY
 * (dy_image, dy_channel, ...) and of X and dX (x_image, ...), planes. */
void clconv_depthwise_add_sizes(clconv_shape *s, const clconv_problem *p,
                                int64_t batch);

/* Holes: $column floats a column, $next from vector to vector of a row, and
 * the sizes of private arrays: $max_taps, $max_lines, $max_stride,
 * $ring_floats, $line_floats, $tap_floats; $dy_type, $x_type, $w_type: what
 * the operands' pointers point to. */
void clconv_depthwise_set_types(clconv_emit *e, const clconv_task *t);
void clconv_depthwise_set_holes(clconv_emit *e, const clconv_task *t,
                                int vectors);

/*
 * void keep16(float16 v, float *to) stores to private memory whatever the
 * alignment, in one piece: some compilers cut vstore16 in four, and loading
 * the whole soon after then has to wait for them.
 * void clear(float *to, int count): zeros, up to a multiple of 16.
 */
void clconv_depthwise_emit_keep(clconv_emit *e);

/* A private array of $<size>_floats floats, which starts where a cache line
 * does: vectors that cross lines take twice the time. */
void clconv_depthwise_emit_array(clconv_emit *e, const char *name,
                                 const char *size);

/* void split(from, to, count, step, pitch): to[f * pitch + i] =
 * from[i * step + f] for i < count, f < step; with step 2, i runs to the next
 * multiple of 16. */
void clconv_depthwise_emit_split(clconv_emit *e);

/*
 * The second stage of dW: adds shape.parts parts in scratch, shape.elements
 * apart, in order, and stores them. A work-item of a group of local takes
 * width elements, 1 or 16.
 */
clconv_pass clconv_depthwise_sum_pass(const clconv_task *t,
                                      const clconv_shape *s, const char *entry,
                                      int width, int local);
void clconv_depthwise_emit_sum(clconv_emit *e, const clconv_task *t,
                               const clconv_pass *pass, const clconv_shape *s,
                               int width);

#endif
