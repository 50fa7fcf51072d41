/*
 * Looks for the fastest kernel and values of one role: asks for one candidate
 * after another to be timed and is told what came out. Pure: the same seed and
 * the same answers give the same questions.
 *
 *     clconv_candidate c;
 *     while (budget is left && clconv_search_next(s, &c)) {
 *         ... time it; several may be taken before the first is told ...
 *         clconv_search_tell(s, &c, seconds);
 *     }
 *     n = clconv_search_best(s, 3, best);
 *
 * The order: each kernel's defaults; then what promises most by the kernels'
 * cost() as the times so far correct it (model.h). A program that bakes the
 * problem in serves no other one, so these come last: those of the fastest
 * candidates, then others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SEARCH_H
#define CLCONV_SEARCH_H

#include "space.h"

typedef struct clconv_search clconv_search;

/* Borrows the scope's problem and device. NULL: no memory, or its within is no
 * plan string. */
clconv_search *clconv_search_new(const clconv_scope *scope);
void clconv_search_free(clconv_search *s); /* NULL: no-op */

/* All legal candidates there are, the whole space. */
int clconv_search_size(const clconv_search *s);
void clconv_search_item(const clconv_search *s, int index,
                        clconv_candidate *out);

/* The next to be timed; false: none is left. None comes twice. */
bool clconv_search_next(clconv_search *s, clconv_candidate *out);

/* From now on ask for what comes last: best after this part of the time, or of
 * the trials. */
#define CLCONV_SEARCH_FINISH 0.5
void clconv_search_finish(clconv_search *s);

/* seconds: INFINITY if it could not be timed. One that was never asked for (a
 * resumed journal's) is welcome too. */
void clconv_search_tell(clconv_search *s, const clconv_candidate *c,
                        double seconds);

/* How many were told. */
int clconv_search_told(const clconv_search *s);

/* The fastest, fastest first, at most count; equals in the order of the
 * space. Returns how many. */
int clconv_search_best(const clconv_search *s, int count, clconv_candidate *out);

/* "kernel:name=value,...", a part of a plan string. */
void clconv_candidate_format(const clconv_candidate *c, clconv_text *out);

/* The candidate of a role that a plan string names; false: it names none that
 * is legal. */
bool clconv_candidate_parse(const clconv_search *s, const char *plan,
                            clconv_candidate *out);

#endif
