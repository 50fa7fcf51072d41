/*
 * What every kernel must pass, in one call each: a plan string that names the
 * kernels under test, problem strings that reach their edges.
 *
 *     static const family tile = {.plan = "bwd_data_tile;bwd_weight_tile",
 *                                 .ops = CLCONV_OP_DW | CLCONV_OP_DX};
 *     family_exact(&tile, "n2c16h8w16k16r3s3p1");
 *     family_batches(&tile, "n4c5h6w9k6r3s3p1");
 *
 * Data are small integers, so that each sum is exact in any order. Before each
 * call outputs, workspace and what surrounds every tensor are NaN; the latter
 * must still be afterwards. Whatever fails, fails the test, with problem,
 * plan, output and element. The device is that of $CLCONV_DEVICE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAMILY_H
#define FAMILY_H

#include "clconv/clconv.h"

typedef struct family {
    const char *plan;    /* see clconv_plan_options.plan; NULL: default */
    const char *emulate; /* a matrix unit's name, or NULL */
    unsigned ops;        /* clconv_op mask; 0: all three */
} family;

/* Every element as the definition says; with a report, whose counts of fp16
 * outputs must hold each element once. */
void family_exact(const family *f, const char *problem);

/* 1 to n images: exact, and the rest of dX untouched. */
void family_batches(const family *f, const char *problem);

/* Each set of the outputs in a call of its own: exact, and the others are not
 * touched. */
void family_outputs(const family *f, const char *problem);

/* out = beta * old + gradient; with batch 0, beta * old. */
void family_beta(const family *f, const char *problem);

/* Workspace full of NaN, guards around it: exact, guards untouched, also for
 * half of the images. The plan must have a workspace. */
void family_workspace(const family *f, const char *problem);

/* A NaN at corners and within dY, X and W in turn, and an infinity: it reaches
 * what an in-bounds tap reaches; where only padding connects, NaN or nothing
 * is right; nothing else. */
void family_nan(const family *f, const char *problem);

/* dY of about 1e-8: dW and dX within 5e-3 (relative, Frobenius) at scale
 * 2^10, and off by more than a tenth at scale 1. The problem string must
 * leave the scale at its default. */
void family_tiny(const family *f, const char *problem);

/* Skips the running test on devices that are not of the kind. */
void family_skip_unless_cpu(void);

#endif
