/*
 * Brings arrays into the zero-padded form that the reference's kernels read;
 * reference_sizes in reference_kernels.h says what lies where.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_REFERENCE_PACK_H
#define CLCONV_TOOLS_REFERENCE_PACK_H

#include <stdbool.h>

#include "reference_kernels.h"
#include "shape.h"

/* Sizes for n of z's images. False if the padded rows of one image are beyond
 * REFERENCE_MAX_PACKED floats or a number leaves 31 bits. */
#define REFERENCE_MAX_PACKED ((int64_t)1 << 30)
bool reference_sizes_from(const shape *z, int64_t n, reference_sizes *out);

/* Floats of one packed image of x or dy; doubles of the packed w. */
size_t reference_packed_x(const reference_sizes *g);
size_t reference_packed_dy(const reference_sizes *g);
size_t reference_packed_w(const reference_sizes *g);

/* Blocks of REFERENCE_DX_COLUMNS places in a phase of a row of dx. */
int64_t reference_place_blocks(const reference_sizes *g);

/* x and dy: g->n images; every element of out is written. */
void reference_pack_x(const reference_sizes *g, const float *x, float *out);
void reference_pack_dy(const reference_sizes *g, const float *dy, float *out);
void reference_pack_w(const reference_sizes *g, const float *w, double *out);

#endif
