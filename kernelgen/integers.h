/*
 * Arithmetic of sizes: for a, b > 0 unless said otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_INTEGERS_H
#define CLCONV_INTEGERS_H

#include <stdint.h>

/* Any a, b. */
static inline int64_t clconv_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t clconv_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a / b, rounded up; a >= 0. */
static inline int64_t clconv_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The smallest multiple of b that is at least a; a >= 0. */
static inline int64_t clconv_round_up(int64_t a, int64_t b)
{
    return clconv_divide_up(a, b) * b;
}

/* The greatest common divisor. */
static inline int64_t clconv_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
