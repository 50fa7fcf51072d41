/*
 * Emits how an operand (dY, X or W) is read and rounded. Emit the functions
 * that a source needs once, between functions, then call them in its text:
 *
 *     clconv_operand_emit_load(e, t, CLCONV_DY, 16);
 *     clconv_emit_line(e, "float16 v = load_dy16(dy, dy_offset + i);");
 *
 * load_<operand><width>(p, i) returns elements i .. i+width-1 of p, which is
 * what entry.h declares for a CLCONV_ARG_OPERAND; no suffix for width 1. The
 * values are what is multiplied: those of the fp16 tensor or copy; an fp32
 * tensor under mixed math rounded in place to fp16 (a "fused" cast: clipped,
 * scaled, exactly representable in fp16, so a later store to half is exact);
 * an fp32 tensor as it is under fp32 math. No alignment beyond the element's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_OPERAND_H
#define CLCONV_OPERAND_H

#include "kernel.h"

/* The values of a parameter cast that offers both ways: fp16 copies written
 * by a kernel of their own, or rounding in place. */
enum { CLCONV_CAST_SEPARATE, CLCONV_CAST_FUSED };
#define CLCONV_CAST_NAMES CLCONV_NAMES("separate", "fused")

/* Is the operand read as half in this task: an fp16 tensor or a copy? */
bool clconv_operand_is_half(const clconv_task *t, clconv_tensor tensor);

/* Is an operand, as it is multiplied, an fp16 number: may a kernel keep it so? */
bool clconv_operand_fits_half(const clconv_problem *p, clconv_tensor tensor);

/* Is it rounded in place as it is read? */
bool clconv_operand_is_fused(const clconv_task *t, clconv_tensor tensor);

/* float[width] load_<operand>[width](const __global T *p, long i); width is
 * 1, 2, 4, 8 or 16. Each width once a source. */
void clconv_operand_emit_load(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor, int width);

/*
 * float[width] round_<tensor>[width](float[width] v): the fp16 value nearest
 * to v * 2^(the tensor's cast exponent), as a float. clconv_operand_emit_load
 * emits it by itself where the load is fused; the cast and the stores of fp16
 * outputs use it too. NaN and infinities stay what they are.
 */
void clconv_operand_emit_round(clconv_emit *e, const clconv_problem *p,
                               clconv_tensor tensor, int width);

/* float[width] clip_<tensor>[width](float[width] v): the same without rounding,
 * for a vstore_half that does that: half the operations. */
void clconv_operand_emit_clip(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor, int width);

/* float[width] halve_<tensor>[width](float[width] v): round_<tensor>[width] by
 * way of half, on many CPUs two instructions in place of a dozen; right for
 * what does not saturate. */
void clconv_operand_emit_halve(clconv_emit *e, const clconv_problem *p,
                               clconv_tensor tensor, int width);

/* float[width] read_<tensor>[width](const __global T *p, long i): the elements
 * of the caller's tensor as they are stored, widened. Each width once. */
void clconv_operand_emit_read(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor, int width);

/*
 * float16 rest_of_<tensor>(p, long i, int count, long total): elements from i
 * on of a tensor of total elements, as read_<tensor>16 has them, zeros from
 * count on. Emits the reads of 16 and 1 elements too.
 */
void clconv_operand_emit_rest(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor);

/* The operands (bits) among mask that the problem rounds to fp16. */
unsigned clconv_operand_cast_bits(const clconv_problem *p, unsigned mask);

/* The operands (bits) of which copies has one, plain or packed. */
unsigned clconv_operand_copied_bits(unsigned copies);

/* Hole $raw: elements i .. i+width-1 of p, half or float, as float[width].
 * Halves are read and converted as such where the device has cl_khr_fp16,
 * else by vload_half. */
void clconv_operand_set_raw(clconv_emit *e, const clconv_device *d,
                            bool half_type, int width);

/* Holes $vn ("", "2" ... "16"), $float and $int ("float16", "int16") for a
 * width, as the emitters here and in output.h use them. */
void clconv_operand_set_width(clconv_emit *e, int width);

/* Holes $limit, the bits of the largest float that 2^cast_log2 takes to
 * 65504, and $limit_value, the same in decimal. */
void clconv_operand_set_limit(clconv_emit *e, int cast_log2);

#endif
