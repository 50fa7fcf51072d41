/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "turns.h"

#include <math.h>
#include <stdlib.h>

#include "polish.h"

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
    clconv_lap samples[SAMPLES_MAX]; /* seconds of one call */
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
static void take_sample(const clconv_turns *turns, int which, int round,
                        racer *r)
{
    int calls = r->burst ? r->burst : 1;
    double begin = turns->clock(turns->user);
    r->failed = !turns->run(turns->user, which, calls);
    double seconds = turns->clock(turns->user) - begin;
    r->spent += seconds;
    if (r->burst) {
        r->samples[r->count++] = (clconv_lap){seconds / calls, round};
        return;
    }
    r->burst = 1;
    if (turns->in_bursts)
        choose_burst(r, seconds);
}

static void take_turn(const clconv_turns *turns, int which, int round, racer *r)
{
    double end = turns->clock(turns->user) + TURN_SECONDS;
    do
        take_sample(turns, which, round, r);
    while (!is_done(turns, r) && turns->clock(turns->user) < end);
}

/* Returns how many rounds. */
static int take_turns(const clconv_turns *turns, int count, racer *racers)
{
    int round = 0;
    for (bool more = true; more; ++round) {
        more = false;
        for (int i = 0; i < count; ++i)
            if (!is_done(turns, &racers[i])) {
                take_turn(turns, i, round, &racers[i]);
                more = true;
            }
    }
    return round;
}

/* ---- What is made of them ---------------------------------------------- */

static bool polish(racer *racers, int count, int rounds)
{
    clconv_laps *laps = calloc((size_t)count + 1, sizeof *laps);
    for (int i = 0; laps && i < count; ++i)
        laps[i] = (clconv_laps){racers[i].samples, racers[i].count};
    bool done = laps && clconv_polish(laps, count, rounds);
    free(laps);
    return done;
}

static clconv_spell spell_of(const racer *r)
{
    double seconds[SAMPLES_MAX];
    if (r->failed)
        return (clconv_spell){.failed = true};
    for (int i = 0; i < r->count; ++i)
        seconds[i] = r->samples[i].seconds;
    return (clconv_spell){.lower = clconv_share_of(seconds, r->count, 0.25),
                          .median = clconv_share_of(seconds, r->count, 0.5),
                          .upper = clconv_share_of(seconds, r->count, 0.75)};
}

bool clconv_turns_take(const clconv_turns *turns, int count, clconv_spell *out)
{
    racer *racers = calloc((size_t)count + 1, sizeof *racers);
    if (!racers)
        return false;
    int rounds = take_turns(turns, count, racers);
    bool done = polish(racers, count, rounds);
    for (int i = 0; done && i < count; ++i)
        out[i] = spell_of(&racers[i]);
    free(racers);
    return done;
}
