/*
 * The OpenCL C parts of kernels/, embedded at build time: each file is valid
 * OpenCL C by itself and has no holes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PARTS_H
#define CLCONV_PARTS_H

#include <stddef.h>

typedef struct clconv_part {
    const char *name; /* the file's, without .cl */
    const char *text;
} clconv_part;

/* Sorted by name; written by the build. */
extern const clconv_part clconv_parts[];
extern const size_t clconv_part_count;

#endif
