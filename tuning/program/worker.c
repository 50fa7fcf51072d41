/*
 * stdout is for answers alone: what a driver prints there is sent to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "measure.h"
#include "message.h"
#include "parent.h"

typedef struct worker {
    const worker_options *options;
    clconv_context *context;
    FILE *answers;
    clconv_measure *measure; /* of problem; NULL: none yet */
    char problem[256];
    char warning[256]; /* the library's last */
} worker;

/* ---- What is said ------------------------------------------------------ */

static FILE *take_stdout(void)
{
    int answers = dup(STDOUT_FILENO);
    if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return NULL;
    return fdopen(answers, "w");
}

static void note_warning(clconv_log_level level, const char *message, void *user)
{
    worker *w = user;
    if (level == CLCONV_LOG_WARNING)
        snprintf(w->warning, sizeof w->warning, "%s", message);
}

/* ---- Commands ---------------------------------------------------------- */

static void fail_all(const command *c, clconv_outcome outcome,
                     clconv_trial *trials)
{
    for (int i = 0; i < c->count; ++i)
        trials[i] = trial_failed(outcome, clconv_last_error());
}

/* Tensors for the command's problem, kept until another one comes. */
static bool set_problem(worker *w, const char *problem)
{
    clconv_desc desc;
    if (w->measure && strcmp(w->problem, problem) == 0)
        return true;
    clconv_measure_free(w->measure);
    w->measure = NULL;
    snprintf(w->problem, sizeof w->problem, "%s", problem);
    return clconv_desc_parse(problem, &desc) == CLCONV_OK &&
           clconv_measure_new(w->context, &desc, CLCONV_OP_BACKWARD,
                              &w->measure) == CLCONV_OK;
}

static void prepare(worker *w, const command *c, clconv_trial *trials)
{
    const inject *spoiler = &w->options->inject;
    for (int i = 0; i < c->count; ++i)
        if (!inject_do(spoiler, COMMAND_PREPARE, c->plans[i], &trials[i]))
            clconv_measure_prepare(w->measure, c->ops, c->plans[i], &trials[i]);
}

/* Another worker may have prepared these: here they come from a cache. */
static void time_plans(worker *w, const command *c, clconv_trial *trials)
{
    const char *plans[COMMAND_MAX_PLANS];
    clconv_trial timed[COMMAND_MAX_PLANS];
    int at[COMMAND_MAX_PLANS], count = 0;
    prepare(w, c, trials);
    for (int i = 0; i < c->count; ++i) {
        inject_do(&w->options->inject, COMMAND_TIME, c->plans[i], &trials[i]);
        if (trials[i].outcome != CLCONV_TRIAL_OK)
            continue;
        plans[count] = c->plans[i];
        timed[count] = trials[i];
        at[count++] = i;
    }
    if (count)
        clconv_measure_time(w->measure, c->ops, plans, count, c->seconds, timed);
    for (int i = 0; i < count; ++i)
        trials[at[i]] = timed[i];
}

static void judge(worker *w, const command *c, clconv_trial *trials)
{
    prepare(w, c, trials);
    for (int i = 0; i < c->count; ++i)
        if (trials[i].outcome == CLCONV_TRIAL_OK)
            clconv_measure_judge(w->measure, c->ops, c->plans[i], &trials[i]);
}

/* A driver that compiles at the first launch hands out a binary after it: the
 * library asks when the plan is released, and warns if it cannot be written. */
static void keep(worker *w, const command *c, clconv_trial *trials)
{
    prepare(w, c, trials);
    clconv_measure_forget(w->measure);
    for (int i = 0; i < c->count && *w->warning; ++i)
        if (trials[i].outcome == CLCONV_TRIAL_OK)
            trials[i] = trial_failed(CLCONV_TRIAL_FAILED, w->warning);
}

static void (*const deeds[COMMAND_VERBS])(worker *, const command *,
                                          clconv_trial *) = {
    [COMMAND_PREPARE] = prepare,
    [COMMAND_TIME] = time_plans,
    [COMMAND_JUDGE] = judge,
    [COMMAND_KEEP] = keep,
};

static bool answer(worker *w, const clconv_trial *trials, int count)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    for (int i = 0; i < count; ++i)
        answer_format(&trials[i], &text);
    bool ok = !text.failed && fputs(text.data, w->answers) >= 0 &&
              fflush(w->answers) == 0;
    clconv_text_free(&text);
    return ok;
}

static bool obey(worker *w, const char *line)
{
    static command_strings strings;
    static clconv_trial trials[COMMAND_MAX_PLANS];
    command c;
    if (!command_parse(line, strcspn(line, "\n"), &strings, &c)) {
        message_error("--worker: this is no command");
        return false;
    }
    for (int i = 0; i < c.count; ++i)
        trials[i] = trial_failed(CLCONV_TRIAL_FAILED, "not tried");
    if (set_problem(w, c.problem))
        deeds[c.verb](w, &c, trials);
    else
        fail_all(&c, CLCONV_TRIAL_FAILED, trials);
    return answer(w, trials, c.count);
}

/* ---- The whole --------------------------------------------------------- */

static int obey_all(worker *w)
{
    char *line = NULL;
    size_t size = 0;
    bool ok = true;
    while (ok && getline(&line, &size, stdin) > 0)
        ok = obey(w, line);
    free(line);
    clconv_measure_free(w->measure);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int work_on(const worker_options *o, const host *h, FILE *answers)
{
    worker w = {.options = o, .answers = answers};
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = o->cache_dir;
    options.cache_policy = CLCONV_CACHE_ALL;
    options.log = note_warning;
    options.log_user = &w;
    if (clconv_context_create(h->context, h->device, &options, &w.context)) {
        message_error("%s", clconv_last_error());
        return EXIT_FAILURE;
    }
    int status = obey_all(&w);
    clconv_context_release(w.context);
    return status;
}

int worker_main(const worker_options *o)
{
    FILE *answers = take_stdout();
    host h;
    if (!answers || !parent_watch()) {
        message_error("--worker: it needs stdin, stdout and a thread");
        return EXIT_FAILURE;
    }
    if (host_open(o->device, HOST_IN_ORDER, &h) != HOST_OK)
        return EXIT_FAILURE;
    int status = work_on(o, &h, answers);
    host_close(&h);
    return status;
}
