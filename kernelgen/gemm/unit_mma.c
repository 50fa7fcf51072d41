/*
 * NVIDIA's mma.sync.m16n8k16 (sm_80 and later) and m16n8k8 (sm_75), fp16 into
 * fp32. Per the PTX ISA, with g = lane / 4 and t = lane % 4: A's registers are
 * the quadrants of 16x16, rows first; B's the halves of k; C's pairs lie side
 * by side. m16n8k8 is the first half of k: a0, a1 and b0.
 *
 *     a0 a2     row g, g + 8      k 2t, 2t + 1, then + 8
 *     a1 a3
 *     b0 b1     k 2t, 2t + 1, then + 8      column g
 *     c0 c1     row g, g + 8      column 2t, 2t + 1
 *     c2 c3
 *
 * Subnormal halves are multiplied as they are; the sum of the products and
 * the accumulator is truncated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit.h"

extern const clconv_unit clconv_unit_mma_m16n8k8, clconv_unit_mma_m16n8k16;

CLCONV_UNIT_DEFINE_FACT(a_row, lane / 4 + 8 * (reg % 2));
CLCONV_UNIT_DEFINE_FACT(a_k, 2 * (lane % 4) + 8 * (reg / 2) + part);
CLCONV_UNIT_DEFINE_FACT(b_k, 2 * (lane % 4) + 8 * reg + part);
CLCONV_UNIT_DEFINE_FACT(b_column, lane / 4);
CLCONV_UNIT_DEFINE_FACT(c_row, lane / 4 + 8 * (reg / 2));
CLCONV_UNIT_DEFINE_FACT(c_column, 2 * (lane % 4) + reg % 2);

const clconv_unit clconv_unit_mma_m16n8k16 = {
    .id = CLCONV_UNIT_MMA_M16N8K16,
    .name = "mma_m16n8k16",
    .m = 16,
    .n = 8,
    .k = 16,
    .lanes = 32,
    .a_registers = 4,
    .b_registers = 2,
    .c_registers = 4,
    .a_row = CLCONV_UNIT_FACT(a_row),
    .a_k = CLCONV_UNIT_FACT(a_k),
    .b_k = CLCONV_UNIT_FACT(b_k),
    .b_column = CLCONV_UNIT_FACT(b_column),
    .c_row = CLCONV_UNIT_FACT(c_row),
    .c_column = CLCONV_UNIT_FACT(c_column),
    .flushes_subnormals = false,
    .accumulator = CLCONV_UNIT_TRUNCATES,
    .native_part = "mma_m16n8k16",
};

const clconv_unit clconv_unit_mma_m16n8k8 = {
    .id = CLCONV_UNIT_MMA_M16N8K8,
    .name = "mma_m16n8k8",
    .m = 16,
    .n = 8,
    .k = 8,
    .lanes = 32,
    .a_registers = 2,
    .b_registers = 1,
    .c_registers = 4,
    .a_row = CLCONV_UNIT_FACT(a_row),
    .a_k = CLCONV_UNIT_FACT(a_k),
    .b_k = CLCONV_UNIT_FACT(b_k),
    .b_column = CLCONV_UNIT_FACT(b_column),
    .c_row = CLCONV_UNIT_FACT(c_row),
    .c_column = CLCONV_UNIT_FACT(c_column),
    .flushes_subnormals = false,
    .accumulator = CLCONV_UNIT_TRUNCATES,
    .native_part = "mma_m16n8k8",
};
