/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "trial_fields.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset; /* of a double */
} reals[] = {
    {"seconds", offsetof(clconv_trial, seconds)},
    {"lower", offsetof(clconv_trial, lower)},
    {"upper", offsetof(clconv_trial, upper)},
    {"error", offsetof(clconv_trial, error)},
};

enum { REALS = sizeof reals / sizeof reals[0] };

clconv_trial trial_failed(clconv_outcome outcome, const char *why)
{
    clconv_trial t = {.outcome = outcome,
                      .seconds = INFINITY,
                      .lower = INFINITY,
                      .upper = INFINITY,
                      .error = NAN};
    snprintf(t.why, sizeof t.why, "%s", why);
    return t;
}

void trial_put(clconv_text *line, const clconv_trial *trial)
{
    line_put_text(line, "outcome", clconv_outcome_word(trial->outcome));
    for (int i = 0; i < REALS; ++i) {
        double value;
        memcpy(&value, (const char *)trial + reals[i].offset, sizeof value);
        line_put_real(line, reals[i].name, value);
    }
    line_put_text(line, "why", trial->why);
}

static bool take_outcome(const char *word, clconv_trial *out)
{
    for (int i = 0; i < CLCONV_OUTCOMES; ++i)
        if (strcmp(word, clconv_outcome_word((clconv_outcome)i)) == 0) {
            out->outcome = (clconv_outcome)i;
            return true;
        }
    return false;
}

bool trial_take(const line_field *f, clconv_trial *out)
{
    if (strcmp(f->name, "outcome") == 0)
        return take_outcome(f->value, out);
    if (strcmp(f->name, "why") == 0) {
        line_copy(f->value, out->why, sizeof out->why); /* cut to fit */
        return true;
    }
    for (int i = 0; i < REALS; ++i) {
        double value;
        if (strcmp(f->name, reals[i].name) != 0)
            continue;
        if (!line_real(f->value, &value))
            return false;
        memcpy((char *)out + reals[i].offset, &value, sizeof value);
        return true;
    }
    return false;
}
