/*
 * xoshiro256** (Blackman, Vigna: "Scrambled linear pseudorandom number
 * generators", 2018), its state filled by splitmix64; normal values by the
 * method of Box and Muller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "random.h"

#include <math.h>

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

random_source random_seeded(uint64_t seed)
{
    random_source source;

    for (int i = 0; i < 4; ++i)
        source.state[i] = splitmix(&seed);
    return source;
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t random_bits(random_source *source)
{
    uint64_t *s = source->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Without the multiples of bound that do not fit, no value is favoured. */
uint64_t random_below(random_source *source, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t bits;

    do {
        bits = random_bits(source);
    } while (bits >= limit);
    return bits % bound;
}

/* Two independent normal values from 64 random bits. */
static void normal_pair(random_source *source, float out[2])
{
    uint64_t bits = random_bits(source);
    /* In (0, 1], so that the logarithm is finite; and in [0, 2 pi). */
    float u = ((float)(bits >> 40) + 1.0F) * 0x1p-24F;
    float angle = (float)(bits & 0xFFFFFFU) * (6.2831853F * 0x1p-24F);
    float radius = sqrtf(-2.0F * logf(u));

    out[0] = radius * cosf(angle);
    out[1] = radius * sinf(angle);
}

void random_fill_normal(random_source *source, size_t count, float *out)
{
    size_t filled = 0;

    while (filled < count) {
        float pair[2];

        normal_pair(source, pair);
        for (int i = 0; i < 2 && filled < count; ++i) {
            if (fabsf(pair[i]) >= RANDOM_NORMAL_MIN)
                out[filled++] = pair[i];
        }
    }
}

void random_fill_integers(random_source *source, int magnitude, size_t count,
                          float *out)
{
    uint64_t span = 2 * (uint64_t)magnitude + 1;
    uint64_t bits = 0;

    for (size_t i = 0; i < count; ++i) {
        if (i % 2 == 0)
            bits = random_bits(source);
        /* 32 bits a value: the bias is below 2^-17. */
        out[i] = (float)((int)((bits & 0xFFFFFFFFU) * span >> 32) - magnitude);
        bits >>= 32;
    }
}
