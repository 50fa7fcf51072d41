/*
 * Each check makes one plan and calls it with one set of data after another.
 *
 * What only padding connects is taken from taps.h, whose indices are those of
 * NCHW; all else is in the layout of the description.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "family.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "counts.h"
#include "family_data.h"
#include "family_run.h"
#include "taps.h"

static const float no_beta[FAMILY_TENSORS] = {0};

typedef struct trial {
    family_data data;
    family_run run;
} trial;

static void open_desc(const family *f, const clconv_desc *desc, trial *t)
{
    family_data_new(desc, &t->data);
    family_run_open(f, desc, &t->run);
}

static void open_problem(const family *f, const char *problem, trial *t)
{
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    open_desc(f, &desc, t);
}

static void close_trial(trial *t)
{
    family_run_close(&t->run);
    family_data_free(&t->data);
}

static void call(trial *t, int64_t batch, const float beta[FAMILY_TENSORS])
{
    family_data_compute(&t->data, batch);
    family_run_call(&t->run, &t->data, batch, beta);
}

/* ---- Values ------------------------------------------------------------- */

/* got is want, be it NaN. */
static bool same(float got, float want)
{
    return got == want || (isnan(got) && isnan(want));
}

static void expect_unwritten(const trial *t, int tensor)
{
    for (int64_t i = 0; i < t->data.elements[tensor]; ++i)
        cr_assert(isnan(t->run.got[tensor][i]),
                  "%s: %s[%lld] was not wanted, but written",
                  family_run_name(&t->run), family_names[tensor], (long long)i);
}

/* allowed, if there is one, says where NaN is right besides. */
static void expect_output(const trial *t, const char *what, int tensor,
                          int64_t batch, float beta, const uint8_t *allowed)
{
    const float *got = t->run.got[tensor];
    int64_t count = family_data_elements(&t->data, tensor, batch);
    for (int64_t i = 0; i < count; ++i) {
        float want = family_data_stored(&t->data, tensor, i, beta);
        bool lenient = allowed && allowed[i] && isnan(got[i]);
        cr_assert(same(got[i], want) || lenient,
                  "%s: %s, %lld images: %s[%lld] is %.9g, not %.9g",
                  family_run_name(&t->run), what, (long long)batch,
                  family_names[tensor], (long long)i, (double)got[i],
                  (double)want);
    }
    /* dX of the images that the call did not have. */
    for (int64_t i = count; i < t->data.elements[tensor]; ++i)
        cr_assert(
            same(got[i], beta != 0.0f ? t->data.value[tensor][i] : (float)NAN),
            "%s: %s, %lld images: %s[%lld] of another image was written",
            family_run_name(&t->run), what, (long long)batch,
            family_names[tensor], (long long)i);
}

static void expect_outputs(const trial *t, const char *what, int64_t batch,
                           const float beta[FAMILY_TENSORS])
{
    for (int i = FAMILY_DW; i < FAMILY_TENSORS; ++i)
        if (t->run.got[i])
            expect_output(t, what, i, batch, beta[i], NULL);
}

static void call_and_expect(trial *t, const char *what, int64_t batch,
                            const float beta[FAMILY_TENSORS])
{
    call(t, batch, beta);
    expect_outputs(t, what, batch, beta);
}

/* ---- Counts ------------------------------------------------------------- */

static clconv_counts count_output(const family_data *data, int tensor,
                                  int64_t batch)
{
    size_t count = (size_t)family_data_elements(data, tensor, batch);
    double *values = malloc((count + 1) * sizeof *values);
    cr_assert_not_null(values);
    for (size_t i = 0; i < count; ++i)
        values[i] = family_data_result(data, tensor, (int64_t)i, 0);
    clconv_counts counts = counts_of_output(values, count);
    free(values);
    return counts;
}

/* fp32 inputs that stay fp32 are counted by fewer kinds, but small integers
 * are of none of the others. */
static clconv_counts count_input(const family_data *data, int tensor,
                                 int64_t batch)
{
    return counts_of_fp32(data->value[tensor],
                          (size_t)family_data_elements(data, tensor, batch));
}

static void expect_report(const trial *t, int64_t batch)
{
    const clconv_counts *got = &t->run.report.dy;
    for (int i = 0; i < FAMILY_TENSORS; ++i) {
        clconv_counts want = {0};
        double a, b;
        if (t->run.mem[i] && i < FAMILY_DW)
            want = count_input(&t->data, i, batch);
        else if (t->run.mem[i] && t->data.type[i] == CLCONV_F16)
            want = count_output(&t->data, i, batch);
        const char *field = counts_difference(&got[i], &want, &a, &b);
        cr_assert_null(field,
                       "%s: %.0f %s elements of %s were counted, not "
                       "%.0f",
                       family_run_name(&t->run), a, field, family_names[i], b);
    }
}

/* ---- Exact -------------------------------------------------------------- */

void family_exact(const family *f, const char *problem)
{
    trial t;
    open_problem(f, problem, &t);
    call_and_expect(&t, "exact", t.data.desc.n, no_beta);
    expect_report(&t, t.data.desc.n);
    close_trial(&t);
}

void family_batches(const family *f, const char *problem)
{
    trial t;
    open_problem(f, problem, &t);
    for (int64_t batch = 1; batch <= t.data.desc.n; ++batch) {
        call_and_expect(&t, "batches", batch, no_beta);
        expect_report(&t, batch);
    }
    close_trial(&t);
}

void family_outputs(const family *f, const char *problem)
{
    trial t;
    open_problem(f, problem, &t);
    for (unsigned wanted = 1; wanted <= t.run.ops; ++wanted) {
        if (wanted & ~t.run.ops)
            continue;
        t.run.wanted = wanted;
        call(&t, t.data.desc.n, no_beta);
        for (int i = FAMILY_DW; i < FAMILY_TENSORS; ++i)
            if (wanted & family_ops[i])
                expect_output(&t, "outputs", i, t.data.desc.n, 0, NULL);
            else if (t.run.got[i])
                expect_unwritten(&t, i);
    }
    close_trial(&t);
}

void family_beta(const family *f, const char *problem)
{
    const float beta[FAMILY_TENSORS] = {
        [FAMILY_DW] = 0.5f, [FAMILY_DB] = -1.0f, [FAMILY_DX] = -2.0f};
    const float other[FAMILY_TENSORS] = {
        [FAMILY_DW] = 1.0f, [FAMILY_DB] = 3.0f, [FAMILY_DX] = 0.25f};
    trial t;
    open_problem(f, problem, &t);
    call_and_expect(&t, "beta", t.data.desc.n, beta);
    call_and_expect(&t, "beta", t.data.desc.n > 1 ? 1 : t.data.desc.n, other);
    call_and_expect(&t, "beta", 0, beta);
    call_and_expect(&t, "beta 0", 0, no_beta);
    close_trial(&t);
}

/* Poison and guards are those of every call; without its own test a family
 * might never be asked for the batches that use less than the workspace. */
void family_workspace(const family *f, const char *problem)
{
    trial t;
    open_problem(f, problem, &t);
    cr_assert_gt(t.run.workspace_size, 0, "%s: there is no workspace to test",
                 family_run_name(&t.run));
    call_and_expect(&t, "workspace", t.data.desc.n, no_beta);
    call_and_expect(&t, "workspace", t.data.desc.n / 2, no_beta);
    call_and_expect(&t, "workspace", t.data.desc.n, no_beta);
    close_trial(&t);
}

/* ---- NaN ---------------------------------------------------------------- */

/* A tensor as planes of rows x columns: one for each image and channel. */
typedef struct planes {
    int64_t outer, channels, rows, columns;
} planes;

typedef struct element {
    int64_t outer, channel, row, column;
} element;

static planes planes_of(const shape *z, int tensor)
{
    switch (tensor) {
    case FAMILY_DY: return (planes){z->n, z->k, z->p, z->q};
    case FAMILY_W:
    case FAMILY_DW: return (planes){z->k, z->cg, z->r, z->s};
    default: return (planes){z->n, z->c, z->h, z->w};
    }
}

static size_t nchw_index(const planes *p, element e)
{
    return (size_t)(((e.outer * p->channels + e.channel) * p->rows + e.row) *
                        p->columns +
                    e.column);
}

/* In the layout of the description. */
static size_t index_in(clconv_layout layout, const planes *p, element e)
{
    if (layout == CLCONV_NCHW)
        return nchw_index(p, e);
    return (size_t)(((e.outer * p->rows + e.row) * p->columns + e.column) *
                        p->channels +
                    e.channel);
}

static element element_of(const planes *p, size_t nchw)
{
    int64_t i = (int64_t)nchw;
    return (element){.outer = i / p->columns / p->rows / p->channels,
                     .channel = i / p->columns / p->rows % p->channels,
                     .row = i / p->columns % p->rows,
                     .column = i % p->columns};
}

/* Outputs that only padding connects with an element of an input. */
typedef struct lenience {
    uint8_t *allowed;
    planes p;
    clconv_layout layout;
} lenience;

static void visit(void *user, size_t output, size_t other)
{
    const lenience *l = user;
    if (other == TAPS_PADDING)
        l->allowed[index_in(l->layout, &l->p, element_of(&l->p, output))] = 1;
}

/* The one output that padding connects with an input: X is what dW meets in
 * padding, dY what dX meets there. */
static int lenient_output(int input)
{
    return input == FAMILY_W ? FAMILY_DX : FAMILY_DW;
}

static uint8_t *new_allowed(const trial *t, const shape *z, int input,
                            size_t nchw)
{
    int output = lenient_output(input);
    lenience l = {calloc((size_t)t->data.elements[output], 1),
                  planes_of(z, output), t->data.desc.layout};
    cr_assert_not_null(l.allowed);
    if (input == FAMILY_DY)
        taps_dy_to_dw(z, nchw, visit, &l);
    else if (input == FAMILY_X)
        taps_x_to_dw(z, nchw, visit, &l);
    else
        taps_w_to_dx(z, nchw, visit, &l);
    return l.allowed;
}

/* With one element of an input replaced. */
static void expect_replaced(trial *t, const shape *z, int input, element e,
                            float value)
{
    planes p = planes_of(z, input);
    float *place = &t->data.value[input][index_in(t->data.desc.layout, &p, e)];
    uint8_t *allowed = new_allowed(t, z, input, nchw_index(&p, e));
    float old = *place;
    char what[96];
    snprintf(what, sizeof what, "%g at %s(%lld, %lld, %lld, %lld)",
             (double)value, family_names[input], (long long)e.outer,
             (long long)e.channel, (long long)e.row, (long long)e.column);
    *place = value;
    call(t, t->data.desc.n, no_beta);
    for (int i = FAMILY_DW; i < FAMILY_TENSORS; ++i)
        if (t->run.got[i])
            expect_output(t, what, i, t->data.desc.n, 0,
                          i == lenient_output(input) ? allowed : NULL);
    *place = old;
    free(allowed);
}

/* First, last and middle of size things. */
static int64_t place_of(int i, int64_t size)
{
    const int64_t places[3] = {0, size - 1, size / 2};
    return places[i % 3];
}

/* At corners, edges and the middle of a plane; images and channels change on
 * the way. */
static void expect_nans(trial *t, const shape *z, int input)
{
    planes p = planes_of(z, input);
    for (int i = 0; i < 9; ++i) {
        element e = {place_of(i + i / 3, p.outer),
                     place_of(2 * i + i / 3 + 1, p.channels),
                     place_of(i / 3, p.rows), place_of(i, p.columns)};
        expect_replaced(t, z, input, e, (float)NAN);
    }
    element middle = {p.outer / 2, p.channels / 2, p.rows / 2, p.columns / 2};
    expect_replaced(t, z, input, middle, INFINITY);
}

void family_nan(const family *f, const char *problem)
{
    trial t;
    shape z;
    open_problem(f, problem, &t);
    cr_assert(shape_from_desc(&t.data.desc, &z), "%s", problem);
    for (int input = FAMILY_DY; input <= FAMILY_W; ++input)
        if (t.run.mem[input])
            expect_nans(&t, &z, input);
    close_trial(&t);
}

/* ---- Small gradients ---------------------------------------------------- */

/* Between fp16's smallest numbers at 2^10, and below half of its smallest
 * without. */
#define TINY 1.1e-8f

/* The Frobenius norm of the error over that of what is right. */
static double relative_error(const trial *t, int tensor)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < t->data.elements[tensor]; ++i) {
        double want = family_data_result(&t->data, tensor, i, 0);
        double off = (double)t->run.got[tensor][i] - want;
        error += off * off;
        norm += want * want;
    }
    return sqrt(error / norm);
}

static void expect_tiny(const family *f, const clconv_desc *desc, bool survives)
{
    trial t;
    open_desc(f, desc, &t);
    for (int64_t i = 0; i < t.data.elements[FAMILY_DY]; ++i)
        t.data.value[FAMILY_DY][i] *= TINY;
    call(&t, desc->n, no_beta);
    for (int i = FAMILY_DW; i < FAMILY_TENSORS; ++i) {
        if (!t.run.got[i])
            continue;
        double error = relative_error(&t, i);
        bool right = i == FAMILY_DB ? error < 1e-5
                     : survives     ? error < 5e-3
                                    : error > 0.1;
        cr_assert(right, "%s: of dY about 1e-8, %s is off by %g",
                  family_run_name(&t.run), family_names[i], error);
    }
    close_trial(&t);
}

void family_tiny(const family *f, const char *problem)
{
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    cr_assert_eq(desc.scale_log2, CLCONV_SCALE_LOG2_DEFAULT, "%s", problem);
    cr_assert(desc.dy_type == CLCONV_F32 && desc.math == CLCONV_MIXED, "%s",
              problem);
    expect_tiny(f, &desc, true);
    desc.scale_log2 = 0;
    expect_tiny(f, &desc, false);
}

/* ---- Devices ------------------------------------------------------------ */

void family_skip_unless_cpu(void)
{
    host h;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    bool is_cpu = h.is_cpu;
    host_close(&h);
    if (!is_cpu)
        cr_skip_test("these kernels are for CPUs");
}
