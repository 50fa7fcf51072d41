/*
 * A matrix unit as facts: the shape of one multiplication, which lane holds
 * which element, and how the unit rounds. Kernels are written against this
 * header alone, so that they know no unit's layout:
 *
 *     clconv_unit_block block = {.unit = clconv_unit_get(id), ...};
 *     clconv_unit_emit_functions(e, &block);  // between functions
 *     ... in the kernel, with int item, lane, float sum[][] declared:
 *     clconv_unit_emit_start(e, &block);      // what an emulation needs
 *     ... each time that a stage of A and B is there:
 *     clconv_unit_emit_multiply(e, &block);   // sum += A * B
 *
 * Four warps are a warpgroup, of which each has 16 of every 64 rows, as with
 * Hopper's warpgroup products; so both leave their sums in the same places:
 *
 *     int d_row(lane, reg, 0), d_column(lane, reg, 0)
 *         of sum[i][reg] in the i-th 64 rows of the warpgroup, lane = 0 to 127
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

/* What a warp multiplies of a stage: loads are fragments.h's. */
typedef struct clconv_unit_block {
    const clconv_unit *unit;
    bool emulated;            /* products in plain OpenCL C */
    int warps;                /* of the work-group */
    int rows, columns, terms; /* multiples of 16 */
} clconv_unit_block;

/* Are these multiples of fragments, and those of the unit? */
bool clconv_unit_fits(const clconv_unit_block *b);

/* Bytes of local memory that an emulation needs. */
size_t clconv_unit_local_bytes(const clconv_unit_block *b);

/* int name(int lane, int reg, int part) */
void clconv_unit_emit_fact(clconv_emit *e, const char *name,
                           const clconv_unit_fact *fact);

void clconv_unit_emit_functions(clconv_emit *e, const clconv_unit_block *b);

/* In the kernel, once. */
void clconv_unit_emit_start(clconv_emit *e, const clconv_unit_block *b);

/*
 * Multiplies the stage of A at address at and of B at at + $a_bytes: rows of A
 * from int a_row0 on, 16 of every 64, columns of B from int b_column0 on.
 * All work-items must come here together: an emulation has barriers.
 */
void clconv_unit_emit_multiply(clconv_emit *e, const clconv_unit_block *b);

#endif
