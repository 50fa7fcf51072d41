/*
 * The whole space, measured: a CSV row for each candidate of a role, and the
 * search replayed on these numbers, to see what share of the best speed it
 * reaches with what share of the evaluations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_EXHAUSTIVE_H
#define CLCONV_TUNE_EXHAUSTIVE_H

#include <stdio.h>

#include "tuner.h"

typedef struct exhaustive exhaustive;

/* Replaces the file. NULL with a line on stderr. */
exhaustive *exhaustive_open(const char *path);

/* What the next trials are of; the scope's role is of no account. Borrows
 * all. */
void exhaustive_begin(exhaustive *e, const char *name,
                      const clconv_scope *scope);

/* Stages other than those of one role are left out, and a candidate that was
 * there before. */
void exhaustive_add(exhaustive *e, clconv_stage stage, const char *plan,
                    const clconv_trial *trial);

/* A line for each role; nothing is replayed on a part of the space. */
void exhaustive_replay(const exhaustive *e, FILE *to);

/* False with a line on stderr if the file could not be written. NULL: true. */
bool exhaustive_close(exhaustive *e);

#endif
