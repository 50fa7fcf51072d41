/*
 * What is made of many times of one thing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_STATISTICS_H
#define CLCONV_BENCH_STATISTICS_H

#include <stddef.h>

/* Between the quartiles lies half of the values. */
typedef struct spread {
    double lower, median, upper;
} spread;

/* Sorts values; count >= 1. Between two values a quantile is interpolated. */
spread spread_of(double *values, size_t count);

#endif
