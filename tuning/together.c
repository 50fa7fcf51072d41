/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <string.h>

/* So many of each search are paired; they are picked from so many. */
#define FEW 3
#define PICK_FROM 96

/* Parts of plan strings, the fastest first. "": left open. */
typedef struct parts {
    char text[FEW][CLCONV_RECORD_PLAN];
    int count;
} parts;

/* ---- The best few of a search ------------------------------------------ */

static unsigned copies_of(const clconv_course *c,
                          const clconv_candidate *candidate)
{
    clconv_step step = {.copies = 0};
    double cost;
    clconv_planner_step(c->problem, c->device, candidate->kernel,
                        candidate->values, &step, &cost);
    return step.copies;
}

/* By itself a kernel pays for the copy of dY that the other one may share, so
 * if the best few all do without, or none does, the last is the best that
 * differs. */
static void diversify(const clconv_course *c, clconv_candidate *best, int count)
{
    unsigned first = copies_of(c, &best[0]);
    for (int i = 1; i < count; ++i) {
        if (copies_of(c, &best[i]) == first)
            continue;
        if (i >= FEW)
            best[FEW - 1] = best[i];
        return;
    }
}

static void add_part(parts *out, const clconv_candidate *candidate)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_candidate_format(candidate, &text);
    if (!text.failed && text.length < sizeof out->text[0])
        memcpy(out->text[out->count++], text.data, text.length + 1);
    clconv_text_free(&text);
}

static void best_parts(const clconv_course *c, const clconv_search *search,
                       parts *out)
{
    clconv_candidate best[PICK_FROM];
    int count = search ? clconv_search_best(search, PICK_FROM, best) : 0;
    *out = (parts){.count = 0};
    if (count)
        diversify(c, best, count);
    for (int i = 0; i < count && i < FEW; ++i)
        add_part(out, &best[i]);
    if (out->count == 0)
        out->count = 1; /* left open */
}

/* ---- Pairs ------------------------------------------------------------- */

static void make_pair(const clconv_course *c, const char *data,
                      const char *weight, clconv_attempt *out)
{
    clconv_text plan = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&plan, "%s%s%s", data, *data ? ";" : "", weight);
    clconv_attempt_make(c, c->ops, plan.failed ? "" : plan.data, out);
    clconv_text_free(&plan);
}

/* The pairs, those first whose places add up to the least. */
static int make_pairs(const clconv_course *c, const parts *data,
                      const parts *weight, clconv_attempt out[FEW * FEW])
{
    int count = 0;
    for (int sum = 0; sum <= data->count + weight->count - 2; ++sum)
        for (int i = 0; i < data->count; ++i) {
            int j = sum - i;
            if (j < 0 || j >= weight->count)
                continue;
            make_pair(c, data->text[i], weight->text[j], &out[count++]);
        }
    return count;
}

/* The best pair is tried even if no time is left: else both searches were in
 * vain. */
static void try_pairs(clconv_course *c, const parts *data, const parts *weight,
                      double until)
{
    clconv_attempt pairs[FEW * FEW];
    int count = make_pairs(c, data, weight, pairs);
    for (int done = 0; done < count && !c->stopped;) {
        int batch = clconv_course_batch(c, until);
        if (batch == 0 && done > 0)
            return;
        if (batch == 0)
            batch = 1;
        if (batch > count - done)
            batch = count - done;
        clconv_contest_try(c, &c->whole, &pairs[done], batch);
        done += batch;
    }
}

/* ---- The cast ---------------------------------------------------------- */

/* The plan's kernels but for the cast, which comes first. */
static const char *without_cast(const char *plan)
{
    const char *end = strchr(plan, ';');
    return end ? end + 1 : "";
}

static bool has_cast(const char *plan)
{
    clconv_choice choices[CLCONV_ROLES];
    return clconv_choices_parse(plan, choices) == CLCONV_OK &&
           choices[CLCONV_ROLE_CAST].kernel;
}

static void try_casts(clconv_course *c, double until)
{
    if (c->leader_count == 0 || !has_cast(c->leaders[0].plan))
        return;
    clconv_attempt best = c->leaders[0];
    clconv_scope scope = clconv_course_scope(c, CLCONV_ROLE_CAST);
    clconv_search *casts = clconv_search_new(&scope);
    if (casts)
        clconv_stage_search(c, &c->whole, casts, without_cast(best.plan), until);
    clconv_search_free(casts);
}

void clconv_stage_together(clconv_course *c, const clconv_search *data,
                           const clconv_search *weight, double until)
{
    parts data_parts, weight_parts;
    best_parts(c, data, &data_parts);
    best_parts(c, weight, &weight_parts);
    c->whole.stage = CLCONV_STAGE_TOGETHER;
    try_pairs(c, &data_parts, &weight_parts, until);
    try_casts(c, until);
}
