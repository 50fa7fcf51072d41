/*
 * halves2.cl for devices before sm_80.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint halves2(float x, float y)
{
    uint halves;
    asm("{ .reg .b16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; "
        "mov.b32 %0, {a, b}; }" : "=r"(halves) : "f"(x), "f"(y));
    return halves;
}
