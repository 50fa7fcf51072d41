/*
 * A plan as pure data: which kernels with which values, in launch order, and
 * where in the workspace each piece lies. The planner makes it; the runtime
 * builds and launches it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PLAN_H
#define CLCONV_PLAN_H

#include "kernel.h"
#include "status.h"

/* The cast, then bwd_data and bwd_weight, or forward; or a backward alone. */
#define CLCONV_MAX_STEPS 3

/* Workspace pieces start at multiples of this many bytes. */
#define CLCONV_WORKSPACE_ALIGN 256

typedef struct clconv_step {
    const clconv_kernel *kernel;
    int values[CLCONV_MAX_PARAMS];
    unsigned copies; /* this and what follows: see clconv_task */
    unsigned counts;
    unsigned reads;
    bool bias;
    bool finishes_bias;
    size_t scratch_offset; /* bytes into the workspace */
    const char *why;       /* "default", "asked for": a static string */
} clconv_step;

typedef struct clconv_steps {
    clconv_problem problem;
    unsigned ops; /* clconv_op mask */
    int count;
    clconv_step step[CLCONV_MAX_STEPS];
    size_t copy_offset[CLCONV_TENSORS];   /* of DY, X, W, if copied */
    size_t packed_offset[CLCONV_TENSORS]; /* the same, of packed copies */
    size_t workspace;                     /* bytes, for problem.n images */
} clconv_steps;

/* The task that a step hands to its kernel's callbacks. Borrows all three. */
clconv_task clconv_step_task(const clconv_steps *steps, int index,
                             const clconv_device *device);

/* The copies of all steps: bits as in clconv_task. */
unsigned clconv_steps_copies(const clconv_steps *steps);

/* Bytes of an operand's copy, plain or packed. */
size_t clconv_steps_copy_bytes(const clconv_steps *steps, clconv_tensor tensor,
                               bool packed);

/* The partial sums of dbias that the cast leaves for another step in a call with
 * batch images; offset: bytes into the workspace. One step finishes_bias. */
clconv_bias_sums clconv_steps_bias_sums(const clconv_steps *steps,
                                        const clconv_device *device,
                                        int64_t batch, size_t *offset);

/* Fills the offsets and the size of the workspace, when all else stands. */
void clconv_steps_lay_out(clconv_steps *steps, const clconv_device *device);

/*
 * The plan string: "cast:vec=16;bwd_data_generic:vec=16,cast=separate;...",
 * one kernel after the other.
 */
void clconv_steps_format(const clconv_steps *steps, clconv_text *out);

/* What a plan string asks for, per role; kernel NULL: left open. given[i]
 * says that value i was named. */
typedef struct clconv_choice {
    const clconv_kernel *kernel;
    int values[CLCONV_MAX_PARAMS];
    bool given[CLCONV_MAX_PARAMS];
} clconv_choice;

#define CLCONV_ROLES 5

/* INVALID_ARGUMENT with a sentence that names the part of the string and
 * lists what there is. NULL and "" leave all roles open. */
clconv_status clconv_choices_parse(const char *text,
                                   clconv_choice out[CLCONV_ROLES]);

#endif
