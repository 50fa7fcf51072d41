/*
 * What the generic kernels share: reads that may reach over the end of a
 * tensor, and how a work-item finds its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GENERIC_H
#define CLCONV_GENERIC_H

#include "kernel.h"

/*
 * float[width] window_<operand>[width](const __global T *p, long i, long end):
 * elements i .. i+width-1 of a tensor of end elements, 0 where there is none.
 * Emits the loads it needs. width is 1 or 16.
 */
void clconv_generic_emit_window(clconv_emit *e, const clconv_task *t,
                                clconv_tensor tensor, int width);

/* Hole $lanes: the numbers of a vector's elements, 0, 1, ... width-1. */
void clconv_generic_set_lanes(clconv_emit *e, int width);

/* A loop over the $tile vectors t of a work-item; statement is indented. */
void clconv_generic_emit_each_tile(clconv_emit *e, const char *statement);

/* int name = item % count, and item becomes item / count. */
void clconv_generic_emit_place(clconv_emit *e, const char *name,
                               const char *count);

#endif
