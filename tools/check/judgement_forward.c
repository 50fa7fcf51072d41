/*
 * The forward convolution: whole numbers, exactly, as described and in one of
 * the unusual ways below; normal data within bounds; a NaN and an Inf in x,
 * which must reach what a tap takes them to, and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "judgements.h"
#include "message.h"
#include "random.h"

/* ---- Data --------------------------------------------------------------- */

typedef struct forward_data {
    float *x, *w, *b;
    float *old;
    expected y; /* of x and w, without b */
} forward_data;

static void data_free(forward_data *data)
{
    free(data->x);
    free(data->w);
    free(data->b);
    free(data->old);
    free(data->y.value);
    free(data->y.spread);
}

static bool data_new(const shape *z, forward_data *out)
{
    size_t count = shape_dy_count(z);
    forward_data data = {.y = {.count = count}};

    data.x = calloc(shape_x_count(z) + 1, sizeof(*data.x));
    data.w = calloc(shape_w_count(z) + 1, sizeof(*data.w));
    data.b = calloc((size_t)z->k, sizeof(*data.b));
    data.old = calloc(count + 1, sizeof(*data.old));
    data.y.value = calloc(count + 1, sizeof(*data.y.value));
    data.y.spread = calloc(count + 1, sizeof(*data.y.spread));
    if (!data.x || !data.w || !data.b || !data.old || !data.y.value ||
        !data.y.spread) {
        message_error("out of memory");
        data_free(&data);
        return false;
    }
    *out = data;
    return true;
}

static double depth_of(const shape *z)
{
    return (double)(z->cg * z->r * z->s);
}

/* So large that sums stay exact in fp32, on top of them b and beta * old; 0:
 * none is. */
static int integer_magnitude(const shape *z)
{
    int magnitude = 8;

    while (magnitude > 0 &&
           depth_of(z) * magnitude * magnitude + 4 * DATASET_MAX_OLD >= 0x1p24)
        --magnitude;
    return magnitude;
}

static bool integer_data(const row *r, forward_data *out)
{
    random_source random = random_seeded(r->seed);
    int magnitude = integer_magnitude(&r->z);

    if (!data_new(&r->z, out))
        return false;
    random_fill_integers(&random, magnitude, shape_x_count(&r->z), out->x);
    random_fill_integers(&random, magnitude, shape_w_count(&r->z), out->w);
    random_fill_integers(&random, DATASET_MAX_OLD, (size_t)r->z.k, out->b);
    random_fill_integers(&random, DATASET_MAX_OLD, out->y.count, out->old);
    reference_y(&r->z, out->x, out->w, out->y.value);
    return true;
}

static void square(float *values, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        values[i] *= values[i];
}

/* sqrt(sum of x^2 w^2). */
static bool find_spread(const shape *z, forward_data *data)
{
    size_t x_count = shape_x_count(z), w_count = shape_w_count(z);
    float *x = dataset_copy_floats(data->x, x_count);
    float *w = dataset_copy_floats(data->w, w_count);

    if (x && w) {
        square(x, x_count);
        square(w, w_count);
        reference_y(z, x, w, data->y.spread);
        for (size_t i = 0; i < data->y.count; ++i)
            data->y.spread[i] = sqrt(data->y.spread[i]);
    }
    free(x);
    free(w);
    return x && w;
}

static bool normal_data(const row *r, forward_data *out)
{
    random_source random = random_seeded(r->seed);

    if (!data_new(&r->z, out))
        return false;
    random_fill_normal(&random, shape_x_count(&r->z), out->x);
    random_fill_normal(&random, shape_w_count(&r->z), out->w);
    reference_y(&r->z, out->x, out->w, out->y.value);
    if (find_spread(&r->z, out))
        return true;
    data_free(out);
    return false;
}

/* ---- Integers ----------------------------------------------------------- */

/* One way to call; fp16: bits of the tensors that are. */
enum { FP16_X = 1, FP16_W = 2, FP16_Y = 4, FP16_B = 8 };

typedef struct way {
    const char *name;
    bool bias, relu, out_of_order;
    float beta;
    unsigned fp16;
    size_t alignment; /* also the offset; 0: as described */
    int64_t extra_images;
} way;

static const way plain = {.name = "integers"};

static const way ways[] = {
    {.name = "integers, bias and ReLU", .bias = true, .relu = true},
    {.name = "integers, beta, fewer images than described",
     .beta = -2,
     .extra_images = 1},
    {.name = "integers, fp16 y with bias, out-of-order queue",
     .bias = true,
     .out_of_order = true,
     .fp16 = FP16_Y},
    {.name = "integers, fp16 x and w, beta and ReLU",
     .relu = true,
     .beta = 1,
     .fp16 = FP16_X | FP16_W},
    {.name = "integers, all fp16 at an offset of 2 bytes, all in the epilogue",
     .bias = true,
     .relu = true,
     .beta = 2,
     .fp16 = FP16_X | FP16_W | FP16_Y | FP16_B,
     .alignment = 2},
    {.name = "integers, offsets of 4 bytes, bias",
     .bias = true,
     .fp16 = FP16_W,
     .alignment = 4},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static clconv_type type_of(const way *v, unsigned tensor)
{
    return v->fp16 & tensor ? CLCONV_F16 : CLCONV_F32;
}

static void set_types(const way *v, clconv_desc *d)
{
    d->x_type = type_of(v, FP16_X);
    d->w_type = type_of(v, FP16_W);
    d->y_type = type_of(v, FP16_Y);
    d->b_type = type_of(v, FP16_B);
    if (v->alignment != 2)
        return;
    /* So small an alignment is for descriptions of fp16 alone. */
    d->dy_type = d->dw_type = d->db_type = d->dx_type = CLCONV_F16;
}

static run_setup way_apply(const way *v, const run_setup *described)
{
    run_setup setup = *described;

    set_types(v, &setup.desc);
    setup.desc.n += v->extra_images;
    setup.desc.activation = v->relu ? CLCONV_RELU : CLCONV_IDENTITY;
    if (v->alignment > 0)
        setup.desc.alignment = setup.offset = v->alignment;
    setup.beta_y = v->beta;
    setup.out_of_order = v->out_of_order;
    return setup;
}

/* What is to be stored, before it is rounded: exact. */
static double *expected_of(const way *v, const shape *z,
                           const forward_data *data)
{
    double *values = malloc((data->y.count + 1) * sizeof(*values));
    size_t area = (size_t)(z->p * z->q);

    for (size_t i = 0; values && i < data->y.count; ++i) {
        values[i] = data->y.value[i] + (double)v->beta * (double)data->old[i];
        if (v->bias)
            values[i] += (double)data->b[i / area % (size_t)z->k];
        if (v->relu && values[i] < 0)
            values[i] = 0;
    }
    return values;
}

static void judge_counts(const occasion *o, const outputs *got,
                         const double *values, size_t count)
{
    clconv_counts right = counts_of_output(values, count);
    double a, b;
    const char *field = counts_difference(&got->report.y, &right, &a, &b);

    if (field)
        row_fail(o, "report.y.%s is %.0f, expected %.0f", field, a, b);
}

static void judge_way(const occasion *o, const way *v, const outputs *got,
                      const forward_data *data)
{
    double *values = expected_of(v, &o->row->z, data);
    verdict found;

    if (!values) {
        row_fail(o, "out of memory");
        return;
    }
    if (v->fp16 & FP16_Y) {
        judge_counts(o, got, values, data->y.count);
        for (size_t i = 0; i < data->y.count; ++i)
            values[i] = (double)counts_cast((float)values[i], 0);
    }
    if (!judge_exact(got->y, values, data->y.count, &found))
        row_fail_verdict(o, "y", &found);
    free(values);
    row_passed(o->check);
}

static void call_way(const occasion *o, clconv_plan *plan, const way *v,
                     const forward_data *data)
{
    const run_inputs in = {.x = data->x,
                           .w = data->w,
                           .b = v->bias ? data->b : NULL,
                           .old_y = v->beta != 0 ? data->old : NULL};
    outputs got;

    if (!row_call(o, plan, &in, &got))
        return;
    judge_way(o, v, &got, data);
    row_judge_inputs(o, &got.report, &in);
    outputs_free(&got);
}

static void try_way(row *r, check *c, const way *v, const forward_data *data)
{
    run_setup setup = way_apply(v, &c->setup);
    occasion o = {.row = r, .check = c, .setup = &setup, .judgement = v->name};
    clconv_plan *plan = NULL;
    run_result result = runner_plan(r->runner, &setup, &plan);

    o.plan = plan;
    if (result == RUN_OK)
        call_way(&o, plan, v, data);
    else if (result == RUN_FAILED || !r->options->plan)
        row_fail(&o, "%s", r->runner->error);
    clconv_plan_release(plan);
}

/* Neighbouring checks of a row are tried in different ways. */
static bool judge_integers(row *r)
{
    forward_data data;

    if (integer_magnitude(&r->z) == 0) {
        message_warning("%s: sums are too long for the integers judgement",
                        r->name);
        return true;
    }
    if (!integer_data(r, &data))
        return false;
    for (int i = 0; i < r->check_count; ++i) {
        check *c = &r->checks[i];

        if (!c->plan)
            continue;
        try_way(r, c, &plain, &data);
        try_way(r, c, &ways[(r->seed + (uint64_t)i) % WAYS], &data);
    }
    data_free(&data);
    return true;
}

/* ---- Normal data -------------------------------------------------------- */

static tolerance tolerance_of(const check *c)
{
    const shape *z = &c->setup.z;
    size_t x = shape_x_count(z), w = shape_w_count(z);
    size_t independent = x < w ? x : w;

    return c->setup.desc.math == CLCONV_MIXED
               ? tolerance_mixed(depth_of(z), independent, 0)
               : tolerance_fp32(depth_of(z), independent);
}

static void judge_normal(const occasion *o, const outputs *got, const void *user)
{
    const forward_data *data = user;
    tolerance t = tolerance_of(o->check);
    verdict v;

    if (!judge_bound(got->y, &data->y, &t, NULL, &v))
        row_fail_verdict(o, "y", &v);
    if (!judge_norm(got->y, &data->y, &t, &v))
        row_fail_verdict(o, "y", &v);
    row_passed(o->check);
}

/* ---- NaN and Inf -------------------------------------------------------- */

typedef struct edges {
    const forward_data *data;
    uint8_t *mark; /* of y */
} edges;

static void judge_edges(const occasion *o, const outputs *got, const void *user)
{
    const edges *e = user;
    tolerance t = tolerance_of(o->check);
    verdict v;

    if (!judge_bound(got->y, &e->data->y, &t, e->mark, &v))
        row_fail_verdict(o, "y", &v);
    row_passed(o->check);
}

/* Marks the elements of y that a tap takes element index of x to. */
static bool mark_reached(const shape *z, size_t index, uint8_t flag,
                         uint8_t *mark)
{
    size_t w_count = shape_w_count(z), y_count = shape_dy_count(z);
    float *x = calloc(shape_x_count(z), sizeof(*x));
    float *w = malloc(w_count * sizeof(*w));
    double *y = malloc((y_count + 1) * sizeof(*y));
    bool ok = x && w && y;

    if (ok) {
        x[index] = 1;
        for (size_t i = 0; i < w_count; ++i)
            w[i] = 1;
        reference_y(z, x, w, y);
        for (size_t i = 0; i < y_count; ++i)
            mark[i] |= y[i] > 0 ? flag : 0;
    }
    free(x);
    free(w);
    free(y);
    return ok;
}

/* x[nan] becomes NaN and x[inf] Inf; an element that both reach is NaN. */
static bool place_edges(row *r, const forward_data *data, size_t nan,
                        size_t inf, float *x)
{
    uint8_t *mark = calloc(data->y.count + 1, 1);
    const edges e = {.data = data, .mark = mark};
    bool ok = mark && mark_reached(&r->z, inf, JUDGE_INF, mark) &&
              mark_reached(&r->z, nan, JUDGE_NAN, mark);

    for (size_t i = 0; ok && i < data->y.count; ++i)
        if (mark[i] & JUDGE_NAN)
            mark[i] = JUDGE_NAN;
    if (ok) {
        x[inf] = INFINITY;
        x[nan] = NAN;
        row_each_check(r, ROW_ALL_MATHS, "edges",
                       &(run_inputs){.x = x, .w = data->w}, judge_edges, &e);
    } else {
        message_error("out of memory");
    }
    free(mark);
    return ok;
}

static bool judge_nonfinite(row *r, const forward_data *data)
{
    random_source random = random_seeded(r->seed + 2);
    size_t count = shape_x_count(&r->z);
    size_t nan = (size_t)random_below(&random, count);
    size_t inf = (size_t)random_below(&random, count);
    float *x = dataset_copy_floats(data->x, count);
    bool ok = x && place_edges(r, data, nan, inf, x);

    free(x);
    return ok;
}

/* ---- The whole ---------------------------------------------------------- */

static bool judge_normal_data(row *r)
{
    unsigned wanted = r->options->judgements;
    forward_data data;
    bool ok = true;

    if (!(wanted & (JUDGEMENT_RANDOM | JUDGEMENT_EDGES)) || r->z.n == 0)
        return true;
    if (!normal_data(r, &data))
        return false;
    if (wanted & JUDGEMENT_RANDOM)
        row_each_check(r, ROW_ALL_MATHS, "random",
                       &(run_inputs){.x = data.x, .w = data.w}, judge_normal,
                       &data);
    if (wanted & JUDGEMENT_EDGES)
        ok = judge_nonfinite(r, &data);
    data_free(&data);
    return ok;
}

bool judgement_forward(row *r)
{
    if ((r->options->judgements & JUDGEMENT_INTEGERS) && !judge_integers(r))
        return false;
    return judge_normal_data(r);
}
