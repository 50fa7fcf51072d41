/*
 * Times and checks plans of one problem on a device: tensors with random data,
 * in so many sets that no cache holds them, outputs poisoned with NaN.
 *
 *     clconv_measure *m;
 *     status = clconv_measure_new(context, &desc, ops, &m);
 *     clconv_measure_prepare(m, ops, "bwd_data_tile:tile_c=14", &trial);
 *     clconv_measure_time(m, ops, plans, count, 0.1, trials);
 *     clconv_measure_free(m);
 *
 * What a plan string leaves open is the planner's own choice, whatever records
 * the context has. For one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_MEASURE_H
#define CLCONV_MEASURE_H

#include "clconv/clconv.h"
#include "trial.h"

typedef struct clconv_measure clconv_measure;

/* ops: all that may be asked for later. Makes a queue of its own. Errors: those
 * of clconv_plan_create(); UNSUPPORTED for a desc of no images. */
clconv_status clconv_measure_new(clconv_context *context,
                                 const clconv_desc *desc, unsigned ops,
                                 clconv_measure **out);
void clconv_measure_free(clconv_measure *m); /* NULL: no-op */

/* Plans that need more bytes of workspace are refused; at first: none is. */
void clconv_measure_limit_workspace(clconv_measure *m, size_t bytes);

/* Compiles, runs once, and holds the results against others in fp32 (random
 * data: relative error in the Frobenius norm). A plan stays compiled until
 * clconv_measure_forget(), or until so many others have been used since. */
#define CLCONV_MEASURE_PLANS 64
void clconv_measure_prepare(clconv_measure *m, unsigned ops, const char *plan,
                            clconv_trial *out);

/* Times plans in turns, about seconds each and at least a few calls. Trials of
 * plans that are not prepared stay as they are. */
void clconv_measure_time(clconv_measure *m, unsigned ops,
                         const char *const *plans, int count, double seconds,
                         clconv_trial *out);

/* Judges a plan, prepared or not: small integers bit for bit against the
 * generic kernels in fp32; random, tiny (1e-8) and cancelling data within a
 * bound on the Frobenius norm. clconv-check is stricter, and holds these
 * against fp64. */
void clconv_measure_judge(clconv_measure *m, unsigned ops, const char *plan,
                          clconv_trial *out);

/* Releases every prepared plan. */
void clconv_measure_forget(clconv_measure *m);

#endif
