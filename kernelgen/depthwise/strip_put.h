/*
 * How a row of sums becomes a row of dX: in vectors of width neighbours, each
 * at a multiple of its size: channels of a pixel (NHWC) or columns (NCHW).
 *
 *     clconv_strip_emit_put(e, p, count, width);
 *     ... in the kernel, between braces:
 *     clconv_strip_emit_values(e, "", place, columns, vec, width);
 *     put_row(dx, i, values, count, step, beta, plain[, tally]);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_STRIP_PUT_H
#define CLCONV_STRIP_PUT_H

#include "kernel.h"

/* The width for strips of so many columns, if NCHW. */
int clconv_strip_row_width(const clconv_problem *p, int64_t columns);

/*
 * void put_row(dx, long i, float[width] *values, int count, int step,
 *              float beta, int plain[, tally])
 * stores the first of values, at most count, step elements apart, and may
 * change them. plain: beta is 0 and nothing counts. Sets $dx_type. Needs the
 * words (strip.h) of that width if dX is fp16.
 */
void clconv_strip_emit_put(clconv_emit *e, const clconv_problem *p,
                           int64_t count, int width);

/* float[width] values[]: columns elements of the array sums from place on, each
 * with lane (such as ".s0") behind it, which are float[vec]; joined where width
 * is larger than vec (1). */
void clconv_strip_emit_values(clconv_emit *e, const char *lane, int64_t place,
                              int64_t columns, int vec, int width);

#endif
