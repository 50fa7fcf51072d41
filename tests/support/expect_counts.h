/*
 * The report's counts of the inputs, for kernels that count what they read.
 *
 *     static const family tile = {.plan = "bwd_weight_tile",
 *                                 .ops = CLCONV_OP_DW};
 *     expect_counts(&tile, "n2c5h7w17k6r3s3p1");
 *
 * The data hold zeros, numbers that become 0, subnormals, numbers at and
 * beyond the ends of fp16, NaN and infinities. Expected counts are worked out
 * on the host. Whatever fails, fails the test, with problem, plan, tensor and
 * class.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPECT_COUNTS_H
#define EXPECT_COUNTS_H

#include "family.h"

/*
 * The inputs that the family's outputs need are counted, each element once:
 * with these outputs wanted, for all images, for all but one, for none; and
 * by the same plan, which makes the bias gradient too, with that alone
 * wanted.
 */
void expect_counts(const family *f, const char *problem);

#endif
