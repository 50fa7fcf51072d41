/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend.h"
#include "child.h"
#include "interrupt.h"
#include "message.h"
#include "results.h"
#include "winner.h"

#define BUDGET_OF_A_PROBLEM 60 /* seconds, if none was given */

/* Plans that are prepared at a time: all workers have one, and timing, which
 * is done in turns, has a few. */
#define BATCH_MIN 8

typedef struct result {
    bool has_record;
    bool is_new; /* its programs are to be kept */
    clconv_record record;
    char why[512]; /* it has none */
} result;

typedef struct run {
    station *station;
    const case_list *problems;
    result *results; /* one a problem */
    double end;      /* of the budget, on child_clock() */
    failures failures;
    progress progress;
    exhaustive *exhaustive; /* NULL: not asked for */
} run;

/* ---- One problem ------------------------------------------------------- */

/* What is left is shared by the problems that are left. */
static clconv_tuner_rules make_rules(const run *r, size_t index)
{
    const tune_options *o = r->station->options;
    double left = r->end - child_clock();
    return (clconv_tuner_rules){
        .seconds = left > 0 ? left / (double)(r->problems->count - index) : 0,
        .jobs = r->station->jobs,
        .batch = r->station->jobs > BATCH_MIN ? r->station->jobs : BATCH_MIN,
        .trials = o->trials,
        .seed = o->seed,
        .within = o->plan,
        .exhaustive = o->exhaustive != NULL,
    };
}

static clconv_status search(run *r, size_t index, const char *name,
                            const clconv_problem *problem, const char *known,
                            clconv_tuner_result *out)
{
    station *s = r->station;
    backend b = {s, problem, name, &r->failures, &r->progress, r->exhaustive};
    const clconv_tuner_backend calls = backend_of(&b);
    clconv_tuner_rules rules = make_rules(r, index);
    rules.known = known;
    progress_begin(&r->progress, index + 1, name);
    const clconv_scope scope = {.problem = problem,
                                .device = &s->device,
                                .within = rules.within,
                                .seed = rules.seed};
    if (r->exhaustive)
        exhaustive_begin(r->exhaustive, name, &scope);
    clconv_status status =
        clconv_tuner_run(problem, &s->device, CLCONV_OP_BACKWARD,
                         s->device.max_allocation, &rules, &calls, out);
    progress_clear(&r->progress);
    if (r->exhaustive && status == CLCONV_OK)
        exhaustive_replay(r->exhaustive, stdout);
    return status;
}

static void tune(run *r, size_t index, const char *name,
                 const clconv_problem *problem, result *out)
{
    clconv_tuner_result found;
    bool is_known =
        winner_find(r->station, problem, CLCONV_OP_BACKWARD, &out->record);
    if (search(r, index, name, problem, is_known ? out->record.plan : NULL,
               &found) != CLCONV_OK) {
        snprintf(out->why, sizeof out->why, "%s", clconv_last_error());
        return;
    }
    out->has_record = is_known;
    if (is_known && interrupt_seen()) /* it may not even have been tried */
        return;
    out->record = winner_record(r->station, problem, CLCONV_OP_BACKWARD,
                                found.plan, &found.trial, found.default_seconds);
    out->has_record = out->is_new = winner_save(r->station, &out->record);
    snprintf(out->why, sizeof out->why, "it could not be written");
}

static void tune_row(run *r, size_t index)
{
    result *out = &r->results[index];
    clconv_problem problem;
    clconv_text name = CLCONV_TEXT_EMPTY;
    if (interrupt_seen()) {
        snprintf(out->why, sizeof out->why, "interrupted before it");
        return;
    }
    if (clconv_problem_init(&r->problems->items[index].desc, &problem)) {
        snprintf(out->why, sizeof out->why, "%s", clconv_last_error());
        return;
    }
    clconv_problem_format(&problem, &name);
    if (name.failed)
        snprintf(out->why, sizeof out->why, "no memory");
    else
        tune(r, index, name.data, &problem, out);
    clconv_text_free(&name);
}

/* ---- All --------------------------------------------------------------- */

/* The exit status. */
static int report(const run *r)
{
    size_t missing = 0;
    results_print_head(stdout);
    for (size_t i = 0; i < r->problems->count; ++i) {
        const result *at = &r->results[i];
        if (at->has_record)
            results_print(stdout, &at->record);
        else
            results_print_missing(stdout, r->problems->items[i].name, at->why);
        missing += !at->has_record;
    }
    failures_print(stdout, &r->failures);
    if (pool_replaced(r->station->workers) > 0)
        printf("\nworkers replaced: %d\n", pool_replaced(r->station->workers));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        message_error("the result cannot be written to stdout");
        return EXIT_FAILURE;
    }
    return missing ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* At the end, when nothing is timed any more: all cores compile. */
static void keep_programs(const run *r)
{
    const clconv_record **records =
        calloc(r->problems->count, sizeof(const clconv_record *));
    int count = 0;
    for (size_t i = 0; records && i < r->problems->count; ++i)
        if (r->results[i].is_new)
            records[count++] = &r->results[i].record;
    if (records)
        winner_keep_programs(r->station, records, count);
    else
        message_warning("no memory to keep programs");
    free(records);
}

static int tune_all(run *r)
{
    for (size_t i = 0; i < r->problems->count; ++i)
        tune_row(r, i);
    keep_programs(r);
    int status = report(r);
    return exhaustive_close(r->exhaustive) ? status : EXIT_FAILURE;
}

static bool open_exhaustive(const char *path, exhaustive **out)
{
    *out = path ? exhaustive_open(path) : NULL;
    return !path || *out;
}

int tune_problems(station *s)
{
    const tune_options *o = s->options;
    size_t count = o->problems.count;
    double budget =
        o->budget > 0 ? o->budget : BUDGET_OF_A_PROBLEM * (double)count;
    run r = {
        .station = s, .problems = &o->problems, .end = child_clock() + budget};
    int status = EXIT_FAILURE;
    r.progress = (progress){
        .is_terminal = isatty(STDERR_FILENO) != 0, .count = count, .end = r.end};
    r.results = calloc(count, sizeof *r.results);
    if (!r.results)
        message_error("out of memory");
    else if (open_exhaustive(o->exhaustive, &r.exhaustive))
        status = tune_all(&r);
    failures_free(&r.failures);
    free(r.results);
    return status;
}
