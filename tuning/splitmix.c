/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "splitmix.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t clconv_random(uint64_t *state)
{
    return mix(*state += STEP);
}

uint64_t clconv_random_at(uint64_t place)
{
    return mix(place * STEP);
}
