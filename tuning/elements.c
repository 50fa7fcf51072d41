/*
 * Rounding to fp16 is what the kernels are judged for, so nothing is rounded
 * here: fp16 tensors are given values that need none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "elements.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* fp16: a sign, 5 bits of exponent biased by 15, 10 bits of fraction; fp32 has
 * 8 bits biased by 127, and 23. */
#define FRACTION_BITS 10
#define FRACTION_SHIFT (23 - FRACTION_BITS)
#define BIAS_SHIFT (127 - 15)
#define EXPONENT_MAX 31

/* 11 significant bits: all that fp16 has. */
#define STEPS_MAX 2047.0F

size_t clconv_elements_size(clconv_type type)
{
    return type == CLCONV_F16 ? sizeof(uint16_t) : sizeof(float);
}

float clconv_elements_round(float value)
{
    float steps = rintf(value / CLCONV_ELEMENTS_STEP);
    return fminf(fmaxf(steps, -STEPS_MAX), STEPS_MAX) * CLCONV_ELEMENTS_STEP;
}

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude == 0)
        return (uint16_t)sign;
    magnitude >>= FRACTION_SHIFT;
    return (uint16_t)(sign | (magnitude - (BIAS_SHIFT << FRACTION_BITS)));
}

static float widen(uint16_t bits)
{
    int exponent = bits >> FRACTION_BITS & EXPONENT_MAX;
    int fraction = bits & ((1 << FRACTION_BITS) - 1);
    int hidden = exponent > 0 ? 1 << FRACTION_BITS : 0;
    float value = ldexpf((float)(fraction + hidden),
                         (exponent > 0 ? exponent : 1) - 15 - FRACTION_BITS);
    if (exponent == EXPONENT_MAX)
        value = fraction ? NAN : INFINITY;
    return bits >> 15 ? -value : value;
}

void clconv_elements_pack(clconv_type type, const float *values, size_t count,
                          void *out)
{
    if (type == CLCONV_F32) {
        memmove(out, values, count * sizeof *values);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        uint16_t half = narrow(values[i]);
        memcpy((char *)out + i * sizeof half, &half, sizeof half);
    }
}

void clconv_elements_unpack(clconv_type type, const void *in, size_t count,
                            float *out)
{
    if (type == CLCONV_F32) {
        memcpy(out, in, count * sizeof *out);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        memcpy(&half, (const char *)in + i * sizeof half, sizeof half);
        out[i] = widen(half);
    }
}
