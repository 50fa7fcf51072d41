/*
 * What the times so far say about those not taken yet: a Gaussian process over
 * a space, on the logarithm of the time. Before it is told anything it believes
 * the kernels' cost(); each time corrects it there and, the less the fewer
 * values are the same, elsewhere.
 *
 *     int at = clconv_model_ask(m, item);     // it is out, to be timed
 *     clconv_model_answer(m, at, seconds);
 *     clconv_model_expect(m, other, &mean, &deviation);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_MODEL_H
#define CLCONV_MODEL_H

#include "space.h"

typedef struct clconv_model clconv_model;

/* Borrows the space. NULL: no memory. */
clconv_model *clconv_model_new(const clconv_space *space);
void clconv_model_free(clconv_model *m); /* NULL: no-op */

/* So many items can be asked for; more teach it nothing. */
#define CLCONV_MODEL_MOST 512

/* Counts on an answer for this item: other items like it become less
 * interesting. Returns a number for clconv_model_answer(); -1: it learns no
 * more. */
int clconv_model_ask(clconv_model *m, int item);

/* seconds INFINITY: it failed, which is held against items like it. */
void clconv_model_answer(clconv_model *m, int asked, double seconds);

/* What to expect of an item, as the logarithm of its time: only differences
 * between items mean something. */
void clconv_model_expect(const clconv_model *m, int item, double *mean,
                         double *deviation);

#endif
