/*
 * What a kernel computes from problem and values on the host and needs on the
 * device (pitches, numbers of tiles, places in the scratch), as one struct of
 * longs: an argument of the entry points, so that one program serves all
 * shapes, or baked into the text as a constant. The text is the same but for
 * that: it reads shape.pitch.
 *
 *     clconv_shape s = {.baked = false};
 *     clconv_shape_add(&s, "pitch", pitch);
 *     clconv_shape_arg(&s, &pass);                    in passes()
 *     clconv_shape_emit(e, &s);                       in emit(), once
 *     clconv_shape_open(e, t, &pass, &s);             for each entry point
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_KERNEL_SHAPE_H
#define CLCONV_KERNEL_SHAPE_H

#include "kernel.h"

typedef struct clconv_shape {
    bool baked;
    int count;
    char name[CLCONV_MAX_SHAPE][24];
    int64_t value[CLCONV_MAX_SHAPE];
} clconv_shape;

void clconv_shape_add(clconv_shape *s, const char *name, int64_t value);

/* The last argument of a pass; none if it is baked. */
void clconv_shape_arg(const clconv_shape *s, clconv_pass *pass);

/* typedef struct { long pitch; ... } shape_t; */
void clconv_shape_emit(clconv_emit *e, const clconv_shape *s);

/* clconv_entry_open(); then, baked, the constant that the argument replaces:
 * const shape_t shape = { .pitch = 29, ... }; */
void clconv_shape_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const clconv_shape *s);

#endif
