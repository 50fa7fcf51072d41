/*
 * Whole numbers, small enough that fp16 holds them and fp32 holds every sum
 * of their products: the result must be exactly that of the reference,
 * whatever the order of the additions. Finds every fault of indexing.
 *
 * Each check is made twice: as described, on poisoned outputs; and in one of
 * the unusual ways of variant.c. Which one depends on the row's name, so that
 * a row repeats and a file of rows covers all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "counts.h"
#include "judgements.h"
#include "random.h"
#include "variant.h"

/* ---- As described ------------------------------------------------------- */

static void judge_plain(const occasion *o, const outputs *got, const void *data)
{
    row_judge_exact(o, got, data);
}

/* ---- What a variant should give ----------------------------------------- */

/* Contents of the outputs before the call, where a beta keeps them. */
typedef struct old_outputs {
    float *dw, *db, *dx;
} old_outputs;

static float *old_values(float beta, size_t count, random_source *random)
{
    float *values;

    if (beta == 0)
        return NULL; /* poison, which must not be read */
    values = malloc((count + 1) * sizeof(*values));
    if (values)
        random_fill_integers(random, DATASET_MAX_OLD, count, values);
    return values;
}

static old_outputs old_outputs_new(const run_setup *setup, random_source *random)
{
    return (old_outputs){
        .dw = old_values(setup->beta_w, shape_w_count(&setup->z), random),
        .db = old_values(setup->beta_b, (size_t)setup->z.k, random),
        .dx = old_values(setup->beta_x, shape_x_count(&setup->z), random)};
}

static void old_outputs_free(old_outputs *old)
{
    free(old->dw);
    free(old->db);
    free(old->dx);
}

/* What is stored as fp16: saturated, to nearest, ties to even. */
static double as_stored(double value, clconv_type type)
{
    if (type == CLCONV_F32)
        return value;
    return (double)counts_cast((float)value, 0);
}

/* One output of a call: stored = beta * old + gradient * 2^exponent. */
typedef struct stored_output {
    const char *name;
    const float *got;
    const expected *gradient;
    int exponent;
    float beta;
    const float *old;
    clconv_type type;
    const clconv_counts *counts;
} stored_output;

/* What is to be stored, before it is rounded: exact. */
static double *combine(const stored_output *s)
{
    size_t count = s->gradient->count;
    double *values = malloc((count + 1) * sizeof(*values));

    for (size_t i = 0; values && i < count; ++i)
        values[i] = ldexp(s->gradient->value[i], s->exponent) +
                    (s->old ? (double)s->beta * (double)s->old[i] : 0);
    return values;
}

/* ---- Comparing a variant ------------------------------------------------ */

static void judge_counts(const occasion *o, const stored_output *s,
                         const double *values)
{
    clconv_counts right = counts_of_output(values, s->gradient->count);
    double a, b;
    const char *field = counts_difference(s->counts, &right, &a, &b);

    if (field)
        row_fail(o, "report.%s.%s is %.0f, expected %.0f", s->name, field, a, b);
}

/* Exact, and counted if it is fp16. */
static void judge_output(const occasion *o, const stored_output *s)
{
    double *values = s->got ? combine(s) : NULL;
    size_t count = s->gradient->count;
    verdict v;

    if (!s->got)
        return;
    if (!values) {
        row_fail(o, "out of memory");
        return;
    }
    if (s->type == CLCONV_F16)
        judge_counts(o, s, values);
    for (size_t i = 0; i < count; ++i)
        values[i] = as_stored(values[i], s->type);
    if (!judge_exact(s->got, values, count, &v))
        row_fail_verdict(o, s->name, &v);
    free(values);
}

static void judge_outputs(const occasion *o, const outputs *got,
                          const dataset *data, const old_outputs *old)
{
    const run_setup *s = o->setup;
    const clconv_desc *d = &s->desc;
    const clconv_report *counts = &got->report;
    const stored_output stored[] = {
        {"dw", got->dw, &data->dw, -d->dy_log2, s->beta_w, old->dw, d->dw_type,
         &counts->dw},
        {"db", got->db, &data->db, -d->dy_log2, s->beta_b, old->db, d->db_type,
         &counts->db},
        {"dx", got->dx, &data->dx, d->dx_log2 - d->dy_log2, s->beta_x, old->dx,
         d->dx_type, &counts->dx},
    };

    for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); ++i)
        judge_output(o, &stored[i]);
}

/* ---- A variant ---------------------------------------------------------- */

static void call_variant(const occasion *o, clconv_plan *plan,
                         const dataset *data, random_source *random)
{
    old_outputs old = old_outputs_new(o->setup, random);
    const run_inputs in = {.x = data->x,
                           .w = data->w,
                           .dy = data->dy,
                           .old_dw = old.dw,
                           .old_db = old.db,
                           .old_dx = old.dx};
    outputs got;

    if (row_call(o, plan, &in, &got)) {
        judge_outputs(o, &got, data, &old);
        row_judge_inputs(o, &got.report, &in);
        outputs_free(&got);
    }
    old_outputs_free(&old);
}

static void judge_variant(row *r, check *c, const variant *v,
                          const dataset *data)
{
    run_setup setup = variant_apply(v, &c->setup);
    occasion o = {.row = r, .check = c, .setup = &setup};
    random_source random = random_seeded(r->seed + 1);
    clconv_plan *plan = NULL;
    run_result result = runner_plan(r->runner, &setup, &plan);
    char judgement[128];

    snprintf(judgement, sizeof(judgement), "integers, %s", v->name);
    o.judgement = judgement;
    o.plan = plan;
    if (result == RUN_OK)
        call_variant(&o, plan, data, &random);
    else if (result == RUN_FAILED || !r->options->plan)
        row_fail(&o, "%s", r->runner->error);
    clconv_plan_release(plan);
}

/* Neighbouring checks of a row get different variants. */
static const variant *choose_variant(const row *r, int check_index)
{
    return variant_get((r->seed + (uint64_t)check_index) % variant_count());
}

bool judgement_integers(row *r)
{
    dataset data;

    if (!dataset_integers(r->ref, &r->z, r->seed, &data))
        return false;
    row_each_check(r, ROW_ALL_MATHS, "integers",
                   &(run_inputs){.x = data.x, .w = data.w, .dy = data.dy},
                   judge_plain, &data);
    for (int i = 0; i < r->check_count; ++i) {
        check *c = &r->checks[i];

        if (c->plan)
            judge_variant(r, c, choose_variant(r, i), &data);
    }
    dataset_free(&data);
    return true;
}
