/*
 * Numbers that look random and are the same on every machine:
 *
 *     random_source source = random_seeded(seed);
 *     random_fill_normal(&source, count, x);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_RANDOM_H
#define CLCONV_TOOLS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct random_source {
    uint64_t state[4];
} random_source;

random_source random_seeded(uint64_t seed);

/* 64 random bits. */
uint64_t random_bits(random_source *source);

/* Uniform in [0, bound), bound >= 1. */
uint64_t random_below(random_source *source, uint64_t bound);

/* Normal with mean 0 and variance 1, but never nearer to 0 than 2^-12: a
 * value times 2^-2 and more keeps full precision in fp16. */
#define RANDOM_NORMAL_MIN 0x1p-12F
void random_fill_normal(random_source *source, size_t count, float *out);

/* Uniform whole numbers in [-magnitude, magnitude], magnitude <= 2^14. */
void random_fill_integers(random_source *source, int magnitude, size_t count,
                          float *out);

#endif
