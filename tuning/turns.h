/*
 * Times several things in turns, so that what else the machine does meets all
 * of them alike, and takes out what slowed all of them down in a round
 * (polish.h). Pure: what is timed and the clock are the caller's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TURNS_H
#define CLCONV_TURNS_H

#include <stdbool.h>

typedef struct clconv_turns {
    void *user;
    double (*clock)(void *user); /* seconds, never goes back */
    /* Makes so many calls of that one, then waits; false: it failed, and is
     * left out from now on. */
    bool (*run)(void *user, int which, int calls);
    double seconds; /* for each */
    /* Several calls before a wait, for devices beside the host: one wait takes
     * as long as a short call. */
    bool in_bursts;
} clconv_turns;

/* Of one call on the machine as it mostly was, seconds: between the quartiles
 * lies half of what was seen. */
typedef struct clconv_spell {
    bool failed; /* then the rest is 0 */
    double lower, median, upper;
} clconv_spell;

/* False: no memory, and out is untouched. */
bool clconv_turns_take(const clconv_turns *turns, int count, clconv_spell *out);

#endif
