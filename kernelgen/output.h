/*
 * Emits how an output (dW, db, dX or Y) is stored: times the epilogue's power
 * of two, plus beta times the old value, Y's through its activation, rounded and
 * counted if the tensor is fp16. Emit the functions once, between functions,
 * then use them:
 *
 *     clconv_output_emit_store(e, t->problem, CLCONV_DX, 16);
 *     ... entry_open with CLCONV_ARG_TENSOR dX, CLCONV_ARG_BETA and, if
 *         clconv_output_is_counted(), CLCONV_ARG_COUNTS dX ...
 *     clconv_output_emit_tally(e, t->problem, CLCONV_DX);
 *     clconv_emit_line(e, "store_dx16(dx, i, sum, beta$tally);");
 *     clconv_output_emit_flush(e, t->problem, CLCONV_DX);
 *
 * The tally is a private variable of the work-item and holds fewer than 2^32
 * elements. Each element must be stored by one work-item, once. Functions of
 * a kernel that store pass the tally on: their parameter is $tally_parameter,
 * "" or ", counts_t *tally", the argument to their own calls $tally_pass, ""
 * or ", tally", where the entry point has $tally, "" or ", &tally".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_OUTPUT_H
#define CLCONV_OUTPUT_H

#include "kernel.h"

/* Do stores of this output count what rounding did: is it fp16? */
bool clconv_output_is_counted(const clconv_problem *p, clconv_tensor tensor);

/* void store_<output>[width](__global T *p, long i, float[width] value,
 * float beta[, counts_t *tally]); width is 1, 2, 4, 8 or 16. Each width once
 * a source. Sets the holes above. beta 0 never reads. */
void clconv_output_emit_store(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor, int width);

/*
 * void put_<output>[width](__global T *p, long i, long step, int count,
 * float[width] value, float beta[, counts_t *tally]) stores the first count
 * elements of value at i, i + step, ...; count may exceed width. Emits the
 * stores of width and of 1, so not beside clconv_output_emit_store().
 */
void clconv_output_emit_put(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int width);

/*
 * void store_<output>_run(__global T *p, long i, const float *values, int count,
 * float beta[, counts_t *tally]) stores count neighbours at i, in as few stores
 * as there can be: none may be stored twice, since beta would be added twice.
 * Emits the stores of all widths, so not beside clconv_output_emit_store().
 */
void clconv_output_emit_run(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor);

/* Declares the tally; nothing if the output is not counted. */
void clconv_output_emit_tally(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor);

/* Adds the tally to <output>_counts; nothing if it is not counted. */
void clconv_output_emit_flush(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor);

#endif
