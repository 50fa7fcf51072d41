/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "counts.h"
#include "plan_string.h"

/* ---- Saying what failed ------------------------------------------------- */

static void print_plan(const occasion *o)
{
    char text[1024];

    if (o->plan && plan_string(o->plan, text, sizeof(text)))
        printf("    plan: %s\n", text);
}

void row_fail(const occasion *o, const char *format, ...)
{
    char problem[256];
    va_list values;

    clconv_desc_format(&o->setup->desc, problem, sizeof(problem));
    printf("FAILED %s\n    problem: %s\n    %s: ", o->row->name, problem,
           o->judgement);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
    print_plan(o);
    fflush(stdout);
    o->check->outcome = OUTCOME_FAILED;
}

/* Sizes of a tensor's last three roles, with the letters of all four. */
typedef struct roles {
    const char *names;
    int64_t channels, rows, columns;
} roles;

static roles roles_of(const shape *z, const char *output)
{
    if (strcmp(output, "dw") == 0)
        return (roles){"kcrs", z->cg, z->r, z->s};
    if (strcmp(output, "y") == 0)
        return (roles){"nkpq", z->k, z->p, z->q};
    return (roles){"nchw", z->c, z->h, z->w};
}

/* "k 3, c 0, r 1, s 2" of an element's index. */
static void format_place(const shape *z, const char *output, size_t index,
                         char *text, size_t size)
{
    roles of = roles_of(z, output);
    size_t channels = (size_t)of.channels;
    size_t rows = (size_t)of.rows;
    size_t columns = (size_t)of.columns;

    if (strcmp(output, "db") == 0) {
        snprintf(text, size, "k %zu", index);
        return;
    }
    snprintf(text, size, "%c %zu, %c %zu, %c %zu, %c %zu", of.names[0],
             index / columns / rows / channels, of.names[1],
             index / columns / rows % channels, of.names[2],
             index / columns % rows, of.names[3], index % columns);
}

void row_fail_verdict(const occasion *o, const char *output, const verdict *v)
{
    char place[128];

    if (!v->has_element) {
        row_fail(o, "%s: error %.6g, bound %.6g: not %s", output, v->got,
                 v->bound, v->rule);
        return;
    }
    format_place(&o->row->z, output, v->index, place, sizeof(place));
    row_fail(o, "%s[%zu] (%s): got %.9g, expected %.9g, bound %.3g: not %s",
             output, v->index, place, v->got, v->expected, v->bound, v->rule);
}

/* ---- Calling ------------------------------------------------------------ */

bool row_call(const occasion *o, clconv_plan *plan, const run_inputs *in,
              outputs *out)
{
    runner *r = o->row->runner;
    run_result result = runner_call(r, plan, o->setup, in, out);

    if (result)
        row_fail(o, "%s", r->error);
    return result == RUN_OK;
}

void row_each_check(row *r, unsigned maths, const char *judgement,
                    const run_inputs *in, row_judge_fn *judge, const void *user)
{
    for (int i = 0; i < r->check_count; ++i) {
        check *c = &r->checks[i];
        const occasion o = {.row = r,
                            .check = c,
                            .setup = &c->setup,
                            .plan = c->plan,
                            .judgement = judgement};
        outputs got;

        if (!c->plan || !(maths & (1U << c->setup.desc.math)) ||
            !row_call(&o, c->plan, in, &got))
            continue;
        judge(&o, &got, user);
        row_judge_inputs(&o, &got.report, in);
        outputs_free(&got);
    }
}

void row_passed(check *c)
{
    if (c->outcome == OUTCOME_OPEN)
        c->outcome = OUTCOME_PASSED;
}

/* ---- Comparing ---------------------------------------------------------- */

static void judge_one(const occasion *o, const char *name, const float *got,
                      const expected *e, const tolerance *t, const uint8_t *mark)
{
    verdict v;

    if (got && !judge_bound(got, e, t, mark, &v))
        row_fail_verdict(o, name, &v);
}

void row_judge(const occasion *o, const outputs *got, const dataset *data,
               const tolerances *t, const marks *m)
{
    judge_one(o, "dw", got->dw, &data->dw, &t->dw, m ? m->dw : NULL);
    judge_one(o, "db", got->db, &data->db, &t->db, m ? m->db : NULL);
    judge_one(o, "dx", got->dx, &data->dx, &t->dx, m ? m->dx : NULL);
    row_passed(o->check);
}

static void judge_one_norm(const occasion *o, const char *name, const float *got,
                           const expected *e, const tolerance *t)
{
    verdict v;

    if (got && !judge_norm(got, e, t, &v))
        row_fail_verdict(o, name, &v);
}

void row_judge_norms(const occasion *o, const outputs *got, const dataset *data,
                     const tolerances *t)
{
    judge_one_norm(o, "dw", got->dw, &data->dw, &t->dw);
    judge_one_norm(o, "db", got->db, &data->db, &t->db);
    judge_one_norm(o, "dx", got->dx, &data->dx, &t->dx);
    row_passed(o->check);
}

static void judge_one_exact(const occasion *o, const char *name,
                            const float *got, const expected *e)
{
    verdict v;

    if (got && !judge_exact(got, e->value, e->count, &v))
        row_fail_verdict(o, name, &v);
}

void row_judge_exact(const occasion *o, const outputs *got, const dataset *data)
{
    judge_one_exact(o, "dw", got->dw, &data->dw);
    judge_one_exact(o, "db", got->db, &data->db);
    judge_one_exact(o, "dx", got->dx, &data->dx);
    row_passed(o->check);
}

/* ---- Counts ------------------------------------------------------------- */

static void judge_input(const occasion *o, const char *name, clconv_type type,
                        int scale_log2, const float *values, size_t count,
                        clconv_counts got)
{
    bool mixed = o->setup->desc.math == CLCONV_MIXED;
    clconv_counts right;
    double a, b;
    const char *field;

    if (type == CLCONV_F16)
        right = counts_of_cast(values, count, 0);
    else if (mixed)
        right = counts_of_cast(values, count, scale_log2);
    else
        right = counts_of_fp32(values, count);
    field = counts_difference(&got, &right, &a, &b);
    if (field)
        row_fail(o, "report.%s.%s is %.0f, expected %.0f", name, field, a, b);
}

void row_judge_inputs(const occasion *o, const clconv_report *report,
                      const run_inputs *in)
{
    const clconv_desc *d = &o->setup->desc;
    const shape *z = &o->row->z;

    if (!(o->setup->plan_ops & CLCONV_OP_FORWARD))
        judge_input(o, "dy", d->dy_type, d->scale_log2, in->dy,
                    shape_dy_count(z), report->dy);
    if (o->setup->wanted & (CLCONV_OP_DW | CLCONV_OP_FORWARD))
        judge_input(o, "x", d->x_type, 0, in->x, shape_x_count(z), report->x);
    if (o->setup->wanted & (CLCONV_OP_DX | CLCONV_OP_FORWARD))
        judge_input(o, "w", d->w_type, 0, in->w, shape_w_count(z), report->w);
}

/* ---- Bounds ------------------------------------------------------------- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t least_ab = a < b ? a : b;

    return least_ab < c ? least_ab : c;
}

/* db is never rounded to fp16: its bound is that of fp32 in both. */
tolerances row_tolerances(const check *c, int scale_log2)
{
    const shape *z = &c->setup.z;
    size_t x = shape_x_count(z), w = shape_w_count(z), dy = shape_dy_count(z);
    size_t independent = least(x, w, dy);
    tolerances t;

    t.dw = tolerance_fp32(shape_dw_depth(z), independent);
    t.dx = tolerance_fp32(shape_dx_depth(z), independent);
    t.db = tolerance_fp32(shape_dw_depth(z), (size_t)z->k);
    if (c->setup.desc.math == CLCONV_MIXED) {
        t.dw = tolerance_mixed(shape_dw_depth(z), independent, scale_log2);
        t.dx = tolerance_mixed(shape_dx_depth(z), independent, scale_log2);
    }
    return t;
}
