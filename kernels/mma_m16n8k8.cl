/*
 * c[16][8] += a[16][8] * b[8][8] by the 32 lanes of a warp together, in
 * NVIDIA's PTX: fp16 operands, fp32 sums. All lanes must take part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
void unit_multiply(float *c, const uint *a, const uint *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
