/*
 * A device that is made up: what a tuner's backend would do with it, by a clock
 * of its own. It asserts what a tuner owes to a backend: a plan is whole, is
 * prepared before it is timed or judged, and stands once in a list; one that
 * crashed or hung is not tried again; nothing is asked after a stop but for the
 * judgement.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "landscape.h"
#include "tuner.h"

#define FAKE_MOST 8192

typedef struct fake_plan {
    char text[CLCONV_RECORD_PLAN];
    unsigned ops;
    clconv_outcome outcome; /* of prepare() */
} fake_plan;

typedef struct fake {
    const char *text; /* of the problem */
    clconv_problem problem;
    clconv_device device;
    landscape landscape;
    uint64_t seed;
    const char *known; /* the rules' */
    double noise; /* deviation of the logarithm of a timing of 0.1 s; less for
                     a longer one, as for an average */
    double drift; /* the device is by this factor slower after 100 s */
    double prepare_seconds;          /* each */
    int jobs;                        /* that are prepared side by side */
    double crashing, hanging, wrong; /* parts of the plans, at random */

    /* Fails so, in prepare() or, judged, in judge(); NULL: none more. */
    clconv_outcome (*fate)(const struct fake *f, unsigned ops, const char *plan,
                           bool judged);
    int crash_at;            /* this timing, counted from 1, crashes; 0: none */
    int stop_after;          /* calls of progress(); 0: never */
    const struct fake *past; /* what recall() knows; NULL: there is none */

    double now;
    uint64_t random;
    fake_plan *plans; /* all that were prepared */
    int count;
    int progressed, judged, timed;
    bool stopped;
    int outcomes[CLCONV_OUTCOMES]; /* as progress() saw them */
} fake;

/* A problem on a preset's device, nothing fails, no noise. */
void fake_init(fake *f, const char *text, const char *preset);
void fake_free(fake *f);
clconv_tuner_backend fake_backend(fake *f);

/* What a whole plan takes on average, INFINITY: a kernel's values fail. */
double fake_seconds(const fake *f, unsigned ops, const char *plan);

/* A tuner's run of so many seconds. */
clconv_status fake_tune(fake *f, unsigned ops, double seconds,
                        clconv_tuner_result *out);

#endif
