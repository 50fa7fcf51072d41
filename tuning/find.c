/*
 * Candidates are compiled in a context of their own, which is released with
 * their programs: neither the caller's cache nor its log hears of them. Threads
 * that look for the same plan at the same time share nothing but the record
 * that each of them keeps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "find.h"

#include <string.h>

#include "measure.h"
#include "objects.h"
#include "os.h"
#include "tuner.h"

/* Between two questions to the clock and to the caller there is one batch: few,
 * as they are compiled one after another. */
#define BATCH 2

/* Any number; always the same, so that the course is. */
#define SEED 1

typedef struct finder {
    const clconv_plan_options *options;
    clconv_measure *measure;
    double begin; /* seconds */
    bool stopped; /* the caller has said so, and is not asked again */
} finder;

/* ---- The tuner's backend ----------------------------------------------- */

static double now(void *user)
{
    (void)user;
    return clconv_os_milliseconds() / 1000;
}

static void prepare(void *user, unsigned ops, const char *const *plans,
                    int count, clconv_trial *out)
{
    const finder *f = user;
    for (int i = 0; i < count; ++i)
        clconv_measure_prepare(f->measure, ops, plans[i], &out[i]);
}

static void take_time(void *user, unsigned ops, const char *const *plans,
                      int count, double seconds, clconv_trial *out)
{
    const finder *f = user;
    clconv_measure_time(f->measure, ops, plans, count, seconds, out);
}

static void judge(void *user, unsigned ops, const char *plan, clconv_trial *out)
{
    const finder *f = user;
    clconv_measure_judge(f->measure, ops, plan, out);
}

static bool tell(void *user, const clconv_tuner_progress *p)
{
    finder *f = user;
    if (!f->options->find_progress || f->stopped)
        return !f->stopped;
    const clconv_find_progress progress = {
        .seconds = now(NULL) - f->begin,
        .budget = f->options->find_seconds,
        .trials = p->trials,
        .best_microseconds = p->best_seconds * 1e6,
        .stage = clconv_stage_name(p->stage),
    };
    f->stopped = !f->options->find_progress(&progress, f->options->find_user);
    return !f->stopped;
}

/* ---- The search -------------------------------------------------------- */

static clconv_status search(finder *f, const clconv_problem *problem,
                            const clconv_device *device, unsigned ops,
                            clconv_tuner_result *out)
{
    const clconv_tuner_backend backend = {.user = f,
                                          .clock = now,
                                          .prepare = prepare,
                                          .time = take_time,
                                          .judge = judge,
                                          .progress = tell};
    size_t workspace = f->options->max_workspace;
    if (workspace > device->max_allocation)
        workspace = device->max_allocation;
    double left = f->begin + f->options->find_seconds - now(NULL);
    const clconv_tuner_rules rules = {
        .seconds = left > 0 ? left : 0, .batch = BATCH, .seed = SEED};
    clconv_measure_limit_workspace(f->measure, workspace);
    return clconv_tuner_run(problem, device, ops, workspace, &rules, &backend,
                            out);
}

/* In a context for it alone. */
static clconv_status search_apart(const clconv_context *context,
                                  const clconv_desc *desc,
                                  const clconv_problem *problem, unsigned ops,
                                  finder *f, clconv_tuner_result *out)
{
    clconv_context *scratch;
    clconv_status status = clconv_context_new_scratch(context, &scratch);
    if (status != CLCONV_OK)
        return status;
    status = clconv_measure_new(scratch, desc, ops, &f->measure);
    if (status == CLCONV_OK)
        status = search(f, problem, &context->device, ops, out);
    clconv_measure_free(f->measure);
    clconv_context_release(scratch);
    return status;
}

/* ---- The record -------------------------------------------------------- */

static void make_record(const clconv_problem *problem,
                        const clconv_device *device, unsigned ops,
                        const clconv_tuner_result *result, clconv_record *out)
{
    *out = (clconv_record){
        .problem = *problem,
        .ops = ops,
        .microseconds = result->trial.seconds * 1e6,
        .default_microseconds = result->default_seconds * 1e6,
        .error = result->trial.error,
        .device = *device,
    };
    memcpy(out->plan, result->plan, sizeof out->plan);
    clconv_os_date(out->date);
}

static void log_record(const clconv_log *log, const clconv_record *r,
                       const clconv_tuner_result *result, double seconds)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_problem_format(&r->problem, &text);
    clconv_text_printf(&text,
                       ": found %s in %.1f s and %d trials: %.1f us, the "
                       "default plan %.1f us",
                       r->plan, seconds, result->trials, r->microseconds,
                       r->default_microseconds);
    if (text.data)
        clconv_log_info(log, "%s", text.data);
    clconv_text_free(&text);
}

clconv_status clconv_find(clconv_context *context, const clconv_desc *desc,
                          unsigned ops, const clconv_plan_options *options,
                          clconv_record *out)
{
    if (context->offline)
        return clconv_fail(
            CLCONV_UNSUPPORTED,
            "options.mode is CLCONV_PLAN_FIND, and CLCONV_OFFLINE "
            "is set: nothing can be compiled to be measured; use "
            "clconv-tune import for records made elsewhere");
    finder f = {.options = options, .begin = now(NULL)};
    clconv_problem problem;
    clconv_tuner_result result;
    clconv_status status = clconv_problem_init(desc, &problem);
    if (status == CLCONV_OK)
        status = search_apart(context, desc, &problem, ops, &f, &result);
    if (status != CLCONV_OK)
        return status;
    clconv_record record;
    make_record(&problem, &context->device, ops, &result, &record);
    clconv_tunedb_save(context->tunedb, &record);
    log_record(&context->log, &record, &result, now(NULL) - f.begin);
    *out = record;
    return CLCONV_OK;
}
