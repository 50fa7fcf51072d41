/*
 * Compiled plans by their text, the least recently used released first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PREPARED_H
#define CLCONV_PREPARED_H

#include "measure.h"

typedef struct clconv_prepared {
    clconv_plan *plan; /* NULL: this place is free */
    unsigned ops;
    char *text;
    double error;       /* on random data */
    unsigned long used; /* when: the larger, the later */
} clconv_prepared;

/* All 0: empty. */
typedef struct clconv_prepared_list {
    clconv_prepared item[CLCONV_MEASURE_PLANS];
    unsigned long uses;
} clconv_prepared_list;

/* NULL: it is not there. Counts as a use. */
clconv_prepared *clconv_prepared_find(clconv_prepared_list *list, unsigned ops,
                                      const char *text);

/* Takes the plan; NULL and the plan still the caller's: no memory. Pointers
 * into the list that were found before may be another plan's now. */
clconv_prepared *clconv_prepared_add(clconv_prepared_list *list, unsigned ops,
                                     const char *text, clconv_plan *plan);

void clconv_prepared_clear(clconv_prepared_list *list);

#endif
