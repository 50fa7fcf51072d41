/*
 * A trial as fields of a line (line.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_TRIAL_FIELDS_H
#define CLCONV_TUNE_TRIAL_FIELDS_H

#include "line.h"
#include "trial.h"

/* What a trial is before anything is known of it. */
clconv_trial trial_failed(clconv_outcome outcome, const char *why);

void trial_put(clconv_text *line, const clconv_trial *trial);

/* Takes a field of a trial; false: it is none, or its value is wrong. A line
 * without the field "outcome" says nothing of a trial: start with outcome
 * CLCONV_OUTCOMES and look. */
bool trial_take(const line_field *f, clconv_trial *out);

#endif
