/*
 * A record is a suggestion: the planner takes it if it is legal for this
 * problem and fits the workspace, so that one of another size or device can
 * be slow, but never wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "choose.h"

#include <stdlib.h>

#include "planner.h"

typedef struct chooser {
    clconv_context *context;
    const clconv_device *device;
    const clconv_problem *problem;
    clconv_request request; /* its suggestion is filled in for each record */
    clconv_match matches[CLCONV_MAX_MATCHES];
    int count;
    int *skip; /* so many of the best are left out */
} chooser;

/* Is any step the record's? Where options->plan names every kernel, none is. */
static bool uses(const clconv_steps *steps, const clconv_match *match)
{
    for (int i = 0; i < steps->count; ++i)
        if (steps->step[i].why == match->why)
            return true;
    return false;
}

static void log_match(const chooser *c, const clconv_match *match)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_problem_format(c->problem, &text);
    clconv_text_printf(&text, ": %s: ", match->why);
    clconv_problem_format(&match->record->problem, &text);
    clconv_text_printf(&text, " on %s (driver %s), %s",
                       match->record->device.name, match->record->device.driver,
                       match->record->date);
    char *message = clconv_text_take(&text);
    clconv_log_info(&c->context->log, "%s", message ? message : "no memory");
    free(message);
}

/* NULL: what the planner chooses by itself. */
static clconv_status choose(const chooser *c, const clconv_match *match,
                            clconv_steps *out, clconv_match *used)
{
    clconv_request request = c->request;
    if (match) {
        request.suggestion = match->record->plan;
        request.suggestion_why = match->why;
        request.suggestion_unbaked = match->distance != 0;
    }
    clconv_steps steps;
    clconv_status status =
        clconv_planner_choose(c->problem, c->device, &request, &steps);
    if (status != CLCONV_OK)
        return status;
    *out = steps;
    *used = (clconv_match){.record = NULL};
    if (match && uses(&steps, match)) {
        *used = *match;
        log_match(c, match);
    }
    return CLCONV_OK;
}

/* ---- The modes --------------------------------------------------------- */

/* The best record that the planner takes, else none. */
static clconv_status choose_best(const chooser *c, clconv_steps *out,
                                 clconv_match *used)
{
    while (*c->skip < c->count) {
        const clconv_match *match = &c->matches[(*c->skip)++];
        clconv_status status = choose(c, match, out, used);
        if (status != CLCONV_UNSUPPORTED)
            return status;
    }
    return choose(c, NULL, out, used);
}

/* " (there is one of driver 1.2)", if a record is of this device and problem. */
static void mention_other_driver(const chooser *c, clconv_text *out)
{
    for (int i = 0; i < c->count; ++i) {
        const clconv_match *m = &c->matches[i];
        if (m->nearness != CLCONV_NEAR_DEVICE || m->distance != 0)
            continue;
        clconv_text_printf(out, " (there is one of driver %s)",
                           m->record->device.driver);
        return;
    }
}

static clconv_status fail_untuned(const chooser *c)
{
    clconv_text problem = CLCONV_TEXT_EMPTY;
    clconv_text other = CLCONV_TEXT_EMPTY;
    clconv_problem_format(c->problem, &problem);
    mention_other_driver(c, &other);
    const char *name = problem.data ? problem.data : "";
    clconv_status status = clconv_fail(
        CLCONV_UNSUPPORTED,
        "options.mode is CLCONV_PLAN_TUNED, and %s has no tuned record on %s "
        "with driver %s%s; run clconv-tune \"%s\", or use CLCONV_PLAN_DEFAULT",
        name, c->device->name, c->device->driver, other.data ? other.data : "",
        name);
    clconv_text_free(&other);
    clconv_text_free(&problem);
    return status;
}

static clconv_status choose_tuned(const chooser *c, clconv_steps *out,
                                  clconv_match *used)
{
    /* The best match comes first, and none is better than this. */
    if (c->count == 0 || !clconv_match_is_exact(&c->matches[0]))
        return fail_untuned(c);
    return choose(c, &c->matches[0], out, used);
}

/* Every device takes them, and they compile once for all shapes. */
static clconv_status choose_instant(const chooser *c, clconv_steps *out,
                                    clconv_match *used)
{
    clconv_request request = c->request;
    request.suggestion = "cast:vec=4;bwd_data_generic;bwd_weight_generic;"
                         "forward_generic";
    request.suggestion_why = "compiles fastest";
    *used = (clconv_match){.record = NULL};
    return clconv_planner_choose(c->problem, c->device, &request, out);
}

clconv_status clconv_choose_steps(clconv_context *context,
                                  const clconv_device *device,
                                  const clconv_problem *problem, unsigned ops,
                                  const clconv_plan_options *options, int *skip,
                                  clconv_steps *out, clconv_match *match)
{
    chooser c = {
        .skip = skip,
        .context = context,
        .device = device,
        .problem = problem,
        .request = {.ops = ops,
                    .max_workspace = options->max_workspace,
                    .plan = options->plan},
    };
    if (c.request.max_workspace > device->max_allocation)
        c.request.max_workspace = device->max_allocation;
    if (options->mode == CLCONV_PLAN_INSTANT)
        return choose_instant(&c, out, match);
    c.count =
        clconv_tunedb_find(context->tunedb, problem, device, ops, c.matches);
    if (options->mode == CLCONV_PLAN_TUNED)
        return choose_tuned(&c, out, match);
    return choose_best(&c, out, match);
}
