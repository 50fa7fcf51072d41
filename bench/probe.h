/*
 * What the device can do at best, measured now and through OpenCL: the
 * ceilings that results are compared with.
 *
 *     probe_result peak;
 *     if (!probe_run(&h, &peak)) ...  // said on stderr
 *
 * Takes some seconds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBE_H
#define CLCONV_BENCH_PROBE_H

#include "host.h"

/* Per second. A multiply-add is two operations. */
typedef struct probe_result {
    double fma_flops;    /* fp32; NaN, as the others: not measured */
    double matrix_flops; /* fp16 operands, fp32 sums, by the instruction that
                          * does most; 0: the device has none */
    const char *matrix_instruction; /* "mma.sync" or "wgmma", NVIDIA's; NULL:
                                     * none */
    double copy_bytes; /* read and written by a copy past the caches */
} probe_result;

bool probe_run(const host *h, probe_result *out);

#endif
