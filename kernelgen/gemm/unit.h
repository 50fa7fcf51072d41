/*
 * A matrix unit as facts: the shape of one multiplication, which lane holds
 * which element, and how the unit rounds. Loop nests are written against this
 * header alone, so that they know no unit's layout:
 *
 *     clconv_unit_block block = {.unit = clconv_unit_get(id), ...};
 *     clconv_unit_emit_functions(e, &block);  // between functions
 *     ... in the kernel, with int item, tile_a and tile_b declared:
 *     clconv_unit_emit_start(e, &block);      // lane, warp, acc = 0, scratch
 *     ... each time that tile_a and tile_b are filled:
 *     clconv_unit_emit_multiply(e, &block);   // acc += tile_a * tile_b
 *     ... at the end, once an accumulator:
 *     clconv_unit_open_walk(e, &block);       // int m, int n, float value
 *     clconv_emit_line(e, "...store value at row m and column n...");
 *     clconv_unit_close_walk(e);
 *
 * One multiplication is C[m][n] += A[m][k] * B[k][n], fp16 times fp16 into
 * fp32, done by the lanes of a warp together. A 32-bit register of A or B
 * holds two halves that are neighbours along k, the lower k in the low half:
 * part 0 and 1 of a coordinate; a register of C holds one float: part 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_UNIT_H
#define CLCONV_UNIT_H

#include "device.h"
#include "emit.h"

/* A coordinate of the element in (lane, register, part): the same expression
 * as a C function and as OpenCL C over int lane, reg, part. */
typedef struct clconv_unit_fact {
    int (*value)(int lane, int reg, int part);
    const char *text;
} clconv_unit_fact;

/* Defines the function and the text of one fact from one expression. */
#define CLCONV_UNIT_DEFINE_FACT(name, expression)                              \
    static int name(int lane, int reg, int part)                               \
    {                                                                          \
        (void)lane, (void)reg, (void)part;                                     \
        return expression;                                                     \
    }                                                                          \
    static const char name##_text[] = #expression

#define CLCONV_UNIT_FACT(name)                                                 \
    {                                                                          \
        name, name##_text                                                      \
    }

typedef enum clconv_unit_rounding {
    CLCONV_UNIT_NEAREST,
    CLCONV_UNIT_TRUNCATES /* towards zero: long sums are biased */
} clconv_unit_rounding;

typedef struct clconv_unit {
    clconv_unit_id id;
    const char *name;
    int m, n, k, lanes;
    int a_registers, b_registers, c_registers; /* of each lane */
    clconv_unit_fact a_row, a_k;
    clconv_unit_fact b_k, b_column;
    clconv_unit_fact c_row, c_column;
    bool flushes_subnormals; /* of A and B */
    clconv_unit_rounding accumulator;
    /* The part that defines the multiplication in the device's own terms:
     * void unit_multiply(float *c, const uint *a, const uint *b). */
    const char *native_part;
} clconv_unit;

/* NULL for a unit that is not described by fragments. */
const clconv_unit *clconv_unit_get(clconv_unit_id id);

/*
 * What one work-group multiplies: tile_a holds rows x tile_k halves and
 * tile_b columns x tile_k, as ushort, k innermost, a row every pitch halves.
 * The warps share the rows out among them; each takes all columns.
 */
typedef struct clconv_unit_block {
    const clconv_unit *unit;
    bool emulated; /* products in plain OpenCL C */
    int warps;
    int tile_m, tile_n, tile_k; /* multiples of warps * m, n, k */
    int pitch;
} clconv_unit_block;

/* Does the unit divide the block evenly? */
bool clconv_unit_fits(const clconv_unit_block *b);

/* Bytes of local memory beside the tiles. */
size_t clconv_unit_local_bytes(const clconv_unit_block *b);

/* int name(int lane, int reg, int part) */
void clconv_unit_emit_fact(clconv_emit *e, const char *name,
                           const clconv_unit_fact *fact);

void clconv_unit_emit_functions(clconv_emit *e, const clconv_unit_block *b);
void clconv_unit_emit_start(clconv_emit *e, const clconv_unit_block *b);

/* All work-items must come here together: an emulation has barriers. The
 * caller's barriers stand before and after. */
void clconv_unit_emit_multiply(clconv_emit *e, const clconv_unit_block *b);

void clconv_unit_open_walk(clconv_emit *e, const clconv_unit_block *b);
void clconv_unit_close_walk(clconv_emit *e);

#endif
