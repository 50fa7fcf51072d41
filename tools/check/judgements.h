/*
 * The four judgements of gradients: integers, random, tiny, and edges, which
 * has two parts; and those of the forward convolution. Each prepares its data
 * once, then calls the library for every check of the row and notes what failed.
 * False only if a judgement could not be made at all (no memory, the reference
 * failed), with a line on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_JUDGEMENTS_H
#define CLCONV_CHECK_JUDGEMENTS_H

#include <stdbool.h>

#include "row.h"

/* Small whole numbers: exactly equal, also called in unusual ways. */
bool judgement_integers(row *r);

/* Those on normal data share it; the row's z.n is at least 1. */
void judgement_random(row *r, const dataset *normal);
bool judgement_tiny(row *r, const dataset *normal);
bool judgement_nonfinite(row *r, const dataset *normal);
bool judgement_extremes(row *r, const dataset *normal);

/* Of the forward convolution: integers, random and edges (NaN and Inf), as far
 * as the options ask for them. */
bool judgement_forward(row *r);

#endif
