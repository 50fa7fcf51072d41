/*
 * For tests: a worker that misbehaves at some plans, as bad drivers do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_INJECT_H
#define CLCONV_TUNE_INJECT_H

#include "protocol.h"

typedef enum inject_deed {
    INJECT_NOTHING,
    INJECT_CRASH,
    INJECT_CRASH_TIMED, /* not before it is timed */
    INJECT_HANG,
    INJECT_HANG_TIMED,
    INJECT_QUIT,  /* ends, without an answer, as if all were well */
    INJECT_WRONG, /* wrong results */
    INJECT_DEEDS
} inject_deed;

typedef struct inject {
    inject_deed deed;
    const char *text; /* at plans that contain it */
} inject;

/* "crash:TEXT" and so on; false with a line on stderr. */
bool inject_parse(const char *option, const char *value, inject *out);

/* Does the deed, if plan is one of those and this is the time for it. True:
 * it was to spoil the trial, which needs no more trying. */
bool inject_do(const inject *i, command_verb verb, const char *plan,
               clconv_trial *trial);

#endif
