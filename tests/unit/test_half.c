/*
 * Half conversions: exhaustive over the halves, dense over the floats, against
 * a formula in double that shares nothing with the code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "host.h"

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* |half| by its definition. */
static double value_of_half(uint16_t half)
{
    int exponent = (half >> 10) & 31;
    int mantissa = half & 1023;

    if (exponent == 31)
        return mantissa ? (double)NAN : (double)INFINITY;
    return exponent ? ldexp(1024 + mantissa, exponent - 25)
                    : ldexp(mantissa, -24);
}

/* |value| rounded to a multiple of the step between halves around it. */
static double rounded_magnitude(double value)
{
    int exponent = value == 0 ? -14 : ilogb(value);
    double step = ldexp(1.0, (exponent < -14 ? -14 : exponent) - 10);
    double rounded = rint(fabs(value) / step) * step;

    return rounded > 65504.0 ? (double)INFINITY : rounded;
}

Test(half, every_half_widens_to_its_value)
{
    for (uint32_t i = 0; i < 65536; ++i) {
        uint16_t half = (uint16_t)i;
        float value = host_float_from_half(half);
        double expected = value_of_half(half);

        if (isnan(expected)) {
            cr_assert(isnan(value), "half %04" PRIx32, i);
            continue;
        }
        cr_assert_eq(fabs((double)value), expected, "half %04" PRIx32, i);
        cr_assert_eq(signbit(value) != 0, half >> 15, "half %04" PRIx32, i);
    }
}

Test(half, every_half_survives_a_round_trip)
{
    for (uint32_t i = 0; i < 65536; ++i) {
        bool is_nan = (i & 0x7C00u) == 0x7C00u && (i & 0x3FFu);
        uint16_t quiet = (uint16_t)(is_nan ? i | 0x200u : i);

        cr_assert_eq(host_half_from_float(host_float_from_half((uint16_t)i)),
                     quiet, "half %04" PRIx32, i);
    }
}

/* A prime stride visits every exponent and all kinds of mantissa. */
Test(half, floats_round_to_nearest_even)
{
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 997) {
        float value = float_of((uint32_t)i);
        uint16_t half = host_half_from_float(value);

        if (isnan(value)) {
            cr_assert((half & 0x7C00) == 0x7C00 && (half & 0x3FF),
                      "float %08" PRIx64, i);
            continue;
        }
        cr_assert_eq(half >> 15, i >> 31, "float %08" PRIx64, i);
        if (isinf(value))
            cr_assert_eq(half & 0x7FFF, 0x7C00, "float %08" PRIx64, i);
        else
            cr_assert_eq(value_of_half(half & 0x7FFF),
                         rounded_magnitude((double)value), "float %08" PRIx64,
                         i);
    }
}

Test(half, ties_go_to_even)
{
    cr_assert_eq(host_half_from_float(1.0f + 0x1p-11f), 0x3C00);
    cr_assert_eq(host_half_from_float(1.0f + 0x1.8p-10f), 0x3C02);
    cr_assert_eq(host_half_from_float(1.0f + 0x1.002p-11f), 0x3C01);
    cr_assert_eq(host_half_from_float(2048.0f + 1.0f), 0x6800);
    cr_assert_eq(host_half_from_float(2048.0f + 3.0f), 0x6802);
}

Test(half, subnormals_keep_their_steps_and_ties)
{
    cr_assert_eq(host_half_from_float(0x1p-24f), 0x0001);
    cr_assert_eq(host_half_from_float(0x1p-25f), 0x0000);
    cr_assert_eq(host_half_from_float(0x1.000002p-25f), 0x0001);
    cr_assert_eq(host_half_from_float(0x1.8p-24f), 0x0002);
    cr_assert_eq(host_half_from_float(-0x1p-26f), 0x8000);
    cr_assert_eq(host_half_from_float(0x1.ff8p-15f), 0x03FF);
    cr_assert_eq(host_half_from_float(0x1.ffbffep-15f), 0x03FF);
    cr_assert_eq(host_half_from_float(0x1.ffcp-15f), 0x0400);
    cr_assert_eq(host_half_from_float(0x1p-149f), 0x0000);
}

Test(half, overflow_is_infinity_from_65520_on)
{
    cr_assert_eq(host_half_from_float(65504.0f), 0x7BFF);
    cr_assert_eq(host_half_from_float(65519.996f), 0x7BFF);
    cr_assert_eq(host_half_from_float(65520.0f), 0x7C00);
    cr_assert_eq(host_half_from_float(-4e35f), 0xFC00);
    cr_assert_eq(host_half_from_float(-INFINITY), 0xFC00);
}

Test(half, nan_never_becomes_infinity)
{
    cr_assert_eq(host_half_from_float(float_of(0x7F800001u)), 0x7E00);
    cr_assert_eq(host_half_from_float(float_of(0xFFFFE000u)), 0xFFFF);
    cr_assert_eq(bits_of(host_float_from_half(0x7C01)), 0x7FC02000u);
}
