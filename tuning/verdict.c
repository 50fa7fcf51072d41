/*
 * The bounds, each on |got - expected| in the Frobenius norm, S being |spread|.
 *
 * Mixed: rounding both factors to fp16 gives 2.9e-4 S on the mean (independent
 * errors, each 0.41 * 2^-11). 5e-3 S is far from that even for tensors of one
 * element, and still below what one wrong tap in 10^4 makes; a single wrong
 * index in longer sums is what the integers are for. A dY below fp16's normal
 * range is rounded to a multiple of 2^-24: an error of 2^-25 at most, in units
 * in which its size is clconv_sample_dy_size(), and in that proportion to S.
 *
 * fp32: two sums of D terms in different order differ by about
 * sqrt(D / 6) * 2^-24 S each; 1e-4 S is above that up to D = 10^7, and
 * sqrt(D) * 2^-24 S is added for longer ones.
 *
 * An fp16 output adds half a step: 2^-11 of itself or, where it is subnormal,
 * 2^-25. Beyond 65504 it may saturate or be infinite, as the description says;
 * both count as 65504.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "verdict.h"

#include <math.h>
#include <stdio.h>

#define NORM_MIXED 5e-3
#define NORM_FP32 1e-4
#define FLOAT_STEP 0x1p-24
#define HALF_STEP 0x1p-11
#define HALF_SUBNORMAL_STEP 0x1p-25
#define HALF_MAX 65504.0

static double depth_of(const clconv_problem *p, clconv_tensor tensor)
{
    if (tensor == CLCONV_DX)
        return (double)(p->group_k * p->r * p->s);
    return (double)(p->n * p->p * p->q);
}

/* In units of S. */
static double relative_bound(const clconv_expected *e, const clconv_problem *p,
                             clconv_tensor tensor)
{
    double bound = NORM_FP32 + sqrt(depth_of(p, tensor)) * FLOAT_STEP;
    if (p->math == CLCONV_MIXED)
        bound += NORM_MIXED;
    if (p->math == CLCONV_MIXED && p->type[CLCONV_DY] == CLCONV_F32)
        bound += HALF_SUBNORMAL_STEP / clconv_sample_dy_size(p, e->sample);
    if (p->type[tensor] == CLCONV_F16)
        bound += HALF_STEP;
    return bound;
}

/* A NaN stays one. */
static double in_range(const clconv_problem *p, clconv_tensor tensor,
                       double value)
{
    if (p->type[tensor] == CLCONV_F32 || isnan(value))
        return value;
    return fmax(-HALF_MAX, fmin(HALF_MAX, value));
}

static double wanted(const clconv_expected *e, const clconv_problem *p,
                     clconv_tensor tensor, size_t period, size_t i)
{
    return in_range(p, tensor, (double)e->value[tensor][i % period]);
}

/* ---- Integers ---------------------------------------------------------- */

static bool is_exact(const clconv_expected *e, const clconv_problem *p,
                     clconv_tensor tensor, size_t period, const float *got,
                     clconv_trial *out)
{
    size_t count = (size_t)clconv_problem_elements(p, tensor);
    bool half_type = p->type[tensor] == CLCONV_F16;
    for (size_t i = 0; i < count; ++i) {
        double want = wanted(e, p, tensor, period, i);
        double have = in_range(p, tensor, (double)got[i]);
        double slack =
            half_type ? HALF_STEP * fabs(want) + HALF_SUBNORMAL_STEP : 0;
        if (fabs(have - want) <= slack)
            continue;
        out->outcome = CLCONV_TRIAL_WRONG;
        snprintf(out->why, sizeof out->why,
                 "%s[%zu] of %s data is %.9g, not "
                 "%.9g",
                 clconv_tensor_name(tensor), i, clconv_sample_word(e->sample),
                 have, want);
        return false;
    }
    return true;
}

/* ---- The norm ---------------------------------------------------------- */

static double distance(const clconv_expected *e, const clconv_problem *p,
                       clconv_tensor tensor, size_t period, const float *got)
{
    size_t count = (size_t)clconv_problem_elements(p, tensor);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
        double error = in_range(p, tensor, (double)got[i]) -
                       wanted(e, p, tensor, period, i);
        sum += error * error;
    }
    return sqrt(sum);
}

static bool is_near(const clconv_expected *e, const clconv_problem *p,
                    clconv_tensor tensor, size_t period, const float *got,
                    clconv_trial *out)
{
    double error = distance(e, p, tensor, period, got);
    double spread = e->spread[tensor];
    double bound = relative_bound(e, p, tensor) * spread;
    if (p->type[tensor] == CLCONV_F16)
        bound += HALF_SUBNORMAL_STEP *
                 sqrt((double)clconv_problem_elements(p, tensor));
    double relative = spread > 0 ? error / spread : error;
    /* Written so that a NaN is neither small nor near. */
    if (!(relative <= out->error))
        out->error = relative;
    if (error <= bound)
        return true;
    out->outcome = CLCONV_TRIAL_WRONG;
    snprintf(out->why, sizeof out->why,
             "%s of %s data: relative error %.2e, "
             "above %.2e",
             clconv_tensor_name(tensor), clconv_sample_word(e->sample),
             relative, spread > 0 ? bound / spread : bound);
    return false;
}

bool clconv_verdict_holds(const clconv_expected *e, const clconv_problem *p,
                          clconv_tensor tensor, const float *got,
                          clconv_trial *out)
{
    clconv_problem part = *p;
    part.n = e->images;
    size_t period = (size_t)clconv_problem_elements(&part, tensor);
    bool exactly = e->sample == CLCONV_SAMPLE_INTEGERS;
    return (exactly ? is_exact : is_near)(e, p, tensor, period, got, out);
}
