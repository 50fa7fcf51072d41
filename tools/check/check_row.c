/*
 * For each row: a plan for every check; then judgement after judgement, data
 * and reference once for all checks; then the tally.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "judgements.h"
#include "message.h"
#include "plan_string.h"

/* ---- Setting up --------------------------------------------------------- */

/* FNV-1a: the data of a row depend on its name and the seed alone. */
static uint64_t row_seed(const char *name, uint64_t seed)
{
    uint64_t hash = 0xCBF29CE484222325U ^ seed;

    for (; *name; ++name)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3U;
    return hash;
}

/* Only the sizes of a row count; the rest is what is being checked. */
static clconv_desc description(const row *r, clconv_layout layout,
                               clconv_math math)
{
    const shape *z = &r->z;
    clconv_desc d;

    clconv_desc_init(&d);
    d.n = z->n;
    d.c = z->c, d.h = z->h, d.w = z->w;
    d.k = z->k, d.r = z->r, d.s = z->s;
    d.stride_h = z->stride_h, d.stride_w = z->stride_w;
    d.pad_top = z->pad_top, d.pad_bottom = z->pad_bottom;
    d.pad_left = z->pad_left, d.pad_right = z->pad_right;
    d.dilation_h = z->dilation_h, d.dilation_w = z->dilation_w;
    d.groups = z->groups;
    d.layout = layout;
    d.math = math;
    d.scale_log2 = r->scale_log2;
    return d;
}

static void add_check(row *r, clconv_layout layout, clconv_math math)
{
    unsigned ops = r->options->forward ? CLCONV_OP_FORWARD : CLCONV_OP_BACKWARD;

    r->checks[r->check_count++] =
        (check){.setup = {.z = r->z,
                          .desc = description(r, layout, math),
                          .plan_ops = ops,
                          .wanted = ops,
                          /* No better aligned than promised. */
                          .offset = 16}};
}

/* An option's bits, else the one that a whole description has, else both. */
static unsigned bits_of(unsigned given, const case_row *from, unsigned own)
{
    if (given)
        return given;
    return from->is_whole ? 1U << own : 3U;
}

static void add_checks(row *r)
{
    for (unsigned layout = 0; layout < 2; ++layout) {
        for (unsigned math = 0; math < 2; ++math) {
            if ((r->layouts & (1U << layout)) && (r->maths & (1U << math)))
                add_check(r, (clconv_layout)layout, (clconv_math)math);
        }
    }
}

static void make_plan(row *r, check *c)
{
    occasion o = {.row = r, .check = c, .setup = &c->setup, .judgement = "plan"};

    switch (runner_plan(r->runner, &c->setup, &c->plan)) {
    case RUN_OK: break;
    case RUN_UNSUPPORTED:
        if (r->options->plan) {
            c->outcome = OUTCOME_SKIPPED;
            if (r->options->verbose || r->options->cases.count == 1)
                message_warning("%s: skipped: %s", r->name, r->runner->error);
            break;
        }
        /* fall through */
    default: row_fail(&o, "%s", r->runner->error);
    }
}

static void make_plans(row *r)
{
    for (int i = 0; i < r->check_count; ++i)
        make_plan(r, &r->checks[i]);
}

static bool any_plan(const row *r)
{
    for (int i = 0; i < r->check_count; ++i) {
        if (r->checks[i].plan)
            return true;
    }
    return false;
}

/* ---- Judging ------------------------------------------------------------ */

static bool judge_normal_data(row *r)
{
    unsigned wanted = r->options->judgements;
    dataset normal;
    bool ok = true;

    if (!(wanted & (JUDGEMENT_RANDOM | JUDGEMENT_TINY | JUDGEMENT_EDGES)) ||
        r->z.n == 0)
        return true;
    if (!dataset_normal(r->ref, &r->z, r->seed, &normal))
        return false;
    if (wanted & JUDGEMENT_RANDOM)
        judgement_random(r, &normal);
    if (wanted & JUDGEMENT_TINY)
        ok = judgement_tiny(r, &normal);
    if (ok && (wanted & JUDGEMENT_EDGES))
        ok = judgement_nonfinite(r, &normal) && judgement_extremes(r, &normal);
    dataset_free(&normal);
    return ok;
}

static bool judge_integer_data(row *r)
{
    if (!(r->options->judgements & JUDGEMENT_INTEGERS))
        return true;
    if (dataset_integer_magnitude(&r->z) == 0) {
        message_warning("%s: sums are too long for the integers judgement",
                        r->name);
        return true;
    }
    return judgement_integers(r);
}

/* ---- Counting ----------------------------------------------------------- */

static const char *outcome_name(outcome result)
{
    switch (result) {
    case OUTCOME_PASSED: return "passed";
    case OUTCOME_FAILED: return "FAILED";
    default: return "skipped";
    }
}

static void print_check(const row *r, const check *c)
{
    char problem[256], plan[1024];

    clconv_desc_format(&c->setup.desc, problem, sizeof(problem));
    printf("%s %s %s", outcome_name(c->outcome), problem, r->name);
    if (c->plan && plan_string(c->plan, plan, sizeof(plan)))
        printf(" plan: %s", plan);
    printf("\n");
    fflush(stdout);
}

static void count_checks(const row *r, tally *sum)
{
    for (int i = 0; i < r->check_count; ++i) {
        const check *c = &r->checks[i];

        sum->passed += c->outcome == OUTCOME_PASSED;
        sum->failed += c->outcome == OUTCOME_FAILED;
        sum->skipped +=
            c->outcome == OUTCOME_SKIPPED || c->outcome == OUTCOME_OPEN;
        if (r->options->verbose)
            print_check(r, c);
    }
}

static void skip_all(row *r)
{
    for (int i = 0; i < r->check_count; ++i)
        r->checks[i].outcome = OUTCOME_SKIPPED;
}

/* ---- The row ------------------------------------------------------------ */

static bool judge_row(row *r)
{
    if (shape_gflop(&r->z) > r->options->max_gflop) {
        skip_all(r);
        return true;
    }
    make_plans(r);
    if (!any_plan(r))
        return true;
    if (r->options->forward)
        return judgement_forward(r);
    return judge_integer_data(r) && judge_normal_data(r);
}

static void release_plans(row *r)
{
    for (int i = 0; i < r->check_count; ++i)
        clconv_plan_release(r->checks[i].plan);
}

static bool take_shape(const char *name, const clconv_desc *desc, shape *out)
{
    if (clconv_desc_validate(desc)) {
        message_error("%s: %s", name, clconv_last_error());
        return false;
    }
    if (!shape_from_desc(desc, out)) {
        message_error("%s: a tensor has more than %" PRId64 " elements", name,
                      SHAPE_MAX_ELEMENTS);
        return false;
    }
    return true;
}

bool check_row(const check_options *options, runner *library, reference *ref,
               const case_row *from, tally *sum)
{
    row r = {.options = options,
             .runner = library,
             .ref = ref,
             .name = from->name,
             .layouts = bits_of(options->layouts, from, from->desc.layout),
             .scale_log2 = options->scale_given ? options->scale_log2
                                                : from->desc.scale_log2,
             .maths = bits_of(options->maths, from, from->desc.math),
             .seed = row_seed(from->name, options->seed)};
    clconv_desc desc = from->desc;
    bool ok;

    if (options->batch > 0)
        desc.n = options->batch;
    if (!take_shape(from->name, &desc, &r.z))
        return false;
    add_checks(&r);
    ok = judge_row(&r);
    count_checks(&r, sum);
    release_plans(&r);
    return ok;
}
