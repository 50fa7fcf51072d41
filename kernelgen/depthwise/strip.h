/*
 * What the two strip kernels share: depthwise problems with one channel of dY a
 * group. A strip is a few columns of a channel, or of channels side by side
 * (NHWC), that a work-item follows down the rows of an image; what rows have
 * in common stays in its registers. All it reads is asked for a row ahead, as
 * words, and turned to floats when its turn comes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_STRIP_H
#define CLCONV_STRIP_H

#include "kernel.h"
#include "kernel_shape.h"

/* Rows that a filter column reaches, and columns that a filter row does. */
int64_t clconv_strip_reach_h(const clconv_problem *p);
int64_t clconv_strip_reach_w(const clconv_problem *p);

/* Are rows and columns, padding included, and a row's elements so few that ints
 * count them? */
bool clconv_strip_is_countable(const clconv_problem *p);

/* Depthwise without a multiplier, rows and filters that ints and registers
 * hold. */
bool clconv_strip_covers(const clconv_problem *p);

/* Can a work-item take vec channels at once: does each vector of these tensors
 * (bits) lie at a multiple of its size? NCHW: 1. */
bool clconv_strip_can_vector(const clconv_problem *p, unsigned tensors, int vec);

/* Channels and columns of dY of a work-item, in the order in which defaults
 * try them: by how fast they were. */
typedef struct clconv_strip_size {
    int vec, columns;
} clconv_strip_size;

#define CLCONV_STRIP_SIZES 9

extern const clconv_strip_size clconv_strip_sizes[CLCONV_STRIP_SIZES];

/* A strip of dX, columns of it from a multiple of that on, and the columns of
 * dY that meet it: reads from first_q on, counted from where the stride takes
 * the strip's first column: (left + pad_left) / stride_w. Column j of these
 * and tap s meet column (first_q + j) * stride_w + s * dilation_w - shift. */
typedef struct clconv_strip_span {
    int64_t columns, shift, first_q, reads;
} clconv_strip_span;

/* stride_w times columns of dX. */
clconv_strip_span clconv_strip_span_of(const clconv_problem *p, int64_t columns);

/* The column of the strip that column j and tap s meet; -1: none. */
int64_t clconv_strip_meet(const clconv_problem *p, const clconv_strip_span *n,
                          int64_t j, int64_t s);

/* After how many turns of a loop that takes step of its rows anew each row is
 * back in the registers of the first turn, so that none ever moves. */
int64_t clconv_strip_turns(int64_t rows, int64_t step);

/* The largest power of two up to most that divides count. */
int64_t clconv_strip_power_of_2(int64_t count, int64_t most);

/* Members of the shape: n (the batch), c, h, w, p, q, strides of dY (dy_image,
 * dy_channel, dy_row) and of X and dX. */
void clconv_strip_add_sizes(clconv_shape *s, const clconv_problem *p,
                            int64_t batch);

/* Holes $raw_dy, $raw_x, $raw_w; $dy_type, ... as depthwise.h says; $column,
 * elements from column to column. Emits the part that fp16 words need. */
void clconv_strip_set_holes(clconv_emit *e, const clconv_task *t, int vec);

/* raw_t to_words[vec](float[vec] v), float[vec] to_floats[vec](raw_t v): fp16
 * numbers side by side; vec is 1, 2 or 4. Needs the parts of set_holes. */
void clconv_strip_emit_words(clconv_emit *e, int vec);

/*
 * void tame_<tensor>(float[vec] *v): count vectors clipped and scaled, as
 * clip_<tensor> of operand.h does, but at one comparison an element unless one
 * of them has to be clipped.
 */
void clconv_strip_emit_tame(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int vec, int64_t count);

/*
 * raw_t fetch_<operand>(p, long i): vec elements as they are stored, where i
 * is a multiple of vec.
 * void floats_<operand>(float[vec] *to, const raw_t *from): what is multiplied,
 * as operand.h says, of count vectors. Needs words.
 */
void clconv_strip_emit_fetch(clconv_emit *e, const clconv_task *t,
                             clconv_tensor tensor, int vec, int64_t count);

/*
 * void row_<operand>(raw_t *to, p, long row, int step, int first, int end):
 * columns first, first + 1, ... of a row that starts at element row, step
 * elements from column to column; zeros before column 0 and from end on.
 * Needs fetch.
 */
void clconv_strip_emit_row(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor, int vec, int64_t columns);

#endif
