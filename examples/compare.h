/*
 * How close gradients are to the ones computed in double from the same data.
 *
 *     comparison found[3];
 *     compare_gradients(shape, in, got, 3, found);
 *
 * compares three sets of gradients in one pass over the reference.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_COMPARE_H
#define CLCONV_EXAMPLES_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "conv.h"

#define COMPARE_MAX 4

/* Both over all elements of a tensor. */
typedef struct agreement {
    double cosine; /* of the angle to the true gradient: 1 = same direction */
    double error;  /* |got - true| / |true|, Frobenius norms */
} agreement;

typedef struct comparison {
    agreement dw, db, dx;
    /* Relative to |sum of |dy||, which db's rounding grows with: the true db,
     * 1 if nothing cancels, and the difference to it. */
    double db_size, db_error;
} comparison;

/* Sums that yield an agreement: of got * truth, got^2, truth^2 and
 * (got - truth)^2. Start with zeros. */
typedef struct agreement_sums {
    double product, got, truth, difference;
} agreement_sums;

void agreement_add(agreement_sums *sums, const float *got, const double *truth,
                   size_t count);
/* Where truth is all zero, cosine and error are NaN. */
agreement agreement_of(const agreement_sums *sums);

/*
 * got[0..count-1] are gradients for the same inputs, count <= COMPARE_MAX;
 * all their tensors are wanted. Runs on as many threads as there are cores.
 * false: out of memory or threads, said on stderr.
 */
bool compare_gradients(conv_shape shape, conv_inputs in,
                       const conv_gradients *got, size_t count, comparison *out);

#endif
