/*
 * Programs that show whether a device does what the kernels of this family rely
 * on, each by one work-group of 128. Yours to free(); NULL: no memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_SELFTEST_H
#define CLCONV_WGMMA_SELFTEST_H

#include <stddef.h>

#include "tensor_map.h"

/*
 * wgmma_selftest(__global const ushort *a, __global const ushort *b,
 *                __global float *d)
 *
 * d[64][64] = a[64][64] * b[64][64], rows first, fp16 bits, with so many bytes
 * of local memory, a and b at their end.
 */
char *clconv_wgmma_selftest_source(size_t local_memory);

/* A load of the copy unit: a map, a box or pixels from channel 0 of this column,
 * row and image on, moved by the tap's columns and rows. */
typedef struct clconv_selftest_load {
    const clconv_tensor_map *map;
    int from[3], tap[2];
} clconv_selftest_load;

/* Halves that it brings. */
int clconv_selftest_load_halves(const clconv_selftest_load *load);

/*
 * maps_selftest(__global const half *x, __global ulong *memory,
 *               map_t tiled_map, map_t im2col_map, __global ushort *out)
 *
 * out is what the two loads bring, of a tiled map, then of one by im2col: line
 * after line, as bits. memory: room for two maps.
 */
char *clconv_maps_selftest_source(const clconv_selftest_load loads[2]);

#endif
