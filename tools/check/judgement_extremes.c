/*
 * Values beyond fp16's range and below it, among normal data: saturated or
 * lost as the cast says, and counted. And ties of the cast, which go to even:
 * exactly equal. The reference takes what the cast makes of such inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "judgements.h"
#include "random.h"

enum { MAX_PLACES = 8 };

/* ---- What is given, and what is right ----------------------------------- */

/* Inputs for the library; right has what they count for. */
typedef struct edge_data {
    float *x, *w, *dy;
    dataset right;
} edge_data;

static void edge_data_free(edge_data *e)
{
    free(e->x);
    free(e->w);
    free(e->dy);
    dataset_free(&e->right);
}

/* Takes *right: its inputs are what is given, for now. */
static bool edge_data_from(const dataset *right, edge_data *out)
{
    edge_data e = {
        .x = dataset_copy_floats(right->x, shape_x_count(&right->z)),
        .w = dataset_copy_floats(right->w, shape_w_count(&right->z)),
        .dy = dataset_copy_floats(right->dy, shape_dy_count(&right->z)),
        .right = *right};

    if (!e.x || !e.w || !e.dy) {
        edge_data_free(&e);
        return false;
    }
    *out = e;
    return true;
}

/* Distinct indices below count; returns how many, at most MAX_PLACES. */
static size_t choose_places(size_t count, random_source *random, size_t *out)
{
    size_t wanted = count < MAX_PLACES ? count : MAX_PLACES;
    size_t first = (size_t)random_below(random, count);
    size_t step = count / MAX_PLACES > 0 ? count / MAX_PLACES : 1;

    for (size_t i = 0; i < wanted; ++i)
        out[i] = (first + i * step) % count;
    return wanted;
}

/* What is multiplied in place of value. */
static float factor(clconv_math math, float value, int scale_log2)
{
    return math == CLCONV_MIXED ? counts_cast(value, scale_log2) : value;
}

/* ---- Beyond the range --------------------------------------------------- */

/* fp16 holds dy up to 63.97 and down to 3e-11 at the default scale. */
static const float mixed_dy[MAX_PLACES] = {
    4e35F, -100.0F, 0x1.ffcp5F, -4e35F, 1e-13F, 0x1p-30F, -0.0F, 1e-40F};
/* fp32 saturates nothing, if these do not overflow its products. */
static const float fp32_dy[MAX_PLACES] = {4e15F,  -100.0F,  0x1.ffcp5F, -4e15F,
                                          1e-13F, 0x1p-30F, -0.0F,      1e-10F};
static const float extreme_x[MAX_PLACES] = {
    1e6F, -7e4F, 0.0F, 0x1p-20F, 0x1p-40F, -65504.0F, 6e-8F, 8e4F};

/* Some of given become values, and of right what the cast makes of them. */
static void replace(clconv_math math, int scale_log2, const float *values,
                    size_t count, random_source *random, float *given,
                    float *right)
{
    size_t places[MAX_PLACES];
    size_t n = choose_places(count, random, places);

    for (size_t i = 0; i < n; ++i) {
        given[places[i]] = values[i];
        right[places[i]] = factor(math, values[i], scale_log2);
    }
}

static void replace_all(const row *r, clconv_math math, random_source *random,
                        edge_data *e)
{
    const shape *z = &r->z;

    replace(math, r->scale_log2, math == CLCONV_MIXED ? mixed_dy : fp32_dy,
            shape_dy_count(z), random, e->dy, e->right.dy);
    replace(math, 0, extreme_x, shape_x_count(z), random, e->x, e->right.x);
    replace(math, 0, extreme_x, shape_w_count(z), random, e->w, e->right.w);
}

/* Inputs as in normal. */
static bool edge_data_copy(const dataset *normal, edge_data *out)
{
    const shape *z = &normal->z;
    dataset right;

    if (!dataset_zeros(z, &right))
        return false;
    memcpy(right.x, normal->x, shape_x_count(z) * sizeof(float));
    memcpy(right.w, normal->w, shape_w_count(z) * sizeof(float));
    memcpy(right.dy, normal->dy, shape_dy_count(z) * sizeof(float));
    return edge_data_from(&right, out);
}

/* sqrt(sum dy^2), in fp64 throughout: dy may be 4e35. */
static void find_bias_spread(const shape *z, const float *dy, double *spread)
{
    int64_t area = z->p * z->q;

    for (int64_t k = 0; k < z->k; ++k) {
        double sum = 0;

        for (int64_t i = 0; i < z->n * area; ++i) {
            int64_t n = i / area;
            double v = (double)dy[(n * z->k + k) * area + i % area];

            sum += v * v;
        }
        spread[k] = sqrt(sum);
    }
}

static bool extremes_new(row *r, const dataset *normal, clconv_math math,
                         edge_data *out)
{
    random_source random = random_seeded(r->seed + 4);
    edge_data e;

    if (!edge_data_copy(normal, &e))
        return false;
    replace_all(r, math, &random, &e);
    if (!dataset_evaluate(r->ref, &e.right, &random)) {
        edge_data_free(&e);
        return false;
    }
    /* db sums dy as it was given. */
    reference_db(&r->z, e.dy, e.right.db.value);
    find_bias_spread(&r->z, e.dy, e.right.db.spread);
    *out = e;
    return true;
}

static void judge_near(const occasion *o, const outputs *got, const void *right)
{
    tolerances t = row_tolerances(o->check, o->check->setup.desc.scale_log2);

    row_judge(o, got, right, &t, NULL);
}

static bool judge_extremes(row *r, const dataset *normal, clconv_math math)
{
    edge_data e;

    if (!extremes_new(r, normal, math, &e))
        return false;
    row_each_check(r, 1U << math, "edges, beyond the range of fp16",
                   &(run_inputs){.x = e.x, .w = e.w, .dy = e.dy}, judge_near,
                   &e.right);
    edge_data_free(&e);
    return true;
}

/* ---- Ties --------------------------------------------------------------- */

/* Halfway between two fp16 values: 1 + 2^-11 goes down to 1, 1 + 3 * 2^-11 up
 * to 1 + 2^-9. */
static const float ties[MAX_PLACES] = {0x1.002p0F,  0x1.006p0F, -0x1.002p0F,
                                       -0x1.006p0F, 0x1.006p0F, -0x1.002p0F,
                                       0x1.002p0F,  -0x1.006p0F};
static const float signs[MAX_PLACES] = {1, -1, 1, 1, -1, -1, 1, -1};

static void fill_ties(random_source *random, size_t count, float *out)
{
    for (size_t i = 0; i < count; ++i)
        out[i] = ties[random_bits(random) >> 61];
}

static void cast_all(clconv_math math, float *values, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        values[i] = factor(math, values[i], 0);
}

/* dy is 0 but for a few elements, so that no sum has more digits than fp32:
 * at most MAX_PLACES products of multiples of 2^-9 up to 1.01 (mixed), or of
 * multiples of 2^-11 by 1 (fp32). */
static void put_dy(clconv_math math, int scale_log2, random_source *random,
                   edge_data *e)
{
    const float *values = math == CLCONV_MIXED ? ties : signs;
    size_t places[MAX_PLACES];
    size_t n = choose_places(shape_dy_count(&e->right.z), random, places);

    for (size_t i = 0; i < n; ++i) {
        e->dy[places[i]] = values[i];
        dataset_put_dy(&e->right, places[i],
                       factor(math, values[i], scale_log2), values[i]);
    }
}

static bool ties_new(const row *r, clconv_math math, edge_data *out)
{
    const shape *z = &r->z;
    random_source random = random_seeded(r->seed + 5);
    dataset right;
    edge_data e;

    if (!dataset_zeros(z, &right))
        return false;
    fill_ties(&random, shape_x_count(z), right.x);
    fill_ties(&random, shape_w_count(z), right.w);
    if (!edge_data_from(&right, &e))
        return false;
    cast_all(math, e.right.x, shape_x_count(z));
    cast_all(math, e.right.w, shape_w_count(z));
    put_dy(math, r->scale_log2, &random, &e);
    *out = e;
    return true;
}

static void judge_equal(const occasion *o, const outputs *got, const void *right)
{
    row_judge_exact(o, got, right);
}

static bool judge_ties(row *r, clconv_math math)
{
    edge_data e;

    if (!ties_new(r, math, &e))
        return false;
    row_each_check(r, 1U << math, "edges, ties",
                   &(run_inputs){.x = e.x, .w = e.w, .dy = e.dy}, judge_equal,
                   &e.right);
    edge_data_free(&e);
    return true;
}

/* ---- The whole ---------------------------------------------------------- */

bool judgement_extremes(row *r, const dataset *normal)
{
    for (unsigned math = CLCONV_MIXED; math <= CLCONV_FP32; ++math) {
        if (!(r->maths & (1U << math)))
            continue;
        if (!judge_extremes(r, normal, (clconv_math)math) ||
            !judge_ties(r, (clconv_math)math))
            return false;
    }
    return true;
}
