/*
 * Times that several racers took in rounds, on a machine whose speed changes
 * from round to round: what is slow for all in a round says nothing about one.
 * Tukey's median polish of the logarithms: a time is a racer's speed times its
 * round's level times noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_POLISH_H
#define CLCONV_POLISH_H

#include <stdbool.h>

typedef struct clconv_lap {
    double seconds;
    int round; /* from 0, in order */
} clconv_lap;

/* A racer's laps. */
typedef struct clconv_laps {
    clconv_lap *laps;
    int count;
} clconv_laps;

/* Divides all seconds by their round's level, of which the median is 1. Rounds
 * with laps of a single racer keep theirs. False: no memory, all are as before. */
bool clconv_polish(const clconv_laps *racers, int count, int rounds);

/* That share of the way from the least of them to the most; there is one. Sorts
 * the values. */
double clconv_share_of(double *values, int count, double share);

#endif
