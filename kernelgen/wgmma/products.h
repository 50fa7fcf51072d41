/*
 * Hopper's warpgroup products: D[64][n] += A[64][16] * B[16][n] by 128
 * work-items, fp16 times fp16 into fp32, A and B read from local memory by
 * descriptor. Per the PTX ISA, wgmma.mma_async.m64nNk16.f32.f16.f16. How the
 * matrices lie there is in kernels/wgmma_matrix.cl.
 *
 * The emulation decodes the same descriptors and sums in plain OpenCL C, so a
 * wrong descriptor, swizzle or fragment shows on any device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_PRODUCTS_H
#define CLCONV_WGMMA_PRODUCTS_H

#include "emit.h"
#include "unit.h"

/* Work-items of a warpgroup; rows and terms of a product. */
#define CLCONV_WARPGROUP 128
#define CLCONV_WGMMA_M 64
#define CLCONV_WGMMA_N 256 /* columns at most */
#define CLCONV_WGMMA_K 16

typedef struct clconv_products {
    const char *name;          /* before the functions' names; NULL: nothing */
    int n;                     /* 8 ... 256, a multiple of 8 */
    bool a_along_k, b_along_k; /* do neighbours in memory follow the terms? */
    bool emulated;
} clconv_products;

/* Floats of D a work-item holds. */
int clconv_products_registers(const clconv_products *p);

/* Row and column of D of a work-item of the warpgroup (lane) and a register. */
extern const clconv_unit_fact clconv_wgmma_row, clconv_wgmma_column;

/* The parts that copy, multiply and wait, native or emulated. */
void clconv_products_emit_parts(clconv_emit *e, const clconv_products *p);

/*
 * void product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane)
 *     d += a * b, by descriptors; between products_begin() and _end()
 * void hold(float *d)
 *     d is complete and in registers: before begin and after end
 * and the facts d_row(lane, reg, part), d_column(lane, reg, part). After the
 * parts.
 */
void clconv_products_emit_functions(clconv_emit *e, const clconv_products *p);

/* Those of other products beside the first, whose facts stand. */
void clconv_products_emit_more(clconv_emit *e, const clconv_products *p);

#endif
