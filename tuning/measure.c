/*
 * The first set of tensors is the one that results are looked at; between calls
 * of this module all sets hold the same random operands. The reference has a
 * context of its own, in memory: the caller's cache gets the programs of the
 * plans that are measured, and no others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "cl_error.h"
#include "measure_parts.h"
#include "verdict.h"
#include "whole.h"

/* A fraction of a second of the generic kernels on two cores. */
#define REFERENCE_FLOPS 5e8

/* ---- Life and death ---------------------------------------------------- */

/* Operands of the first set. */
static clconv_status load(clconv_measure *m, clconv_sample sample)
{
    return clconv_reference_load(&m->reference, sample, &m->tensors);
}

static clconv_status fill(clconv_measure *m)
{
    const clconv_context *c = m->context;
    int sets = clconv_tensors_count_sets(c->cl_device, &m->problem, m->ops,
                                         c->device.max_allocation);
    cl_int error;
    m->queue = clCreateCommandQueue(c->cl_ctx, c->cl_device, 0, &error);
    if (!m->queue)
        return clconv_cl_fail("clCreateCommandQueue", error);
    clconv_status status = clconv_tensors_new(c->cl_ctx, m->queue, &m->problem,
                                              m->ops, sets, &m->tensors);
    if (status == CLCONV_OK)
        status = clconv_context_new_scratch(c, &m->apart);
    if (status == CLCONV_OK)
        status = clconv_reference_new(m->apart, m->queue, &m->desc, m->ops,
                                      REFERENCE_FLOPS, &m->reference);
    if (status == CLCONV_OK)
        status = load(m, CLCONV_SAMPLE_RANDOM);
    return status == CLCONV_OK ? clconv_tensors_copy_sets(&m->tensors) : status;
}

static clconv_status read_desc(clconv_measure *m, const clconv_desc *desc)
{
    clconv_status status = clconv_problem_init(desc, &m->problem);
    if (status != CLCONV_OK)
        return status;
    if (m->problem.n == 0)
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "desc.n is 0; to measure, it must be at least 1");
    return clconv_problem_read_desc(desc, &m->desc);
}

clconv_status clconv_measure_new(clconv_context *context,
                                 const clconv_desc *desc, unsigned ops,
                                 clconv_measure **out)
{
    clconv_measure *m = calloc(1, sizeof *m);
    if (!m)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory to measure");
    clconv_context_retain(context);
    m->context = context;
    m->ops = ops;
    m->max_workspace = context->device.max_allocation;
    clconv_status status = read_desc(m, desc);
    if (status == CLCONV_OK)
        status = fill(m);
    if (status == CLCONV_OK)
        *out = m;
    else
        clconv_measure_free(m);
    return status;
}

void clconv_measure_free(clconv_measure *m)
{
    if (!m)
        return;
    clconv_measure_forget(m);
    for (int i = 0; i < CLCONV_SAMPLES; ++i)
        clconv_expected_free(&m->expected[i]);
    clconv_reference_free(&m->reference);
    clconv_tensors_free(&m->tensors);
    if (m->workspace)
        clReleaseMemObject(m->workspace);
    if (m->queue)
        clReleaseCommandQueue(m->queue);
    clconv_context_release(m->apart);
    clconv_context_release(m->context);
    free(m);
}

void clconv_measure_limit_workspace(clconv_measure *m, size_t bytes)
{
    size_t most = m->context->device.max_allocation;
    m->max_workspace = bytes < most ? bytes : most;
}

void clconv_measure_forget(clconv_measure *m)
{
    clconv_prepared_clear(&m->plans);
}

/* ---- Outcomes ---------------------------------------------------------- */

void clconv_measure_end_trial(clconv_trial *out, clconv_outcome outcome,
                              const char *why)
{
    out->outcome = outcome;
    snprintf(out->why, sizeof out->why, "%s", why);
    for (char *c = out->why; *c; ++c)
        if (*c == '\n')
            *c = ' ';
}

static clconv_outcome outcome_of(clconv_status status)
{
    switch (status) {
    case CLCONV_OK: return CLCONV_TRIAL_OK;
    case CLCONV_INVALID_ARGUMENT:
    case CLCONV_UNSUPPORTED: return CLCONV_TRIAL_REFUSED;
    case CLCONV_BUILD_FAILED: return CLCONV_TRIAL_BUILD_FAILED;
    default: return CLCONV_TRIAL_FAILED;
    }
}

/* True if status is OK; else the trial has ended with the last error. */
static bool passes(clconv_status status, clconv_trial *out)
{
    if (status == CLCONV_OK)
        return true;
    clconv_measure_end_trial(out, outcome_of(status), clconv_last_error());
    return false;
}

/* ---- Plans ------------------------------------------------------------- */

static clconv_status make_whole(const clconv_measure *m, unsigned ops,
                                const char *plan, char **out)
{
    const clconv_request request = {
        .ops = ops, .max_workspace = m->max_workspace, .plan = plan};
    return clconv_whole_plan(&m->problem, &m->context->device, &request, out);
}

clconv_prepared *clconv_measure_find(clconv_measure *m, unsigned ops,
                                     const char *plan)
{
    char *whole;
    if (make_whole(m, ops, plan, &whole) != CLCONV_OK)
        return NULL;
    clconv_prepared *found = clconv_prepared_find(&m->plans, ops, whole);
    free(whole);
    return found;
}

static clconv_status grow_workspace(clconv_measure *m, size_t bytes)
{
    if (bytes <= m->workspace_size)
        return CLCONV_OK;
    cl_int error;
    cl_mem grown = clCreateBuffer(m->context->cl_ctx, CL_MEM_READ_WRITE, bytes,
                                  NULL, &error);
    if (!grown)
        return clconv_cl_fail("clCreateBuffer", error);
    if (m->workspace)
        clReleaseMemObject(m->workspace);
    m->workspace = grown;
    m->workspace_size = bytes;
    return CLCONV_OK;
}

static clconv_status compile(clconv_measure *m, unsigned ops, const char *whole,
                             clconv_plan **out)
{
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.plan = whole;
    clconv_plan *plan;
    clconv_status status =
        clconv_plan_create(m->context, &m->desc, ops, &options, &plan);
    if (status != CLCONV_OK)
        return status;
    size_t workspace = 0;
    clconv_plan_workspace_size(plan, &workspace);
    status = grow_workspace(m, workspace);
    if (status == CLCONV_OK)
        *out = plan;
    else
        clconv_plan_release(plan);
    return status;
}

/* ---- Calls ------------------------------------------------------------- */

clconv_status clconv_measure_enqueue(const clconv_measure *m, clconv_plan *plan,
                                     unsigned ops, int set)
{
    clconv_backward_args args;
    clconv_backward_args_init(&args);
    clconv_tensors_args(&m->tensors, set, ops, &args);
    args.workspace.mem = m->workspace;
    return clconv_enqueue_backward(plan, m->queue, &args, 0, NULL, NULL);
}

static clconv_status expect(clconv_measure *m, clconv_sample sample)
{
    if (m->has_expected[sample])
        return CLCONV_OK;
    clconv_status status =
        clconv_reference_expect(&m->reference, sample, &m->expected[sample]);
    m->has_expected[sample] = status == CLCONV_OK;
    return status;
}

/* Holds what the first set has against the sample's results. */
static bool hold_outputs(const clconv_measure *m, unsigned ops,
                         clconv_sample sample, clconv_trial *out)
{
    bool ok = true;
    for (int i = CLCONV_DW; i <= CLCONV_DX && ok; ++i) {
        clconv_tensor t = (clconv_tensor)i;
        float *got;
        if (!clconv_tensors_use(ops, t))
            continue;
        if (!passes(clconv_tensors_read(&m->tensors, t, &got), out))
            return false;
        ok = clconv_verdict_holds(&m->expected[sample], &m->problem, t, got,
                                  out);
        free(got);
    }
    return ok;
}

/* One call with the first set, which holds that sample. */
static bool check(clconv_measure *m, clconv_plan *plan, unsigned ops,
                  clconv_sample sample, clconv_trial *out)
{
    return passes(expect(m, sample), out) &&
           passes(clconv_tensors_poison(&m->tensors), out) &&
           passes(clconv_measure_enqueue(m, plan, ops, 0), out) &&
           hold_outputs(m, ops, sample, out);
}

/* ---- Preparing --------------------------------------------------------- */

/* NULL: the trial has ended. */
static clconv_prepared *prepare_whole(clconv_measure *m, unsigned ops,
                                      const char *whole, clconv_trial *out)
{
    clconv_prepared *p = clconv_prepared_find(&m->plans, ops, whole);
    if (p)
        return p;
    clconv_plan *plan = NULL;
    if (passes(compile(m, ops, whole, &plan), out) &&
        check(m, plan, ops, CLCONV_SAMPLE_RANDOM, out)) {
        p = clconv_prepared_add(&m->plans, ops, whole, plan);
        if (!p)
            clconv_measure_end_trial(out, CLCONV_TRIAL_FAILED,
                                     "no memory for a plan");
    }
    if (p)
        p->error = out->error;
    else
        clconv_plan_release(plan);
    return p;
}

static clconv_prepared *prepare(clconv_measure *m, unsigned ops,
                                const char *plan, clconv_trial *out)
{
    char *whole;
    *out = (clconv_trial){.outcome = CLCONV_TRIAL_OK};
    if (!passes(make_whole(m, ops, plan, &whole), out))
        return NULL;
    clconv_prepared *p = prepare_whole(m, ops, whole, out);
    free(whole);
    if (p)
        out->error = p->error;
    return p;
}

void clconv_measure_prepare(clconv_measure *m, unsigned ops, const char *plan,
                            clconv_trial *out)
{
    prepare(m, ops, plan, out);
}

/* ---- Judging ----------------------------------------------------------- */

void clconv_measure_judge(clconv_measure *m, unsigned ops, const char *plan,
                          clconv_trial *out)
{
    const clconv_prepared *p = prepare(m, ops, plan, out);
    bool ok = p != NULL;
    for (int i = 0; i < CLCONV_SAMPLES && ok; ++i) {
        clconv_sample sample = (clconv_sample)i;
        ok = passes(load(m, sample), out) && check(m, p->plan, ops, sample, out);
    }
    clconv_status status = load(m, CLCONV_SAMPLE_RANDOM);
    if (!ok || !passes(status, out))
        return;
    out->error = p->error; /* that of tiny data says more of fp16 */
}
