/*
 * The least time that a device's peaks leave for a problem.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_ROOFLINE_H
#define CLCONV_BENCH_ROOFLINE_H

#include "probe.h"

/* Operations, and bytes of the tensors moved once. */
typedef struct work {
    double flop, bytes;
} work;

/* Operations a second that bound a contender of this name: those of a matrix
 * unit for the library's mixed precision where there is one, else those of
 * fp32. NaN: not known, as for bf16. */
double roofline_peak(const probe_result *peaks, const char *name);

/* Seconds: of the operations or of the bytes, whichever takes longer. NaN if
 * the peak is. */
double roofline_floor(const work *w, double peak, double copy_bytes);

#endif
