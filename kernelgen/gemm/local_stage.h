/*
 * Emits how a tile of one operand moves from global memory to registers and
 * from there to local memory, for local.c:
 *
 *     clconv_local_stage a = {&nest.a, "a", .rows = 64, ...};
 *     clconv_local_stage_emit(e, t, &a);             // between functions
 *     clconv_local_stage_emit_start(e, t, &a);       // in the entry point
 *     ...
 *
 * In the entry point:
 *
 *     start     declares tile_a, row_a, term_a, next_a and what else it takes,
 *               and fills row_a: a barrier must follow
 *     rows      what a work-item keeps of row_a
 *     find      term_a[at] = the spot of term k of the sum
 *     fetch     next_a = the elements of the terms from term_a[place] on, zero
 *               where the convolution has none
 *     put       the tile number turn of tile_a = next_a: a barrier must follow
 *     copy      fetch and put in one, by copies that end later (async)
 *
 * A tile is [k][row], clconv_local_stage_pitch() elements from one k to the
 * next. All work-items take part in each step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_LOCAL_STAGE_H
#define CLCONV_LOCAL_STAGE_H

#include "nest.h"

/* Terms whose spots local memory has; half of them are found at a time. */
#define CLCONV_LOCAL_TERMS 256

/* Elements of a quad, and those read from a tile at once. */
#define CLCONV_LOCAL_VECTOR 4

typedef struct clconv_local_stage {
    const clconv_nest_operand *operand;
    const char *name; /* "a" or "b" */
    int rows, tile_k; /* powers of two, as are items */
    int items;
    int width;      /* elements fetched at once: 1, or a quad */
    bool aligned;   /* quads that are dense in memory: as vectors? */
    bool half_tile; /* does the tile hold fp16 bits, not floats? */
    int tiles;      /* of the operand in local memory, used in turn */
    bool async;     /* copied to them, not by way of registers? */
} clconv_local_stage;

/* Elements of the tile from one k to the next. */
int clconv_local_stage_pitch(const clconv_local_stage *s);

/* Of local memory. */
size_t clconv_local_stage_bytes(const clconv_local_stage *s);

/* A small fixed loop over registers, which no loop can index: unrolled. On a
 * CPU they are memory, and a short text compiles sooner. */
void clconv_local_open_fixed(clconv_emit *e, const clconv_device *d,
                             const char *head);

void clconv_local_stage_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_local_stage *s);
void clconv_local_stage_emit_start(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s);
void clconv_local_stage_emit_rows(clconv_emit *e, const clconv_task *t,
                                  const clconv_local_stage *s);
void clconv_local_stage_emit_find(clconv_emit *e, const clconv_local_stage *s);
void clconv_local_stage_emit_fetch(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s);
void clconv_local_stage_emit_put(clconv_emit *e, const clconv_task *t,
                                 const clconv_local_stage *s);
/* Instead of fetch and put, where s->async. */
void clconv_local_stage_emit_copy(clconv_emit *e, const clconv_task *t,
                                  const clconv_local_stage *s);

#endif
