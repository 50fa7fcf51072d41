/*
 * Classes are told from magnitudes alone: with ties to even, a magnitude up to
 * 2^-25 becomes 0, and one from 2^-14 - 2^-25 on is normal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counts.h"

#include <math.h>

#include "host.h"

float counts_cast(float value, int scale_log2)
{
    float limit = ldexpf(65504, -scale_log2);

    if (!isfinite(value))
        return value;
    if (fabsf(value) > limit)
        value = copysignf(limit, value);
    value =
        host_float_from_half(host_half_from_float(ldexpf(value, scale_log2)));
    return ldexpf(value, -scale_log2);
}

static void count(double value, double scale, clconv_counts *counts)
{
    double magnitude = fabs(value) * scale;

    if (isnan(value)) {
        ++counts->nan;
        return;
    }
    counts->nonzero += magnitude > 0;
    counts->zeroed += magnitude > 0 && magnitude <= 0x1p-25;
    counts->subnormal += magnitude > 0x1p-25 && magnitude < 0x1p-14 - 0x1p-25;
    counts->saturated += magnitude > 65504 && isfinite(magnitude);
    counts->inf += isinf(value) != 0;
}

clconv_counts counts_of_cast(const float *values, size_t n, int scale_log2)
{
    clconv_counts counts = {0};
    double scale = ldexp(1, scale_log2);

    for (size_t i = 0; i < n; ++i)
        count((double)values[i], scale, &counts);
    return counts;
}

clconv_counts counts_of_output(const double *values, size_t n)
{
    clconv_counts counts = {0};

    for (size_t i = 0; i < n; ++i)
        count(values[i], 1, &counts);
    return counts;
}

clconv_counts counts_of_fp32(const float *values, size_t n)
{
    clconv_counts counts = counts_of_cast(values, n, 0);

    counts.zeroed = 0;
    counts.subnormal = 0;
    counts.saturated = 0;
    return counts;
}

const char *counts_difference(const clconv_counts *got,
                              const clconv_counts *expected, double *got_count,
                              double *expected_count)
{
    const char *const names[] = {"nonzero",   "zeroed", "subnormal",
                                 "saturated", "nan",    "inf"};
    const uint64_t a[] = {got->nonzero,   got->zeroed, got->subnormal,
                          got->saturated, got->nan,    got->inf};
    const uint64_t b[] = {expected->nonzero,   expected->zeroed,
                          expected->subnormal, expected->saturated,
                          expected->nan,       expected->inf};

    for (int i = 0; i < 6; ++i) {
        if (a[i] != b[i]) {
            *got_count = (double)a[i];
            *expected_count = (double)b[i];
            return names[i];
        }
    }
    return NULL;
}
