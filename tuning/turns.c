/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "turns.h"

#include <math.h>
#include <stdlib.h>

/* Long beside the few calls after a change that find other things in caches,
 * short beside the seconds in which a machine changes its speed. */
#define TURN_SECONDS 0.01

/* Long beside a wait, which takes tens of microseconds. */
#define BURST_SECONDS 0.002
#define BURST_MAX 256

/* The least of which a median and quartiles can be told. */
#define SAMPLES_MIN 3
#define SAMPLES_MAX 1024

typedef struct racer {
    int burst;
    int count;
    bool failed;
    double spent;
    double samples[SAMPLES_MAX]; /* seconds of one call */
} racer;

/* ---- Turns ------------------------------------------------------------- */

static bool is_done(const clconv_turns *turns, const racer *r)
{
    return r->failed || r->count == SAMPLES_MAX ||
           (r->count >= SAMPLES_MIN && r->spent >= turns->seconds);
}

static void choose_burst(racer *r, double seconds)
{
    double calls = ceil(BURST_SECONDS / seconds);
    r->burst = calls < BURST_MAX ? (int)calls : BURST_MAX;
}

/* The first call of each warms up and says how long one takes; it is no
 * sample. */
static void take_sample(const clconv_turns *turns, int which, racer *r)
{
    int calls = r->burst ? r->burst : 1;
    double begin = turns->clock(turns->user);
    r->failed = !turns->run(turns->user, which, calls);
    double seconds = turns->clock(turns->user) - begin;
    r->spent += seconds;
    if (r->burst) {
        r->samples[r->count++] = seconds / calls;
        return;
    }
    r->burst = 1;
    if (turns->in_bursts)
        choose_burst(r, seconds);
}

static void take_turn(const clconv_turns *turns, int which, racer *r)
{
    double end = turns->clock(turns->user) + TURN_SECONDS;
    do
        take_sample(turns, which, r);
    while (!is_done(turns, r) && turns->clock(turns->user) < end);
}

static void take_turns(const clconv_turns *turns, int count, racer *racers)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < count; ++i)
            if (!is_done(turns, &racers[i])) {
                take_turn(turns, i, &racers[i]);
                more = true;
            }
    }
}

/* ---- What is made of them ---------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* That share of the way from the first to the last. */
static double at_share(const racer *r, double share)
{
    double place = share * (r->count - 1);
    int below = (int)place;
    if (below + 1 == r->count)
        return r->samples[below];
    double step = r->samples[below + 1] - r->samples[below];
    return r->samples[below] + (place - below) * step;
}

static clconv_spell spell_of(racer *r)
{
    if (r->failed)
        return (clconv_spell){.failed = true};
    qsort(r->samples, (size_t)r->count, sizeof *r->samples, compare);
    return (clconv_spell){.lower = at_share(r, 0.25),
                          .median = at_share(r, 0.5),
                          .upper = at_share(r, 0.75)};
}

bool clconv_turns_take(const clconv_turns *turns, int count, clconv_spell *out)
{
    racer *racers = calloc((size_t)count + 1, sizeof *racers);
    if (!racers)
        return false;
    take_turns(turns, count, racers);
    for (int i = 0; i < count; ++i)
        out[i] = spell_of(&racers[i]);
    free(racers);
    return true;
}
