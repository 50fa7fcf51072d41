/*
 * A matrix unit's instruction as probe_matrix() measures it. Its kernel,
 *
 *     peak(out, operand, rounds)
 *
 * multiplies matrices whose every element is one of the two fp16 in operand, so
 * many rounds, and leaves the sum of each work-item's sums in out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBE_PRODUCT_H
#define CLCONV_BENCH_PROBE_PRODUCT_H

#include "probe_kernel.h"

typedef struct probe_product {
    const char *name;       /* the instruction's */
    size_t local;           /* work-items of a group */
    size_t groups_per_unit; /* that fill a compute unit */
    double flop;            /* of a group in a round */
    float growth;           /* of out in a round, where every operand is 2^-4 */
    /* False, and silent, if the device has no such instruction. */
    bool (*open)(const host *h, probe_kernel *out);
} probe_product;

extern const probe_product probe_mma, probe_wgmma;

#endif
