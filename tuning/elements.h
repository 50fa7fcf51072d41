/*
 * Tensors as a device holds them, fp32 or fp16, from and to floats on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_ELEMENTS_H
#define CLCONV_ELEMENTS_H

#include <stddef.h>

#include "clconv/clconv.h"

size_t clconv_elements_size(clconv_type type); /* bytes of one */

/* out may be values. For CLCONV_F16 each must be one that fp16 holds exactly
 * and not subnormal; see clconv_elements_round(). */
void clconv_elements_pack(clconv_type type, const float *values, size_t count,
                          void *out);

/* in and out must not overlap. Every value is taken, also NaN and Inf. */
void clconv_elements_unpack(clconv_type type, const void *in, size_t count,
                            float *out);

/* A value near this one, in (-4, 4), that every type holds exactly: a multiple
 * of CLCONV_ELEMENTS_STEP. */
#define CLCONV_ELEMENTS_STEP 0x1p-9F
float clconv_elements_round(float value);

#endif
