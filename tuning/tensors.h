/*
 * The tensors of a problem on a device, several sets of them, one set after
 * another in one buffer a tensor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TENSORS_H
#define CLCONV_TENSORS_H

#include "problem.h"

typedef struct clconv_tensors {
    clconv_problem problem;
    cl_command_queue queue; /* borrowed, in order */
    int sets;
    cl_mem mem[CLCONV_TENSORS];    /* NULL: of no use to ops */
    size_t stride[CLCONV_TENSORS]; /* bytes from a set to the next */
} clconv_tensors;

/* How many sets so that no cache of the device holds them all; fewer where
 * memory is short. */
int clconv_tensors_count_sets(cl_device_id device, const clconv_problem *p,
                              unsigned ops, size_t max_allocation);

/* What ops (a clconv_op mask) read and write. Contents are undefined. */
clconv_status clconv_tensors_new(cl_context context, cl_command_queue queue,
                                 const clconv_problem *p, unsigned ops,
                                 int sets, clconv_tensors *out);
void clconv_tensors_free(clconv_tensors *t);

/* Is the tensor read or written by these ops? */
bool clconv_tensors_use(unsigned ops, clconv_tensor tensor);

/* Hands args what ops use of a set. */
void clconv_tensors_args(const clconv_tensors *t, int set, unsigned ops,
                         clconv_backward_args *args);

/* Writes an operand of the first set: values of so many images, again and
 * again up to the last image. Waits. */
clconv_status clconv_tensors_write(const clconv_tensors *t, clconv_tensor tensor,
                                   const float *values, int64_t images);

/* Makes the operands of all sets equal to the first's. */
clconv_status clconv_tensors_copy_sets(const clconv_tensors *t);

/* Fills the outputs of the first set with NaN. */
clconv_status clconv_tensors_poison(const clconv_tensors *t);

/* A tensor of the first set, yours to free(). */
clconv_status clconv_tensors_read(const clconv_tensors *t, clconv_tensor tensor,
                                  float **out);

#endif
