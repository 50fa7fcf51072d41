/*
 * Timing in turns, by a clock that the test turns itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include <stdbool.h>

#include "turns.h"

#define RACERS 3

typedef struct world {
    double now;
    double seconds[RACERS]; /* of one call */
    double wait;            /* of a run, beside its calls */
    double slowdown;        /* of all calls, in proportion to the time */
    struct {
        double from, to, factor; /* and in a spell */
    } spell;
    int fails; /* this one does, from its second run on; -1: none */
    int runs[RACERS], calls[RACERS];
} world;

static double world_clock(void *user)
{
    return ((world *)user)->now;
}

static bool world_run(void *user, int which, int calls)
{
    world *w = user;
    bool slow = w->now >= w->spell.from && w->now < w->spell.to;
    w->now += w->wait + calls * w->seconds[which] * (1 + w->slowdown * w->now) *
                            (slow ? w->spell.factor : 1);
    w->calls[which] += calls;
    return ++w->runs[which] < 2 || which != w->fails;
}

static clconv_turns turns_of(world *w, double seconds)
{
    return (clconv_turns){
        .user = w, .clock = world_clock, .run = world_run, .seconds = seconds};
}

Test(turns, a_call_takes_what_it_takes)
{
    world w = {.seconds = {1e-4, 2e-4, 5e-2}, .fails = -1};
    clconv_turns turns = turns_of(&w, 0.1);
    clconv_spell out[RACERS];
    cr_assert(clconv_turns_take(&turns, RACERS, out));
    for (int i = 0; i < RACERS; ++i) {
        cr_assert_not(out[i].failed);
        cr_assert_float_eq(out[i].median, w.seconds[i], 1e-9);
        cr_assert_leq(out[i].lower, out[i].median);
        cr_assert_leq(out[i].median, out[i].upper);
    }
    cr_assert_geq(w.calls[0], 900);
    cr_assert_leq(w.now, 0.6);
}

Test(turns, a_machine_that_slows_down_does_not_favour_the_first)
{
    /* Twice as slow after a second. */
    world w = {.seconds = {1e-3, 1e-3, 1e-3}, .slowdown = 1, .fails = -1};
    clconv_turns turns = turns_of(&w, 0.3);
    clconv_spell out[RACERS];
    cr_assert(clconv_turns_take(&turns, RACERS, out));
    cr_assert_float_eq(out[2].median / out[0].median, 1, 0.03, "%g and %g",
                       out[0].median, out[2].median);
    cr_assert_lt(out[0].upper, 1.02 * out[0].lower);
}

/* Half as slow again from some time on: the median of one may be of before, and
 * that of another of after. */
Test(turns, what_slows_all_down_is_taken_out)
{
    for (int i = 0; i < 40; ++i) {
        world w = {.seconds = {1.00e-2, 1.05e-2, 1.10e-2},
                   .spell = {0.2 + 0.01 * i, 10, 1.5},
                   .fails = -1};
        clconv_turns turns = turns_of(&w, 0.25);
        clconv_spell out[RACERS];
        cr_assert(clconv_turns_take(&turns, RACERS, out));
        cr_assert_float_eq(out[1].median / out[0].median, 1.05, 0.002, "%d", i);
        cr_assert_float_eq(out[2].median / out[0].median, 1.10, 0.002, "%d", i);
    }
}

Test(turns, a_long_call_is_made_a_few_times)
{
    world w = {.seconds = {10}, .fails = -1};
    clconv_turns turns = turns_of(&w, 0.01);
    clconv_spell out;
    cr_assert(clconv_turns_take(&turns, 1, &out));
    cr_assert_float_eq(out.median, 10, 1e-9);
    cr_assert_leq(w.calls[0], 5);
    cr_assert_geq(w.calls[0], 3);
}

Test(turns, bursts_hide_the_wait)
{
    world w = {.seconds = {1e-5}, .wait = 5e-5, .fails = -1};
    clconv_turns turns = turns_of(&w, 0.1);
    clconv_spell alone, burst;
    cr_assert(clconv_turns_take(&turns, 1, &alone));
    cr_assert_float_eq(alone.median, 6e-5, 1e-9);
    turns.in_bursts = true;
    cr_assert(clconv_turns_take(&turns, 1, &burst));
    cr_assert_lt(burst.median, 1.3e-5);
}

Test(turns, one_that_fails_is_left_out)
{
    world w = {.seconds = {1e-3, 1e-3, 1e-3}, .fails = 1};
    clconv_turns turns = turns_of(&w, 0.05);
    clconv_spell out[RACERS];
    cr_assert(clconv_turns_take(&turns, RACERS, out));
    cr_assert(out[1].failed);
    cr_assert_eq(w.runs[1], 2);
    cr_assert_not(out[0].failed);
    cr_assert_float_eq(out[2].median, 1e-3, 1e-9);
}

Test(turns, none_is_nothing)
{
    world w = {.fails = -1};
    clconv_turns turns = turns_of(&w, 1);
    cr_assert(clconv_turns_take(&turns, 0, NULL));
}
