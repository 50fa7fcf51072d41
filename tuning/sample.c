/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "elements.h"
#include "splitmix.h"

/* 2^-10 * 2^-17 = 7.5e-9, and a power of two changes no digit. */
#define TINY_SIZE 0x1p-17

/* Of X, W and |dY| in CANCELLING. */
#define VARIATION 0x1p-4F

/* Whole numbers in [-3, 3]: sums of 2^20 products of random sign stay below
 * 2^24, up to which fp32 is exact. */
#define INTEGER_MAX 3

const char *clconv_sample_word(clconv_sample sample)
{
#define SAMPLE_WORD(name, word) word,
    static const char *const words[] = {CLCONV_SAMPLE_LIST(SAMPLE_WORD)};
#undef SAMPLE_WORD
    return words[sample];
}

/* ---- Numbers from a counter -------------------------------------------- */

/* Near to normal, mean 0, variance 1, within 2 sqrt(3): four uniform numbers,
 * whose sum has variance 4 / 12. */
static float normal(uint64_t bits)
{
    float sum = 0;
    for (int i = 0; i < 4; ++i)
        sum += (float)(bits >> 16 * i & 0xFFFF) * 0x1p-16F;
    return (sum - 2) * 1.7320508F;
}

/* ---- One value --------------------------------------------------------- */

typedef struct maker {
    const clconv_problem *problem;
    clconv_sample sample;
    clconv_tensor tensor;
    uint64_t seed;
} maker;

/* 1 or -1 of element i of dY: neighbours in channel and in pixel differ, and
 * each square of four has its signs by chance, so that no lane of a vector
 * gathers one sign. */
static float sign_of(const maker *m, size_t i)
{
    const clconv_problem *p = m->problem;
    size_t pixels = (size_t)(p->p * p->q), channels = (size_t)p->k;
    size_t channel = i % channels, pixel = i / channels;
    if (p->layout == CLCONV_NCHW) {
        channel = i / pixels % channels;
        pixel = i / (pixels * channels) * pixels + i % pixels;
    }
    uint64_t square = pixel / 2 * channels + channel / 2;
    return (channel + pixel + clconv_random_at(~square)) & 1 ? -1.0F : 1.0F;
}

static float value_of(const maker *m, size_t i)
{
    uint64_t bits = clconv_random_at(m->seed + i);
    switch (m->sample) {
    case CLCONV_SAMPLE_INTEGERS:
        return (float)((int)(bits % (2 * INTEGER_MAX + 1)) - INTEGER_MAX);
    case CLCONV_SAMPLE_CANCELLING:
        return (1 + VARIATION * normal(bits)) *
               (m->tensor == CLCONV_DY ? sign_of(m, i) : 1);
    default: return normal(bits);
    }
}

/* ---- A tensor ---------------------------------------------------------- */

double clconv_sample_dy_size(const clconv_problem *p, clconv_sample sample)
{
    bool tiny = sample == CLCONV_SAMPLE_TINY && p->type[CLCONV_DY] == CLCONV_F32;
    return tiny ? TINY_SIZE : 1;
}

/* What the values of a tensor are multiplied by, a power of two. */
static double factor_of(const maker *m)
{
    const clconv_problem *p = m->problem;
    if (m->tensor != CLCONV_DY || p->type[CLCONV_DY] == CLCONV_F16)
        return 1;
    return ldexp(clconv_sample_dy_size(p, m->sample), -p->scale_log2);
}

float *clconv_sample_new(const clconv_problem *p, clconv_sample sample,
                         clconv_tensor tensor)
{
    size_t count = (size_t)clconv_problem_elements(p, tensor);
    float *values = malloc((count + 1) * sizeof *values);
    maker m = {p, sample, tensor, (uint64_t)(tensor + 1) << 48};
    float factor = (float)factor_of(&m);
    for (size_t i = 0; values && i < count; ++i) {
        float value = value_of(&m, i);
        if (p->type[tensor] == CLCONV_F16)
            value = clconv_elements_round(value);
        values[i] = factor * value;
    }
    return values;
}
