/*
 * What a kernel computes from problem and values on the host and needs on the
 * device (pitches, numbers of tiles, places in the scratch), as one struct of
 * longs: an argument of the entry points, so that one program serves all
 * shapes, or baked into the text as a constant, so that a compiler knows the
 * sizes. The text is the same but for that: it reads shape.pitch. A baked
 * program still serves every batch: what differs from call to call stays an
 * argument. And a kernel may want a few members, such as the filter's size, to be
 * constants in any case, at the price of a program for each of their values.
 *
 *     clconv_shape s = {.baked = t->baked};
 *     clconv_shape_add(&s, "pitch", pitch);
 *     clconv_shape_add_varying(&s, "batch", batch);
 *     clconv_shape_arg(&s, &pass);                    in passes()
 *     clconv_shape_emit(e, &s);                       in emit(), once
 *     clconv_shape_open(e, t, &pass, &s);             for each entry point
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_KERNEL_SHAPE_H
#define CLCONV_KERNEL_SHAPE_H

#include "kernel.h"

typedef enum clconv_shape_kind {
    CLCONV_SHAPE_PLAIN,   /* a constant if baked, else an argument */
    CLCONV_SHAPE_VARYING, /* an argument */
    CLCONV_SHAPE_FIXED    /* a constant */
} clconv_shape_kind;

typedef struct clconv_shape {
    bool baked;
    int count;
    char name[CLCONV_MAX_SHAPE][24];
    int64_t value[CLCONV_MAX_SHAPE];
    clconv_shape_kind kind[CLCONV_MAX_SHAPE];
} clconv_shape;

/* A member that is the same in all calls of a plan. */
void clconv_shape_add(clconv_shape *s, const char *name, int64_t value);

/* A member that depends on the batch of the call. */
void clconv_shape_add_varying(clconv_shape *s, const char *name, int64_t value);

/* A member that is a constant of the text, baked or not. */
void clconv_shape_add_fixed(clconv_shape *s, const char *name, int64_t value);

/* The last argument of a pass: the members that are no constants, and no
 * argument if there are none. */
void clconv_shape_arg(const clconv_shape *s, clconv_pass *pass);

/* typedef struct { long pitch; long batch; ... } shape_t;
 * if some members are constants, those that are not also as call_t. */
void clconv_shape_emit(clconv_emit *e, const clconv_shape *s);

/* clconv_entry_open(); then, if some members are constants,
 * const shape_t shape = { .pitch = 29, .batch = call.batch, ... }; */
void clconv_shape_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const clconv_shape *s);

#endif
