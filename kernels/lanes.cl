/*
 * Sums over the elements of a vector, pairwise, in a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static int isum(int v)
{
    return v;
}

static int isum4(int4 v)
{
    int2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static int isum16(int16 v)
{
    int8 eight = v.lo + v.hi;
    return isum4(eight.lo + eight.hi);
}

static float fsum(float v)
{
    return v;
}

static float fsum4(float4 v)
{
    float2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static float fsum16(float16 v)
{
    float8 eight = v.lo + v.hi;
    return fsum4(eight.lo + eight.hi);
}
