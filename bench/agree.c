/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "agree.h"

#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "reference.h"

/* Elements of each result that plain loops compute again. */
#define LOOP_SAMPLES 32
#define LOOP_SEED 2

/* ---- Norms -------------------------------------------------------------- */

typedef struct distance {
    double difference, size; /* sums of squares */
} distance;

static void add_element(distance *d, double value, double expected)
{
    d->difference += (value - expected) * (value - expected);
    d->size += expected * expected;
}

static double relative(distance d)
{
    return d.difference == 0 ? 0 : sqrt(d.difference / d.size);
}

double agree_error(const float *values, const float *expected, size_t count)
{
    distance d = {0, 0};

    for (size_t i = 0; i < count; ++i)
        add_element(&d, (double)values[i], (double)expected[i]);
    return relative(d);
}

/* fmax() would drop a NaN. */
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

double agree_results(const shape *z, const contender_results *results,
                     const contender_results *expected)
{
    double error = 0;

    if (expected->dw)
        error = larger(
            error, agree_error(results->dw, expected->dw, shape_w_count(z)));
    if (expected->db)
        error =
            larger(error, agree_error(results->db, expected->db, (size_t)z->k));
    if (expected->dx)
        error = larger(
            error, agree_error(results->dx, expected->dx, shape_x_count(z)));
    return error;
}

/* ---- Plain loops -------------------------------------------------------- */

/* NCHW copies of what the loops read, or NULL. */
typedef struct plain {
    float *x, *w, *dy, *dw, *dx;
} plain;

static void plain_free(plain *p)
{
    free(p->x);
    free(p->w);
    free(p->dy);
    free(p->dw);
    free(p->dx);
}

static bool plain_new(const bench_data *data, const contender_results *results,
                      plain *out)
{
    const shape *z = &data->z;
    size_t n = (size_t)z->n, c = (size_t)z->c, k = (size_t)z->k;
    size_t cg = (size_t)z->cg, taps = (size_t)(z->r * z->s);
    size_t in = (size_t)(z->h * z->w), out_pixels = (size_t)(z->p * z->q);
    clconv_layout from = data->layout;
    plain p = {.x = data_as_nchw(data->x, from, n, c, in),
               .w = data_as_nchw(data->w, from, k, cg, taps),
               .dy = data_as_nchw(data->dy, from, n, k, out_pixels)};
    bool ok = p.x && p.w && p.dy;

    if (results->dw) {
        p.dw = data_as_nchw(results->dw, from, k, cg, taps);
        ok = ok && p.dw;
    }
    if (results->dx) {
        p.dx = data_as_nchw(results->dx, from, n, c, in);
        ok = ok && p.dx;
    }
    if (!ok)
        plain_free(&p);
    else
        *out = p;
    return ok;
}

static double dw_error(const shape *z, const plain *p, random_source *random)
{
    distance d = {0, 0};

    for (int i = 0; i < LOOP_SAMPLES; ++i) {
        size_t at = (size_t)random_below(random, shape_w_count(z));

        add_element(&d, (double)p->dw[at],
                    reference_dw_element(z, p->x, p->dy, at, NULL));
    }
    return relative(d);
}

static double dx_error(const shape *z, const plain *p, random_source *random)
{
    distance d = {0, 0};

    for (int i = 0; i < LOOP_SAMPLES; ++i) {
        size_t at = (size_t)random_below(random, shape_x_count(z));

        add_element(&d, (double)p->dx[at],
                    reference_dx_element(z, p->w, p->dy, at, NULL));
    }
    return relative(d);
}

static double db_error(const shape *z, const plain *p, const float *db)
{
    double *expected = calloc((size_t)z->k, sizeof(*expected));
    distance d = {0, 0};

    if (!expected)
        return NAN;
    reference_db(z, p->dy, expected);
    for (int64_t k = 0; k < z->k; ++k)
        add_element(&d, (double)db[k], expected[k]);
    free(expected);
    return relative(d);
}

bool agree_with_loops(const bench_data *data, const contender_results *results,
                      double *error)
{
    random_source random = random_seeded(LOOP_SEED);
    double largest = 0;
    plain p;

    if (!plain_new(data, results, &p))
        return false;
    if (results->dw)
        largest = larger(dw_error(&data->z, &p, &random), largest);
    if (results->dx)
        largest = larger(dx_error(&data->z, &p, &random), largest);
    if (results->db)
        largest = larger(db_error(&data->z, &p, results->db), largest);
    plain_free(&p);
    *error = largest;
    return true;
}
