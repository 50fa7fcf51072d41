/*
 * Writes OpenCL C, one line a call, indented by nesting.
 *
 *     clconv_emit *e = clconv_emit_new();
 *     clconv_emit_set(e, "tile_k", 4);
 *     clconv_emit_open(e, "for (int k = 0; k < $tile_k; ++k)");
 *     clconv_emit_line(e, "acc[k] = 0.0f;");
 *     clconv_emit_close(e);
 *     char *source = clconv_emit_take(e);
 *     clconv_emit_free(e);
 *
 * A constant is a named hole: $name, or ${name} where letters follow; "$$"
 * is a dollar. Lines are format-free otherwise: no printf, no escapes.
 * A line that starts with '#' other than #pragma is refused: a device is
 * given exactly what it runs.
 *
 * The first failure (no memory, unknown hole, unbalanced close) sticks:
 * later calls do nothing, and the caller checks once, at clconv_emit_take().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EMIT_H
#define CLCONV_EMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct clconv_emit clconv_emit;

clconv_emit *clconv_emit_new(void);    /* NULL: no memory */
void clconv_emit_free(clconv_emit *e); /* NULL: no-op */

/* Defines a hole, or gives it a new value from here on. */
void clconv_emit_set(clconv_emit *e, const char *hole, int64_t value);
void clconv_emit_set_text(clconv_emit *e, const char *hole, const char *text);
/* A float constant, exact: 2^exponent as a hexadecimal literal with f. */
void clconv_emit_set_exp2(clconv_emit *e, const char *hole, int exponent);

void clconv_emit_line(clconv_emit *e, const char *line);
void clconv_emit_blank(clconv_emit *e);

/* "head {" and one level deeper; close: "}". A NULL head opens a bare block. */
void clconv_emit_open(clconv_emit *e, const char *head);
void clconv_emit_close(clconv_emit *e);
/* "} else {" in place of close and open. */
void clconv_emit_else(clconv_emit *e);

/* The text of kernels/<name>.cl as it stands, once: a part that was emitted
 * before is not repeated. Only between functions. */
void clconv_emit_part(clconv_emit *e, const char *name);

/* The source, yours to free(); NULL after a failure or with open blocks. */
char *clconv_emit_take(clconv_emit *e);

/* What went wrong first, for a message; "" if nothing. */
const char *clconv_emit_error(const clconv_emit *e);

#endif
