/*
 * One pass over the elements, in the type that they have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "extent.h"

#include <math.h>

#include "host.h"

static double element(const npy_array *array, size_t i)
{
    if (array->header.type == NPY_F32)
        return (double)((const float *)array->data)[i];
    return (double)host_float_from_half(((const uint16_t *)array->data)[i]);
}

extent extent_of(const npy_array *array)
{
    extent e = {0.0, 0, 0};

    for (size_t i = 0; i < array->header.elements; ++i) {
        double magnitude = fabs(element(array, i));

        if (isnan(magnitude))
            ++e.nan;
        else if (isinf(magnitude))
            ++e.inf;
        else if (magnitude > e.max_abs)
            e.max_abs = magnitude;
    }
    return e;
}
