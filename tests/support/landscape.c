/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "landscape.h"

#include <math.h>
#include <string.h>

#include "hash.h"
#include "splitmix.h"

/* The number of a thing that is told by at most four numbers and a kernel. */
static uint64_t state_of(uint64_t seed, const clconv_kernel *k,
                         const int numbers[4])
{
    struct {
        uint64_t seed, kernel;
        int numbers[4];
    } key = {.seed = seed};
    key.kernel = clconv_hash_bytes(k->name, strlen(k->name)).low;
    memcpy(key.numbers, numbers, sizeof key.numbers);
    return clconv_hash_bytes(&key, sizeof key).low;
}

static double uniform(uint64_t *state)
{
    return (double)(clconv_random(state) >> 11) * 0x1p-53;
}

/* The sum of twelve has variance 1. */
double landscape_normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; ++i)
        sum += uniform(state);
    return sum;
}

static double normal_of(uint64_t seed, const clconv_kernel *k, int a, int b,
                        int c, int d)
{
    uint64_t state = state_of(seed, k, (int[4]){a, b, c, d});
    return landscape_normal(&state);
}

static double chance_of(uint64_t seed, const clconv_kernel *k, int a, int b,
                        int c, int d)
{
    uint64_t state = ~state_of(seed, k, (int[4]){a, b, c, d});
    return uniform(&state);
}

/* A number of all its values. */
static int fingerprint(const clconv_candidate *c)
{
    size_t size = sizeof *c->values * (size_t)c->kernel->param_count;
    return (int)(clconv_hash_bytes(c->values, size).low & 0x7fffffff);
}

static bool fails(const landscape *l, uint64_t seed, const clconv_candidate *c)
{
    const clconv_kernel *k = c->kernel;
    for (int i = 0; i < k->param_count; ++i)
        if (chance_of(seed, k, i, c->values[i], 0, 0) < l->failing_value)
            return true;
    return chance_of(seed, k, -1, fingerprint(c), 0, 0) < l->failing;
}

double landscape_seconds(const landscape *l, uint64_t seed,
                         const clconv_candidate *c)
{
    const clconv_kernel *k = c->kernel;
    if (fails(l, seed, c))
        return INFINITY;
    double sum = l->kernel * normal_of(seed, k, -2, 0, 0, 0) +
                 l->rough * normal_of(seed, k, -3, fingerprint(c), 0, 0);
    if (c->cost > 0)
        sum += l->cost * log(c->cost * 1e-11); /* of 100 GFLOP/s */
    for (int i = 0; i < k->param_count; ++i) {
        sum += l->value * normal_of(seed, k, i, c->values[i], -1, 0);
        for (int j = 0; j < i; ++j)
            sum +=
                l->pair * normal_of(seed, k, i, c->values[i], j, c->values[j]);
    }
    return exp(sum);
}
