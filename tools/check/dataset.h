/*
 * One problem with its data and what comes out of it, worked out once and
 * then compared with every layout and every kind of arithmetic:
 *
 *     dataset data;
 *     if (!dataset_normal(ref, &z, seed, &data)) ...  // said on stderr
 *     ...
 *     dataset_free(&data);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_DATASET_H
#define CLCONV_CHECK_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "judge.h"
#include "random.h"
#include "reference.h"
#include "shape.h"

typedef struct dataset {
    shape z;
    float *x, *w, *dy;
    expected dw, db, dx;
} dataset;

/* Each is false with a line on stderr if there is no memory or the reference
 * fails. */

/* Whole numbers that the sums of exact arithmetic keep below 2^24, so that
 * fp32 gives them exactly in any order; no spread. Not for sums that are too
 * long for any such numbers: their dataset_integer_magnitude() is 0. */
bool dataset_integers(reference *ref, const shape *z, uint64_t seed,
                      dataset *out);
int dataset_integer_magnitude(const shape *z);

/* What may be added to a sum of them on top: 4 times this stays exact. */
#define DATASET_MAX_OLD 8

/* Normal values, away from 0 (RANDOM_NORMAL_MIN). */
bool dataset_normal(reference *ref, const shape *z, uint64_t seed, dataset *out);

/* Inputs and expectations of 0. */
bool dataset_zeros(const shape *z, dataset *out);

/* Works out the expectations for the inputs as they are. random chooses what
 * of them is checked again. */
bool dataset_evaluate(reference *ref, dataset *data, random_source *random);

/* Puts value where dy was 0 and adds its products to the expected values, not
 * to the spreads. raw is what db sums: dy as it was before any rounding. */
void dataset_put_dy(dataset *data, size_t index, float value, float raw);

void dataset_free(dataset *data);

/* A new copy; NULL with a line on stderr if there is no memory. */
float *dataset_copy_floats(const float *values, size_t count);

#endif
