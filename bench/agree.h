/*
 * Whether results are right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_AGREE_H
#define CLCONV_BENCH_AGREE_H

#include "data.h"

/* |values - expected| / |expected|, Frobenius norms; 0 if both are 0, NaN if
 * a NaN is among them. */
double agree_error(const float *values, const float *expected, size_t count);

/* The largest of the errors of those results that expected has. */
double agree_results(const shape *z, const contender_results *results,
                     const contender_results *expected);

/* Of random elements of the results, the error against plain loops in
 * double. False if there is no memory, said on stderr. */
bool agree_with_loops(const bench_data *data, const contender_results *results,
                      double *error);

#endif
