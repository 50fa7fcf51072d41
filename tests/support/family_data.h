/*
 * A problem with data of small integers and what its gradients must be, for
 * family.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAMILY_DATA_H
#define FAMILY_DATA_H

#include <stddef.h>

#include "clconv/clconv.h"

/* The tensors, in the order of clconv_report. */
enum {
    FAMILY_DY,
    FAMILY_X,
    FAMILY_W,
    FAMILY_DW,
    FAMILY_DB,
    FAMILY_DX,
    FAMILY_TENSORS
};

/* "dy" to "dx", and the clconv_op bits that have a use for it. */
extern const char *const family_names[FAMILY_TENSORS];
extern const unsigned family_ops[FAMILY_TENSORS];

typedef struct family_data {
    clconv_desc desc;
    int64_t elements[FAMILY_TENSORS]; /* for desc.n images */
    clconv_type type[FAMILY_TENSORS];
    /* Inputs; what the outputs hold before a call that reads them. */
    float *value[FAMILY_TENSORS];
    /* Outputs: their gradients in the units of the inputs. */
    double *exact[FAMILY_TENSORS];
} family_data;

/* Integers from -3 to 3, nearer to 0 where a sum could leave the 24 bits of
 * an fp32. */
void family_data_new(const clconv_desc *desc, family_data *out);
void family_data_free(family_data *data);

/* Works out exact[] of so many images. */
void family_data_compute(family_data *data, int64_t batch);

/* Elements of a tensor for so many images. */
int64_t family_data_elements(const family_data *data, int tensor, int64_t batch);

/* What element i of an output is before it is rounded to its type, and
 * after. */
double family_data_result(const family_data *data, int tensor, int64_t i,
                          float beta);
float family_data_stored(const family_data *data, int tensor, int64_t i,
                         float beta);

#endif
