/*
 * Whether a result is right. A judge compares an output with what is expected
 * of it and names the worst element:
 *
 *     verdict v;
 *     if (!judge_bound(got, &expected, &tolerance, NULL, &v))
 *         printf("[%zu] got %g, expected %g", v.index, v.got, v.expected);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_JUDGE_H
#define CLCONV_CHECK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct verdict {
    bool ok;
    const char *rule; /* what was asked for */
    bool has_element; /* index, got and expected are of one element */
    size_t index;
    double got, expected, bound;
} verdict;

/*
 * What one output should be, an array element each:
 *   value   the result, sum of a*b, in fp64
 *   spread  sqrt(sum of a^2 b^2) over the same products
 *   flush   sqrt(sum of b^2), b being x for dw and w for dx; the same for
 *           many elements: that of element i stands at
 *           flush[i / flush_span * flush_block + i % flush_block].
 *           NULL where dy is not rounded
 */
typedef struct expected {
    size_t count;
    double *value;
    double *spread; /* 0 in data for exact comparison */
    double *flush;
    size_t flush_block, flush_span;
} expected;

/* What is allowed; judge.c says why. */
typedef struct tolerance {
    double scale;      /* value and spread count times this */
    double per_spread; /* of an element: this * spread */
    double per_flush;  /* ... plus this * flush */
    double norm;       /* of the whole: this * |spread| */
    double norm_flush; /* ... plus this * |flush| */
} tolerance;

/* depth: products in a sum at most; independent: the fewest elements that
 * one of the three tensors has; scale_log2: of the cast of dy. */
tolerance tolerance_mixed(double depth, size_t independent, int scale_log2);
tolerance tolerance_fp32(double depth, size_t independent);

/* Element for element the same number; -0 is 0, NaN is never right. */
bool judge_exact(const float *got, const double *values, size_t count,
                 verdict *out);

/* What non-finite inputs make of an output's elements; no flag: it must be
 * finite and right. */
enum {
    JUDGE_NAN = 1,    /* reached by a NaN: must be NaN */
    JUDGE_INF = 2,    /* reached by an Inf: must be Inf or NaN */
    JUDGE_ALLOWED = 4 /* meets one in the padding: either is right */
};

/* Every element within its bound. marks (may be NULL) are the flags above. */
bool judge_bound(const float *got, const expected *e, const tolerance *t,
                 const uint8_t *marks, verdict *out);

/* The whole output within t->norm, in the Frobenius norm. */
bool judge_norm(const float *got, const expected *e, const tolerance *t,
                verdict *out);

#endif
