/*
 * A 4 x 4 transpose over the four work-items of a quad, t being 0 to 3: each
 * gives four words and ends with the t-th word of all four, in order. All 32
 * of a warp must call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint lane_xor(uint value, uint mask)
{
    uint other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other) : "r"(value), "r"(mask));
    return other;
}

static uint4 quad_transpose(uint4 v, int t)
{
    int odd = t & 1, high = t & 2;
    uint a = lane_xor(odd ? v.x : v.y, 1);
    uint b = lane_xor(odd ? v.z : v.w, 1);
    v = odd ? (uint4)(a, v.y, b, v.w) : (uint4)(v.x, a, v.z, b);
    a = lane_xor(high ? v.x : v.z, 2);
    b = lane_xor(high ? v.y : v.w, 2);
    return high ? (uint4)(a, b, v.z, v.w) : (uint4)(v.x, v.y, a, b);
}
