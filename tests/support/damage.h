/*
 * What disks, crashes and people do to a file.
 *
 *     damage_random random = {1};
 *     size = damage(&random, bytes, size, capacity);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_DAMAGE_H
#define CLCONV_TESTS_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

/* A sequence of numbers that the seed decides. */
typedef struct damage_random {
    uint64_t state;
} damage_random;

/* From 0 to below limit, which is not 0. */
size_t damage_below(damage_random *r, size_t limit);

/* Flips bits, cuts off, appends, zeroes a page, moves or repeats a part;
 * returns the new size, at most capacity. It may happen to change nothing. */
size_t damage(damage_random *r, unsigned char *bytes, size_t size,
              size_t capacity);

#endif
