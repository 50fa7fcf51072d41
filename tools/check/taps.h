/*
 * Which outputs one element of an input reaches, and through which element of
 * the other input: for outputs that must become NaN, and for correcting a
 * known result after a single input was replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_TAPS_H
#define CLCONV_CHECK_TAPS_H

#include <stddef.h>
#include <stdint.h>

#include "shape.h"

/* Called once for each product that the element may take part in. other is
 * the index of the product's second factor, or TAPS_PADDING where that lies
 * outside its tensor: an implementation may multiply such a product, with 0,
 * or leave it out. */
#define TAPS_PADDING SIZE_MAX
typedef void taps_visit(void *user, size_t output, size_t other);

/* dy[index] reaches dw through x. */
void taps_dy_to_dw(const shape *z, size_t index, taps_visit *visit, void *user);
/* dy[index] reaches dx through w. */
void taps_dy_to_dx(const shape *z, size_t index, taps_visit *visit, void *user);
/* x[index] reaches dw through dy. */
void taps_x_to_dw(const shape *z, size_t index, taps_visit *visit, void *user);
/* w[index] reaches dx through dy. */
void taps_w_to_dx(const shape *z, size_t index, taps_visit *visit, void *user);

#endif
