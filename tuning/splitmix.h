/*
 * SplitMix64, by Steele, Lea and Flood (2014): numbers that look random, one
 * after another or by their place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SPLITMIX_H
#define CLCONV_SPLITMIX_H

#include <stdint.h>

/* The next number of a sequence that starts at any seed. */
uint64_t clconv_random(uint64_t *state);

/* The number at that place, from 1, of the sequence that starts at 0. */
uint64_t clconv_random_at(uint64_t place);

#endif
