/*
 * The expensive part is the reference: two gradients for the values, two of
 * the squared inputs for the spreads. sqrt(sum b^2), the flush term, is the
 * same for all filters of a group (dw), or for all images (dx): one filter a
 * group, with dy = 1, gives it at a fraction of the cost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "random.h"
#include "taps.h"

/* Random elements of each gradient that plain loops work out again. */
enum { SAMPLES = 24 };

/* ---- Memory ------------------------------------------------------------- */

static bool expected_new(size_t count, expected *out)
{
    *out = (expected){.count = count, .flush_span = 1, .flush_block = 1};
    out->value = calloc(count + 1, sizeof(double));
    out->spread = calloc(count + 1, sizeof(double));
    return out->value && out->spread;
}

static void expected_free(expected *e)
{
    free(e->value);
    free(e->spread);
    free(e->flush);
}

bool dataset_zeros(const shape *z, dataset *out)
{
    dataset data = {.z = *z};
    bool ok;

    data.x = calloc(shape_x_count(z) + 1, sizeof(float));
    data.w = calloc(shape_w_count(z) + 1, sizeof(float));
    data.dy = calloc(shape_dy_count(z) + 1, sizeof(float));
    ok = expected_new(shape_w_count(z), &data.dw);
    ok = expected_new((size_t)z->k, &data.db) && ok;
    ok = expected_new(shape_x_count(z), &data.dx) && ok;
    if (!ok || !data.x || !data.w || !data.dy) {
        message_error("out of memory");
        dataset_free(&data);
        return false;
    }
    *out = data;
    return true;
}

void dataset_free(dataset *data)
{
    free(data->x);
    free(data->w);
    free(data->dy);
    expected_free(&data->dw);
    expected_free(&data->db);
    expected_free(&data->dx);
    *data = (dataset){.x = NULL};
}

float *dataset_copy_floats(const float *values, size_t count)
{
    float *copy = malloc((count + 1) * sizeof(*copy));

    if (copy)
        memcpy(copy, values, count * sizeof(*copy));
    else
        message_error("out of memory");
    return copy;
}

/* ---- Values ------------------------------------------------------------- */

static bool find_values(reference *ref, dataset *data, random_source *random)
{
    const shape *z = &data->z;

    reference_db(z, data->dy, data->db.value);
    return reference_dw(ref, z, data->x, data->dy, data->dw.value) &&
           reference_dx(ref, z, data->w, data->dy, data->dx.value) &&
           reference_agrees_dw(z, data->x, data->dy, data->dw.value, SAMPLES,
                               random) &&
           reference_agrees_dx(z, data->w, data->dy, data->dx.value, SAMPLES,
                               random);
}

/* ---- Integers ----------------------------------------------------------- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int dataset_integer_magnitude(const shape *z)
{
    double depth = larger(shape_dw_depth(z), shape_dx_depth(z));
    int magnitude = 8;

    while (magnitude > 0 &&
           depth * magnitude * magnitude + 4 * DATASET_MAX_OLD >= 0x1p24)
        --magnitude;
    return magnitude;
}

bool dataset_integers(reference *ref, const shape *z, uint64_t seed,
                      dataset *out)
{
    random_source random = random_seeded(seed);
    int magnitude = dataset_integer_magnitude(z);
    dataset data;

    if (magnitude < 1 || !dataset_zeros(z, &data))
        return false;
    random_fill_integers(&random, magnitude, shape_x_count(z), data.x);
    random_fill_integers(&random, magnitude, shape_w_count(z), data.w);
    random_fill_integers(&random, magnitude, shape_dy_count(z), data.dy);
    if (!find_values(ref, &data, &random)) {
        dataset_free(&data);
        return false;
    }
    *out = data;
    return true;
}

/* ---- Spreads ------------------------------------------------------------ */

static float *new_floats(size_t count)
{
    float *out = calloc(count + 1, sizeof(*out));

    if (!out)
        message_error("out of memory");
    return out;
}

static double *new_doubles(size_t count)
{
    double *out = calloc(count + 1, sizeof(*out));

    if (!out)
        message_error("out of memory");
    return out;
}

static float *squares(const float *values, size_t count)
{
    float *out = new_floats(count);

    for (size_t i = 0; out && i < count; ++i)
        out[i] = values[i] * values[i];
    return out;
}

static void take_roots(double *values, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        values[i] = sqrt(values[i]);
}

/* Of dw and dx from the squared inputs, of db from those of dy alone. */
static bool find_spreads(reference *ref, dataset *data)
{
    const shape *z = &data->z;
    float *x = squares(data->x, shape_x_count(z));
    float *w = squares(data->w, shape_w_count(z));
    float *dy = squares(data->dy, shape_dy_count(z));
    bool ok = x && w && dy && reference_dw(ref, z, x, dy, data->dw.spread) &&
              reference_dx(ref, z, w, dy, data->dx.spread);

    if (ok) {
        reference_db(z, dy, data->db.spread);
        take_roots(data->dw.spread, data->dw.count);
        take_roots(data->db.spread, data->db.count);
        take_roots(data->dx.spread, data->dx.count);
    }
    free(x);
    free(w);
    free(dy);
    return ok;
}

/* ---- Flush terms -------------------------------------------------------- */

/* The same problem with one filter a group. */
static shape one_filter_a_group(const shape *z)
{
    shape one = *z;

    one.k = z->groups;
    one.kg = 1;
    return one;
}

static float *ones(size_t count)
{
    float *out = new_floats(count);

    for (size_t i = 0; out && i < count; ++i)
        out[i] = 1;
    return out;
}

/* out is [group][cg][r][s], 0 before: the sum of w^2 over the filters of the
 * group. */
static void sum_filters(const shape *z, const float *w, float *out)
{
    size_t block = (size_t)(z->cg * z->r * z->s);

    for (int64_t k = 0; k < z->k; ++k) {
        float *to = out + (size_t)(k / z->kg) * block;

        for (size_t i = 0; i < block; ++i, ++w)
            to[i] += *w * *w;
    }
}

/* dw: one block [cg][r][s] serves the kg filters of a group. */
static bool find_dw_flush(reference *ref, dataset *data)
{
    shape one = one_filter_a_group(&data->z);
    float *x = squares(data->x, shape_x_count(&one));
    float *dy = ones(shape_dy_count(&one));
    size_t count = shape_w_count(&one);
    expected *e = &data->dw;
    bool ok;

    e->flush_block = (size_t)(one.cg * one.r * one.s);
    e->flush_span = e->flush_block * (size_t)data->z.kg;
    e->flush = new_doubles(count);
    ok = x && dy && e->flush && reference_dw(ref, &one, x, dy, e->flush);
    if (ok)
        take_roots(e->flush, count);
    free(x);
    free(dy);
    return ok;
}

/* dx: one image serves all. */
static bool find_dx_flush(reference *ref, dataset *data)
{
    shape one = one_filter_a_group(&data->z);
    float *w = new_floats(shape_w_count(&one));
    expected *e = &data->dx;
    float *dy;
    bool ok;

    one.n = 1;
    dy = ones(shape_dy_count(&one));
    e->flush_block = shape_x_count(&one);
    e->flush_span = e->count > e->flush_block ? e->count : e->flush_block;
    e->flush = new_doubles(e->flush_block);
    ok = w && dy && e->flush;
    if (ok) {
        sum_filters(&data->z, data->w, w);
        ok = reference_dx(ref, &one, w, dy, e->flush);
        take_roots(e->flush, e->flush_block);
    }
    free(w);
    free(dy);
    return ok;
}

bool dataset_evaluate(reference *ref, dataset *data, random_source *random)
{
    return find_values(ref, data, random) && find_spreads(ref, data) &&
           find_dw_flush(ref, data) && find_dx_flush(ref, data);
}

bool dataset_normal(reference *ref, const shape *z, uint64_t seed, dataset *out)
{
    random_source random = random_seeded(seed);
    dataset data;

    if (!dataset_zeros(z, &data))
        return false;
    random_fill_normal(&random, shape_x_count(z), data.x);
    random_fill_normal(&random, shape_w_count(z), data.w);
    random_fill_normal(&random, shape_dy_count(z), data.dy);
    if (!dataset_evaluate(ref, &data, &random)) {
        dataset_free(&data);
        return false;
    }
    *out = data;
    return true;
}

/* ---- Sparse dy ---------------------------------------------------------- */

/* What one product's other factor is multiplied by, and where it goes. */
typedef struct addition {
    double dy;
    const float *other;
    double *values;
} addition;

static void visit_product(void *user, size_t output, size_t other)
{
    const addition *a = user;

    if (other != TAPS_PADDING)
        a->values[output] += a->dy * (double)a->other[other];
}

void dataset_put_dy(dataset *data, size_t index, float value, float raw)
{
    const shape *z = &data->z;
    size_t k = index / (size_t)(z->p * z->q) % (size_t)z->k;

    data->dy[index] = value;
    data->db.value[k] += (double)raw;
    taps_dy_to_dw(z, index, visit_product,
                  &(addition){(double)value, data->x, data->dw.value});
    taps_dy_to_dx(z, index, visit_product,
                  &(addition){(double)value, data->w, data->dx.value});
}
