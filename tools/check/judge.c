/*
 * The bounds. a and b are the factors of an output's products, S the spread
 * sqrt(sum a^2 b^2), D the depth, u = 2^-24 the rounding of fp32.
 *
 * Rounding to fp16 changes each factor by at most 2^-11 of itself. For data
 * whose roundings are independent, the error of the sum has a standard
 * deviation of 0.58 * 2^-11 * S (two factors, each 0.41 * 2^-11), at any
 * depth: 8 * 2^-11 * S is beyond 13 of them. A bound by sum |a b| would grow
 * with D where the error grows with sqrt(D), and accept wrong taps in dw.
 *
 * Where dy falls below the normal range of fp16 it is rounded to a multiple
 * of 2^-24 / 2^scale: an error of at most F = 2^-25 / 2^scale each, and for
 * the sum a deviation of 0.58 * F * sqrt(sum b^2): 4 F is 7 of them.
 *
 * Accumulating in fp32 adds a rounding of u times the partial sum at each of
 * D steps. Partial sums grow as S * sqrt(i / D), so their roundings add to a
 * deviation of u * S * sqrt(D / 6) in one chain of additions, less in several.
 * (8 + 4 sqrt(D)) * u * S is 10 deviations of that; the 8 covers the rounding
 * of products and of the result, which may itself be 6 S. Rounding only one
 * factor to fp16 has a deviation of 3400 u * S, and one wrong tap of D about
 * S / sqrt(D): both are far outside for D up to 10^5 or 10^6.
 *
 * In the norm, mean errors count: 2.9e-4 for mixed, sqrt(D / 6) * u for fp32,
 * 0.58 * F. 5e-4, (2 + sqrt(D)) * u and F leave a factor near 2, and
 * 1 + 4 / sqrt(m) is for tensors of so few elements m that there is no mean
 * to speak of. They are taken relative to |S|, which is the norm to expect of
 * the result; cancellation in a small tensor may make the result smaller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "judge.h"

#include <math.h>

static const double half_step = 0x1p-11;
static const double float_step = 0x1p-24;
/* A device may take fp32 numbers below this for 0. */
static const double least_normal = 0x1p-126;

/* ---- Tolerances --------------------------------------------------------- */

static double few_elements(size_t independent)
{
    return 1 + 4 / sqrt(independent > 0 ? (double)independent : 1.0);
}

tolerance tolerance_fp32(double depth, size_t independent)
{
    double root = sqrt(depth);

    return (tolerance){.scale = 1,
                       .per_spread = (8 + 4 * root) * float_step,
                       .per_flush = 0,
                       .norm =
                           (2 + root) * float_step * few_elements(independent)};
}

tolerance tolerance_mixed(double depth, size_t independent, int scale_log2)
{
    tolerance t = tolerance_fp32(depth, independent);

    t.per_spread += 8 * half_step;
    t.per_flush = 4 * ldexp(0x1p-25, -scale_log2);
    t.norm += 5e-4 * few_elements(independent);
    t.norm_flush = ldexp(0x1p-25, -scale_log2) * few_elements(independent);
    return t;
}

/* ---- Elements ----------------------------------------------------------- */

bool judge_exact(const float *got, const double *values, size_t count,
                 verdict *out)
{
    verdict v = {.ok = true, .rule = "exactly equal"};
    double worst = -1;

    for (size_t i = 0; i < count; ++i) {
        double error = fabs((double)got[i] - values[i]);

        if ((double)got[i] == values[i] || error <= worst)
            continue;
        v.ok = false;
        v.has_element = true;
        v.index = i;
        v.got = (double)got[i];
        v.expected = values[i];
        worst = isnan(error) ? INFINITY : error;
    }
    *out = v;
    return v.ok;
}

static double flush_of(const expected *e, size_t i)
{
    if (!e->flush)
        return 0;
    return e->flush[i / e->flush_span * e->flush_block + i % e->flush_block];
}

/* The error in units of what is allowed: right up to 1. */
static double excess(double error, double bound)
{
    if (isnan(error))
        return INFINITY;
    if (error <= bound)
        return bound > 0 ? error / bound : 0;
    return bound > 0 ? error / bound : INFINITY;
}

static bool is_marked(const uint8_t *marks, size_t i)
{
    return marks && marks[i] != 0;
}

/* Whether marks settle that element i is right, or with *v that it is not;
 * false: it is to be compared. */
static bool settled_by_marks(const uint8_t *marks, size_t i, float got,
                             verdict *v)
{
    bool required = (marks[i] & (JUDGE_NAN | JUDGE_INF)) != 0;
    bool right = (marks[i] & JUDGE_NAN) ? isnan(got) : !isfinite(got);

    if (!required)
        return right; /* allowed, and so it is; else it must be the number */
    if (!right && v->ok)
        *v = (verdict){.rule = (marks[i] & JUDGE_NAN)
                                   ? "NaN, which reaches it"
                                   : "Inf or NaN, which reaches it",
                       .has_element = true,
                       .index = i,
                       .got = (double)got,
                       .expected = (marks[i] & JUDGE_NAN) ? NAN : INFINITY};
    return true;
}

bool judge_bound(const float *got, const expected *e, const tolerance *t,
                 const uint8_t *marks, verdict *out)
{
    verdict lost = {.ok = true};
    verdict v = {.ok = true, .rule = "within the bound of its element"};
    double worst = -1;

    for (size_t i = 0; i < e->count; ++i) {
        double value = e->value[i] * t->scale;
        double bound = e->spread[i] * t->scale * t->per_spread +
                       flush_of(e, i) * t->per_flush + least_normal;
        double ratio;

        if (is_marked(marks, i) && settled_by_marks(marks, i, got[i], &lost))
            continue;
        ratio = excess(fabs((double)got[i] - value), bound);
        if (ratio <= worst)
            continue;
        worst = ratio;
        v.ok = ratio <= 1;
        v.has_element = true;
        v.index = i;
        v.got = (double)got[i];
        v.expected = value;
        v.bound = bound;
    }
    *out = lost.ok ? v : lost;
    return out->ok;
}

/* ---- The whole ---------------------------------------------------------- */

bool judge_norm(const float *got, const expected *e, const tolerance *t,
                verdict *out)
{
    double error = 0, spread = 0, flush = 0;
    verdict v = {.rule = "within the bound of the Frobenius norm"};

    for (size_t i = 0; i < e->count; ++i) {
        double difference = (double)got[i] - e->value[i] * t->scale;

        error += difference * difference;
        spread += e->spread[i] * e->spread[i];
        flush += flush_of(e, i) * flush_of(e, i);
    }
    v.got = sqrt(error);
    v.bound = t->norm * t->scale * sqrt(spread) + t->norm_flush * sqrt(flush);
    /* Written so that NaN is not ok. */
    v.ok = v.got <= v.bound;
    *out = v;
    return v.ok;
}
