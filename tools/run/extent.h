/*
 * How large the elements of an array are: what tables show and advice uses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_EXTENT_H
#define CLCONV_RUN_EXTENT_H

#include "npy.h"

typedef struct extent {
    double max_abs; /* of the finite elements; 0 if there are none */
    uint64_t nan;
    uint64_t inf;
} extent;

extent extent_of(const npy_array *array);

#endif
