/*
 * Images repeat after a period, so that n of them sum to a multiple of what a
 * period does: dW and db of n = m * period + rest images are m times those of
 * the period's plus those of the first rest; dX repeats as the images do.
 * Powers of two that the description asks for are multiplied in here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "expect.h"

#include <math.h>
#include <stdlib.h>

#include "objects.h"
#include "spread.h"
#include "whole.h"

/* Two images at least, or a plan that takes the wrong one would pass. */
#define PERIOD_MIN 2

static const char generic_plan[] = "bwd_data_generic;bwd_weight_generic";

/* ---- The reference ----------------------------------------------------- */

static int64_t period_of(const clconv_problem *p, double flops)
{
    double images = flops / clconv_problem_flops(p) * (double)p->n;
    if (images >= (double)p->n || p->n <= PERIOD_MIN)
        return p->n;
    return images > PERIOD_MIN ? (int64_t)images : PERIOD_MIN;
}

/* The same convolution of so many images, in fp32 and in true units. */
static clconv_desc in_fp32(clconv_desc desc, int64_t images)
{
    desc.n = images;
    desc.math = CLCONV_FP32;
    desc.x_type = desc.w_type = desc.dy_type = CLCONV_F32;
    desc.dw_type = desc.db_type = desc.dx_type = CLCONV_F32;
    desc.dy_log2 = desc.dx_log2 = 0;
    return desc;
}

static clconv_status make_plan(clconv_context *context, const clconv_desc *desc,
                               unsigned ops, const char *plan, clconv_plan **out)
{
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.plan = plan;
    return clconv_plan_create(context, desc, ops, &options, out);
}

/* NULL if there is none that works: the generic kernels then do all. */
static clconv_plan *make_fast_plan(clconv_context *context,
                                   const clconv_desc *desc,
                                   const clconv_problem *problem, unsigned ops)
{
    const clconv_request request = {
        .ops = ops, .max_workspace = context->device.max_allocation};
    clconv_plan *plan = NULL;
    char *text;
    if (clconv_whole_plan(problem, &context->device, &request, &text) !=
        CLCONV_OK)
        return NULL;
    make_plan(context, desc, ops, text, &plan);
    free(text);
    return plan;
}

static clconv_status make_reference(clconv_context *context,
                                    cl_command_queue queue,
                                    const clconv_desc *desc, double flops,
                                    clconv_reference *r)
{
    clconv_problem problem;
    clconv_status status = clconv_problem_init(desc, &problem);
    if (status == CLCONV_OK)
        status = clconv_tensors_new(context->cl_ctx, queue, &problem, r->ops, 1,
                                    &r->tensors);
    if (status == CLCONV_OK)
        status = make_plan(context, desc, r->ops, generic_plan, &r->generic);
    if (status == CLCONV_OK && clconv_problem_flops(&problem) > flops)
        r->fast = make_fast_plan(context, desc, &problem, r->ops);
    return status;
}

clconv_status clconv_reference_new(clconv_context *context,
                                   cl_command_queue queue,
                                   const clconv_desc *desc, unsigned ops,
                                   double flops, clconv_reference *out)
{
    clconv_reference r = {.ops = ops};
    clconv_desc whole;
    clconv_status status = clconv_problem_init(desc, &r.problem);
    if (status == CLCONV_OK)
        status = clconv_problem_read_desc(desc, &whole);
    if (status != CLCONV_OK)
        return status;
    r.period = period_of(&r.problem, flops);
    clconv_desc part = in_fp32(whole, r.period);
    status = make_reference(context, queue, &part, flops, &r);
    if (status == CLCONV_OK)
        *out = r;
    else
        clconv_reference_free(&r);
    return status;
}

void clconv_reference_free(clconv_reference *r)
{
    clconv_plan_release(r->fast);
    clconv_plan_release(r->generic);
    clconv_tensors_free(&r->tensors);
    r->fast = r->generic = NULL;
}

/* ---- Running it -------------------------------------------------------- */

/* Of period images, on the host. */
typedef struct operands {
    float *value[CLCONV_W + 1];
} operands;

static void free_operands(operands *o)
{
    for (int i = CLCONV_DY; i <= CLCONV_W; ++i)
        free(o->value[i]);
}

/* Makes them, and writes them to the device. */
static clconv_status upload(const clconv_reference *r, clconv_sample sample,
                            const clconv_tensors *tensors, operands *out)
{
    clconv_problem part = r->problem;
    part.n = r->period;
    clconv_status status = CLCONV_OK;
    for (int i = CLCONV_DY; i <= CLCONV_W && status == CLCONV_OK; ++i) {
        clconv_tensor t = (clconv_tensor)i;
        if (!clconv_tensors_use(r->ops, t))
            continue;
        out->value[t] = clconv_sample_new(&part, sample, t);
        if (!out->value[t])
            return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a tensor");
        status = clconv_tensors_write(tensors, t, out->value[t], r->period);
    }
    return status;
}

clconv_status clconv_reference_load(const clconv_reference *r,
                                    clconv_sample sample,
                                    const clconv_tensors *t)
{
    operands o = {.value = {NULL}};
    clconv_status status = upload(r, sample, t, &o);
    free_operands(&o);
    return status;
}

static clconv_status run(const clconv_reference *r, clconv_sample sample,
                         int64_t images)
{
    clconv_backward_args args;
    clconv_backward_args_init(&args);
    clconv_tensors_args(&r->tensors, 0, r->ops, &args);
    args.batch = images;
    bool fast = r->fast && sample != CLCONV_SAMPLE_INTEGERS;
    return clconv_enqueue_backward(fast ? r->fast : r->generic,
                                   r->tensors.queue, &args, 0, NULL, NULL);
}

/* ---- Gathering --------------------------------------------------------- */

/* The first images of a period, so many times. */
typedef struct share {
    int64_t images;
    double times;
} share;

static double exponent_of(const clconv_problem *p, clconv_tensor tensor)
{
    return exp2(tensor == CLCONV_DX ? p->dx_log2 - p->dy_log2 : -p->dy_log2);
}

static void add_values(const clconv_reference *r, clconv_tensor tensor,
                       const share *s, const float *got, size_t count,
                       clconv_expected *e)
{
    double factor = exponent_of(&r->problem, tensor);
    float *value = e->value[tensor];
    bool whole = s->images == r->period;
    for (size_t i = 0; i < count; ++i) {
        double part = factor * (double)got[i];
        if (tensor != CLCONV_DX)
            value[i] = (float)((double)value[i] + s->times * part);
        else if (whole)
            value[i] = (float)part;
    }
}

static clconv_status add_results(const clconv_reference *r, const share *s,
                                 clconv_expected *e)
{
    clconv_problem part = r->problem;
    part.n = s->images;
    clconv_status status = run(r, e->sample, s->images);
    for (int i = CLCONV_DW; i <= CLCONV_DX && status == CLCONV_OK; ++i) {
        clconv_tensor t = (clconv_tensor)i;
        float *got;
        if (!clconv_tensors_use(r->ops, t))
            continue;
        status = clconv_tensors_read(&r->tensors, t, &got);
        if (status != CLCONV_OK)
            break;
        add_values(r, t, s, got, (size_t)clconv_problem_elements(&part, t), e);
        free(got);
    }
    return status;
}

/* Rounding errors of dW and db repeat with the images; those of dX lie side by
 * side. */
static clconv_status add_spreads(const clconv_reference *r, const operands *o,
                                 const share *s, clconv_expected *e)
{
    clconv_problem part = r->problem;
    part.n = s->images;
    for (int i = CLCONV_DW; i <= CLCONV_DX; ++i) {
        clconv_tensor t = (clconv_tensor)i;
        double squares, factor = exponent_of(&r->problem, t);
        if (!clconv_tensors_use(r->ops, t))
            continue;
        if (!clconv_spread_squares(
                &part, t, o->value[CLCONV_DY],
                o->value[t == CLCONV_DX ? CLCONV_W : CLCONV_X], &squares))
            return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a tensor");
        if (t == CLCONV_DX)
            e->spread[t] =
                hypot(e->spread[t], factor * sqrt(s->times * squares));
        else
            e->spread[t] += factor * s->times * sqrt(squares);
    }
    return CLCONV_OK;
}

static clconv_status add_share(const clconv_reference *r, const operands *o,
                               const share *s, clconv_expected *e)
{
    if (s->images == 0)
        return CLCONV_OK;
    clconv_status status = add_results(r, s, e);
    return status == CLCONV_OK ? add_spreads(r, o, s, e) : status;
}

static clconv_status add_all(const clconv_reference *r, clconv_expected *e)
{
    const share whole = {r->period, (double)(r->problem.n / r->period)};
    const share rest = {r->problem.n % r->period, 1};
    operands o = {.value = {NULL}};
    clconv_status status = upload(r, e->sample, &r->tensors, &o);
    if (status == CLCONV_OK)
        status = add_share(r, &o, &whole, e);
    if (status == CLCONV_OK)
        status = add_share(r, &o, &rest, e);
    free_operands(&o);
    return status;
}

static clconv_status make_zeros(const clconv_reference *r, clconv_expected *e)
{
    for (int i = CLCONV_DW; i <= CLCONV_DX; ++i) {
        if (!clconv_tensors_use(r->ops, (clconv_tensor)i))
            continue;
        size_t count = (size_t)clconv_problem_elements(&r->tensors.problem,
                                                       (clconv_tensor)i);
        e->value[i] = calloc(count + 1, sizeof(float));
        if (!e->value[i])
            return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a tensor");
    }
    return CLCONV_OK;
}

clconv_status clconv_reference_expect(const clconv_reference *r,
                                      clconv_sample sample, clconv_expected *out)
{
    clconv_expected e = {.sample = sample, .images = r->period};
    clconv_status status = make_zeros(r, &e);
    if (status == CLCONV_OK)
        status = add_all(r, &e);
    if (status == CLCONV_OK)
        *out = e;
    else
        clconv_expected_free(&e);
    return status;
}

void clconv_expected_free(clconv_expected *e)
{
    for (int i = 0; i < CLCONV_TENSORS; ++i)
        free(e->value[i]);
    *e = (clconv_expected){.sample = CLCONV_SAMPLES};
}
