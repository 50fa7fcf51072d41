/*
 * One kernel of a probe: built from a text, launched, timed.
 *
 *     probe_kernel k;
 *     probe_kernel_open(h, text, "peak", &k)
 *     clSetKernelArg(k.kernel, 0, ...);
 *     probe_kernel_launch(&k, global, local)       // compiles on some devices
 *     probe_kernel_seconds(&k, global, local, &seconds)
 *     probe_kernel_close(&k);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBE_KERNEL_H
#define CLCONV_BENCH_PROBE_KERNEL_H

#include "host.h"

typedef struct probe_kernel {
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    int burst; /* launches that are waited for together; 1 when opened */
} probe_kernel;

/* False, and silent, if the device's compiler refuses the text. */
bool probe_kernel_open(const host *h, const char *text, const char *name,
                       probe_kernel *out);
/* The same of a binary that is a text, such as PTX. */
bool probe_kernel_open_binary(const host *h, const char *text, const char *name,
                              probe_kernel *out);
void probe_kernel_close(probe_kernel *k);

/* One burst and its end. False: said on stderr. */
bool probe_kernel_launch(const probe_kernel *k, size_t global, size_t local);

/* Finds a value of the kernel's argument for the rounds of its loop, which has
 * a value already, that makes a burst long enough to be timed; sets it. False:
 * said on stderr. */
bool probe_kernel_calibrate(const probe_kernel *k, cl_uint rounds_arg,
                            size_t global, size_t local, cl_int *rounds);

/* Seconds a launch at the device's best: the least of the medians of some
 * series of launches, so that neither a single lucky launch nor a busy moment
 * counts. False: said on stderr. */
bool probe_kernel_seconds(const probe_kernel *k, size_t global, size_t local,
                          double *out);

#endif
