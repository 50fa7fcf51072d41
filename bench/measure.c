/*
 * A turn lasts long enough that waiting for quiet before it costs little, and
 * short enough that the machine's drift is the same for all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "measure.h"

#include <math.h>
#include <stdlib.h>

#include "clock.h"
#include "message.h"

#define TURN_SECONDS 0.01

/* Long beside one wait, which takes tens of microseconds. */
#define BURST_SECONDS 0.002
#define BURST_MAX 256

/* ---- One racer ---------------------------------------------------------- */

static bool run_burst(racer *r, int calls)
{
    const contender *c = r->contender;

    for (int i = 0; i < calls; ++i) {
        if (!c->enqueue(r->state, r->next_set))
            return false;
        r->next_set = (r->next_set + 1) % r->sets;
    }
    return c->wait(r->state);
}

static bool add_sample(racer *r, double seconds)
{
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        double *grown = realloc(r->samples, capacity * sizeof(*grown));

        if (!grown) {
            message_error("out of memory");
            return false;
        }
        r->samples = grown;
        r->capacity = capacity;
    }
    r->samples[r->count++] = seconds;
    return true;
}

static bool take_sample(racer *r)
{
    double begin = clock_seconds(), seconds;

    if (!run_burst(r, r->burst))
        return false;
    seconds = clock_seconds() - begin;
    r->spent += seconds;
    return add_sample(r, seconds / r->burst);
}

void measure_free(racer *r)
{
    free(r->samples);
    r->samples = NULL;
}

/* ---- Warming up --------------------------------------------------------- */

static int burst_of(double seconds)
{
    double calls = ceil(BURST_SECONDS / seconds);

    return calls > BURST_MAX ? BURST_MAX : calls < 1 ? 1 : (int)calls;
}

bool measure_warm_up(racer *r, const measure_rules *rules)
{
    double begin;

    r->burst = 1;
    /* One by one: a program may be compiled at its first launch. */
    for (int i = 0; i < r->sets; ++i) {
        if (!run_burst(r, 1))
            return false;
    }
    if (!rules->in_bursts)
        return true;
    begin = clock_seconds();
    if (!run_burst(r, r->sets))
        return false;
    r->burst = burst_of((clock_seconds() - begin) / r->sets);
    return true;
}

/* ---- Turns -------------------------------------------------------------- */

/* 1 and more: the goal is reached. */
static double progress(const racer *r, const measure_rules *rules)
{
    double of_calls = (double)r->count / (double)rules->repeats;

    if (rules->seconds <= 0)
        return of_calls;
    return fmin(of_calls, r->spent / rules->seconds);
}

/* NULL: all are done. */
static racer *farthest(racer *racers, int count, const measure_rules *rules)
{
    racer *next = NULL;

    for (int i = 0; i < count; ++i) {
        racer *r = &racers[i];

        if (r->failed || progress(r, rules) >= 1)
            continue;
        if (!next || progress(r, rules) < progress(next, rules))
            next = r;
    }
    return next;
}

static bool take_turn(racer *r, const measure_rules *rules)
{
    double end;

    clock_wait_for_quiet();
    end = clock_seconds() + TURN_SECONDS;
    do {
        if (!take_sample(r))
            return false;
    } while (clock_seconds() < end && progress(r, rules) < 1);
    return true;
}

void measure_in_turns(racer *racers, int count, const measure_rules *rules)
{
    racer *r;

    while ((r = farthest(racers, count, rules)) != NULL)
        r->failed = !take_turn(r, rules);
}
