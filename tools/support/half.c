/*
 * IEEE binary16 <-> binary32 on bits, so that the result depends on no
 * compiler, no instruction set and no rounding mode.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include <string.h>

/* 2^16 - 2^4, halfway from 65504 to the 65536 that binary16 lacks: from here
 * on, rounding to nearest even gives infinity. */
#define FLOAT_BITS_TO_INF 0x477FF000u
#define FLOAT_BITS_INF 0x7F800000u
#define FLOAT_BITS_MIN_NORMAL_HALF 0x38800000u  /* 2^-14 */
#define FLOAT_BITS_HALF_OF_SMALLEST 0x33000000u /* 2^-25, rounds to 0 */

/* value / 2^shift, rounded to nearest even; 0 < shift < 32. */
static uint32_t shift_to_even(uint32_t value, unsigned shift)
{
    uint32_t quotient = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);

    if (rest > half || (rest == half && (quotient & 1u)))
        ++quotient;
    return quotient;
}

/* Keeps the upper payload bits and sets the quiet bit, as hardware does both
 * ways: a payload that lived in the lower bits alone must not become infinity. */
static uint32_t narrow_nan(uint32_t bits)
{
    return 0x7E00u | ((bits >> 13) & 0x3FFu);
}

/* bits: the magnitude of a float below 2^-14. In units of the subnormal step
 * 2^-24, with the implicit one written out, it is mantissa >> (126 - e). A
 * carry out of the ten bits is the smallest normal, as it should be. */
static uint32_t narrow_subnormal(uint32_t bits)
{
    uint32_t exponent = bits >> 23;
    uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;

    if (bits <= FLOAT_BITS_HALF_OF_SMALLEST)
        return 0;
    return shift_to_even(mantissa, 126u - exponent);
}

uint16_t host_half_from_float(float value)
{
    uint32_t bits, magnitude, sign, half;

    memcpy(&bits, &value, sizeof(bits));
    sign = (bits >> 16) & 0x8000u;
    magnitude = bits & 0x7FFFFFFFu;

    if (magnitude > FLOAT_BITS_INF)
        half = narrow_nan(magnitude);
    else if (magnitude >= FLOAT_BITS_TO_INF)
        half = 0x7C00u;
    else if (magnitude < FLOAT_BITS_MIN_NORMAL_HALF)
        half = narrow_subnormal(magnitude);
    else /* rebias the exponent from 127 to 15; a carry may move it up */
        half = shift_to_even(magnitude - ((127u - 15u) << 23), 13);
    return (uint16_t)(sign | half);
}

/* A subnormal half is mantissa * 2^-24, exact as a normal float. */
static uint32_t widen_subnormal(uint32_t mantissa)
{
    float value = (float)mantissa * 0x1p-24f;
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

float host_float_from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1Fu;
    uint32_t mantissa = half & 0x3FFu;
    uint32_t bits;
    float value;

    if (exponent == 0x1Fu)
        bits = FLOAT_BITS_INF | (mantissa ? 0x400000u | (mantissa << 13) : 0);
    else if (exponent == 0)
        bits = widen_subnormal(mantissa);
    else
        bits = ((exponent + 127u - 15u) << 23) | (mantissa << 13);
    bits |= sign;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
