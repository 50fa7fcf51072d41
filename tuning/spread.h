/*
 * How large rounding errors in proportion to the terms of sums may be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SPREAD_H
#define CLCONV_SPREAD_H

#include "problem.h"

/* Where each element of an output (DW, DB, DX) is a sum of products a b: the
 * sum of a^2 b^2 over all elements, that is the square of the Frobenius norm of
 * sqrt(sum of a^2 b^2). other is X for DW, W for DX, unused for DB. For p.n
 * images, in fp64. False: no memory. */
bool clconv_spread_squares(const clconv_problem *p, clconv_tensor output,
                           const float *dy, const float *other, double *out);

#endif
