/*
 * Times several contenders on one problem, in turns.
 *
 *     racer racers[] = {{.contender = c, .state = state, .sets = sets}, ...};
 *     measure_warm_up(&racers[i]);                       // each
 *     measure_in_turns(racers, count, &rules);
 *     ... racers[i].samples, racers[i].count ...
 *     measure_free(&racers[i]);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_MEASURE_H
#define CLCONV_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "contender.h"

typedef struct racer {
    const contender *contender;
    void *state; /* open, with this many sets */
    int sets;
    int next_set;
    int burst;    /* calls enqueued before one wait; a sample is their mean */
    double spent; /* seconds, all samples together */
    double *samples; /* seconds of one call */
    size_t count, capacity;
    bool failed; /* a call failed; said on stderr */
} racer;

typedef struct measure_rules {
    double seconds;  /* for each racer */
    int64_t repeats; /* samples of each at least */
    bool in_bursts;  /* devices beside the host: enqueue many, wait once */
} measure_rules;

/* Runs every set once and chooses the burst. False if a call failed. */
bool measure_warm_up(racer *r, const measure_rules *rules);

/* The racer that is the farthest from its goal has the next turn, so that all
 * end at the same time and share what the machine does meanwhile. One that
 * fails is marked and left out. */
void measure_in_turns(racer *racers, int count, const measure_rules *rules);

void measure_free(racer *r);

#endif
