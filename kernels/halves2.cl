/*
 * Two halves in a word, the first low, rounded to nearest: one instruction from
 * sm_80 on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint halves2(float x, float y)
{
    uint halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(y), "f"(x));
    return halves;
}
