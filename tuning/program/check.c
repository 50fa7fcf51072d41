/*
 * Its last line is "N passed, N failed, N skipped"; before that a failure has
 * a line "FAILED ..." and, indented, "problem: ..." and what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "trial_fields.h"

typedef struct findings {
    int passed, failed, skipped; /* of the last line */
    bool is_whole;               /* there was one */
    char failure[200];           /* what is wrong, of the first failure */
} findings;

/* Of the problem's images, as many as keep a cost that all of them share
 * within what is allowed. */
static double images_within(const clconv_problem *p, double cost, double most)
{
    double images = (double)p->n;
    return cost > most ? floor(images * (most / cost)) : images;
}

long check_batch(const clconv_problem *p)
{
    double flops =
        images_within(p, clconv_problem_flops(p), CHECK_MAX_FLOPS);
    double x = images_within(p, (double)clconv_problem_elements(p, CLCONV_X),
                             CHECK_MAX_ELEMENTS);
    double dy = images_within(p, (double)clconv_problem_elements(p, CLCONV_DY),
                              CHECK_MAX_ELEMENTS);
    return (long)fmax(1, fmin(flops, fmin(x, dy)));
}

/* ---- Its output -------------------------------------------------------- */

static bool says_what_is_wrong(const char *line)
{
    return strncmp(line, "    ", 4) == 0 &&
           strncmp(line, "    problem:", 12) != 0;
}

static void take_line(const char *line, findings *f)
{
    findings sum = *f;
    if (sscanf(line, "%d passed, %d failed, %d skipped", &sum.passed,
               &sum.failed, &sum.skipped) == 3) {
        *f = sum;
        f->is_whole = true;
    } else if (!*f->failure && says_what_is_wrong(line)) {
        snprintf(f->failure, sizeof f->failure, "%s", line + 4);
    }
}

static child_result read_all(child *c, double limit, findings *f)
{
    double deadline = child_clock() + limit;
    child_result result;
    char *line;
    while ((result = child_read(c, deadline, &line)) == CHILD_LINE)
        take_line(line, f);
    return result;
}

/* ---- The judgement ----------------------------------------------------- */

static bool no_judgement(clconv_trial *trial, const char *why)
{
    snprintf(trial->why, sizeof trial->why, "clconv-check: %s", why);
    return false;
}

static void fail(clconv_outcome outcome, const char *why, clconv_trial *trial)
{
    trial->outcome = outcome;
    snprintf(trial->why, sizeof trial->why, "clconv-check: %s", why);
}

/* status: its exit status; -1: a signal ended it, end names it. */
static bool conclude(const findings *f, int status, const char *end,
                     clconv_trial *trial)
{
    if (status < 0)
        fail(CLCONV_TRIAL_CRASHED, end, trial);
    else if (f->is_whole && f->failed > 0)
        fail(CLCONV_TRIAL_WRONG, f->failure, trial);
    else if (status != 0 || !f->is_whole || f->passed == 0)
        return no_judgement(trial, f->is_whole && f->skipped
                                       ? "the plan does not take the batch "
                                         "that is judged"
                                       : end);
    return true;
}

static bool start(const check_rules *rules, const clconv_problem *p,
                  const char *plan, child *c)
{
    char batch[24];
    clconv_text problem = CLCONV_TEXT_EMPTY;
    clconv_problem_format(p, &problem);
    snprintf(batch, sizeof batch, "%ld", check_batch(p));
    const char *argv[] = {
        rules->program, "--problem",     problem.data, "--batch",
        batch,          "--plan",        plan,         "--device",
        rules->device,  "--watch-stdin", NULL};
    bool ok = !problem.failed &&
              child_start(&(child_how){argv, rules->settings, rules->log}, c);
    clconv_text_free(&problem);
    return ok;
}

bool check_run(const check_rules *rules, const clconv_problem *p,
               const char *plan, clconv_trial *trial)
{
    findings f = {0};
    child c;
    if (!start(rules, p, plan, &c))
        return no_judgement(trial, "it cannot be started");
    clconv_text end = CLCONV_TEXT_EMPTY;
    bool judged = true;
    if (read_all(&c, rules->limit, &f) == CHILD_LATE) {
        child_kill(&c, &end);
        fail(CLCONV_TRIAL_HUNG, "time limit", trial);
    } else {
        int status = child_finish(&c, &end);
        judged = conclude(&f, status, end.data ? end.data : "no memory", trial);
    }
    clconv_text_free(&end);
    return judged;
}
