/*
 * The single measurements of probe_run(). Each is false, with a line on
 * stderr, if it failed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBE_PARTS_H
#define CLCONV_BENCH_PROBE_PARTS_H

#include "host.h"

bool probe_fma(const host *h, double *flops);
/* 0 and NULL: no such unit. */
bool probe_matrix(const host *h, double *flops, const char **instruction);
bool probe_copy(const host *h, double *bytes);

/* The number that clGetDeviceInfo() gives for CL_DEVICE_MAX_COMPUTE_UNITS. */
size_t probe_compute_units(const host *h);

#endif
