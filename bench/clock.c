/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "clock.h"

#include <time.h>

#define STEP_NANOSECONDS 1000000
#define STEPS 100

/* Processor time within a step that is not work: waking up to look. */
#define QUIET_SECONDS 0.0002

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

void clock_wait_for_quiet(void)
{
    const struct timespec step = {0, STEP_NANOSECONDS};

    for (int i = 0; i < STEPS; ++i) {
        double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

        nanosleep(&step, NULL);
        if (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before < QUIET_SECONDS)
            return;
    }
}
