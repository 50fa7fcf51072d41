/*
 * Made-up times of candidates: what a search or a tuner is tried on without a
 * device. The same seed gives the same times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LANDSCAPE_H
#define LANDSCAPE_H

#include "search.h"

/* What the logarithm of a time is made of: deviations of random numbers. */
typedef struct landscape {
    const char *name;
    double cost;          /* the power of the kernel's cost() that it follows */
    double kernel;        /* one number a kernel */
    double value;         /* one a value of a parameter */
    double pair;          /* one a pair of values */
    double rough;         /* one a candidate */
    double failing;       /* part of the candidates that fail, at random ... */
    double failing_value; /* ... and part of the values with which all fail */
} landscape;

/* INFINITY: it fails. */
double landscape_seconds(const landscape *l, uint64_t seed,
                         const clconv_candidate *c);

/* A normal deviate, by the state. */
double landscape_normal(uint64_t *state);

#endif
