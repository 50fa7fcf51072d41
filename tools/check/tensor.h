/*
 * How a tensor lies in a buffer, and the way there and back. Here, arrays are
 * always float with the channels before the place, [outer][channels][area]:
 *
 *     tensor_form form = { n, c, h * w, CLCONV_NHWC, CLCONV_F16 };
 *     bytes = malloc(tensor_bytes(&form));
 *     tensor_encode(&form, x, bytes);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_TENSOR_H
#define CLCONV_CHECK_TENSOR_H

#include <stddef.h>

#include "clconv/clconv.h"
#include "shape.h"

typedef struct tensor_form {
    size_t outer, channels, area;
    clconv_layout layout;
    clconv_type type;
} tensor_form;

/* The forms of a problem's tensors, for z's images. */
tensor_form tensor_x(const shape *z, clconv_layout layout, clconv_type type);
tensor_form tensor_w(const shape *z, clconv_layout layout, clconv_type type);
tensor_form tensor_dy(const shape *z, clconv_layout layout, clconv_type type);
tensor_form tensor_db(const shape *z, clconv_type type);

size_t tensor_count(const tensor_form *form);
size_t tensor_bytes(const tensor_form *form);

/* fp16: to nearest, ties to even; beyond its range Inf. */
void tensor_encode(const tensor_form *form, const float *values, void *bytes);
void tensor_decode(const tensor_form *form, const void *bytes, float *values);

#endif
