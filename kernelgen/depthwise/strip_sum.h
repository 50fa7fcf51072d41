/*
 * The second stage of dW where there are many parts: a work-group adds those
 * of a few elements, each row of its work-items every so many parts in order,
 * then the rows pairwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_STRIP_SUM_H
#define CLCONV_STRIP_SUM_H

#include "kernel.h"
#include "kernel_shape.h"

/* The pass; the shape has parts, and elements, those from part to part of the
 * scratch and of dW. local is a power of two from 16 on. */
clconv_pass clconv_strip_sum_pass(const clconv_task *t, const clconv_shape *s,
                                  const char *entry, int local);

/* Its entry point. */
void clconv_strip_emit_sum(clconv_emit *e, const clconv_task *t,
                           const clconv_pass *pass, const clconv_shape *s);

#endif
