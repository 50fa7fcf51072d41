/*
 * Emits a function that turns 16 rows of 16 numbers into columns, in
 * registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_TRANSPOSE_H
#define CLCONV_PANEL_TRANSPOSE_H

#include "emit.h"

/*
 * void name(type *from, long from_step, float *to, int to_step): column i of
 * the rows at from + i * from_step -> 16 numbers at
 * to + i * to_step. load: the head of what
 * reads a row, such as "vload16(0, ", or "*(" for vectors.
 */
void clconv_panel_emit_transpose(clconv_emit *e, const char *name,
                                 const char *type, const char *load);

#endif
