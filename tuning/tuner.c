/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tuner.h"

#include <math.h>

#include "course.h"

#define DEFAULT_TRIAL_SECONDS 0.1
#define DEFAULT_BATCH 8

/* The parts of the budget after which these stages end; what one leaves is the
 * next's. The rest is for the final turns and the judgement. */
#define DATA_UNTIL 0.4
#define WEIGHT_UNTIL 0.76 /* or data, if there is no weight */
#define BACKWARD_UNTIL 0.8 /* one kernel for both */
#define TOGETHER_UNTIL 0.86

const char *clconv_stage_name(clconv_stage stage)
{
    static const char *const names[CLCONV_STAGES] = {
        [CLCONV_STAGE_BWD_DATA] = "bwd_data",
        [CLCONV_STAGE_BWD_WEIGHT] = "bwd_weight",
        [CLCONV_STAGE_TOGETHER] = "together",
        [CLCONV_STAGE_FINAL] = "final",
        [CLCONV_STAGE_JUDGE] = "judge",
    };
    if ((unsigned)stage >= CLCONV_STAGES)
        return "unknown";
    return names[stage];
}

static clconv_tuner_rules complete(const clconv_tuner_rules *given)
{
    clconv_tuner_rules rules = *given;
    if (!(rules.trial_seconds > 0))
        rules.trial_seconds = DEFAULT_TRIAL_SECONDS;
    if (rules.jobs < 1)
        rules.jobs = 1;
    if (rules.batch < 1)
        rules.batch = DEFAULT_BATCH;
    if (rules.batch > CLCONV_BATCH_MOST)
        rules.batch = CLCONV_BATCH_MOST;
    return rules;
}

static double until(const clconv_course *c, double part)
{
    return c->rules.exhaustive ? INFINITY : part * c->rules.seconds;
}

clconv_scope clconv_course_scope(const clconv_course *c, clconv_role role)
{
    return (clconv_scope){
        .problem = c->problem,
        .device = c->device,
        .role = role,
        .within = c->rules.within,
        .seed = c->rules.seed,
    };
}

/* One role by itself. NULL: no memory, or the role is not wanted. */
static clconv_search *search_role(clconv_course *c, clconv_role role,
                                  clconv_stage stage, unsigned ops, double end)
{
    if (!ops)
        return NULL;
    clconv_scope scope = clconv_course_scope(c, role);
    clconv_search *search = clconv_search_new(&scope);
    if (!search)
        return NULL;
    clconv_contest alone = clconv_contest_make(stage, ops);
    bool is_all = ops == c->ops;
    c->whole.stage = stage;
    clconv_stage_search(c, is_all ? &c->whole : &alone, search, "", end);
    return search;
}

/* One kernel for both gradients, in the contest of whole plans. */
static void search_backward(clconv_course *c, double end)
{
    if ((c->ops & CLCONV_OP_DX) && (c->ops & CLCONV_OP_DW))
        clconv_search_free(search_role(c, CLCONV_ROLE_BACKWARD,
                                       CLCONV_STAGE_TOGETHER, c->ops, end));
}

static void search_all(clconv_course *c)
{
    unsigned data_ops = c->ops & CLCONV_OP_DX;
    unsigned weight_ops = c->ops & (CLCONV_OP_DW | CLCONV_OP_DB);
    if (!(c->ops & CLCONV_OP_DW))
        weight_ops = 0; /* the cast alone sums db */
    double data_until = until(c, weight_ops ? DATA_UNTIL : WEIGHT_UNTIL);
    clconv_search *data = search_role(
        c, CLCONV_ROLE_BWD_DATA, CLCONV_STAGE_BWD_DATA, data_ops, data_until);
    clconv_search *weight =
        search_role(c, CLCONV_ROLE_BWD_WEIGHT, CLCONV_STAGE_BWD_WEIGHT,
                    weight_ops, until(c, WEIGHT_UNTIL));
    search_backward(c, until(c, BACKWARD_UNTIL));
    clconv_stage_together(c, data, weight, until(c, TOGETHER_UNTIL));
    clconv_search_free(weight);
    clconv_search_free(data);
}

/* It is tried first, so that there always is an answer, and the anchor of all
 * that are compared with it. */
static void try_default(clconv_course *c)
{
    clconv_attempt_make(c, c->ops, "", &c->default_plan);
    clconv_contest_try(c, &c->whole, &c->default_plan, 1);
    c->setup = clconv_course_spent(c);
}

/* An earlier run's winner: the result is at least as good. */
static void try_known(clconv_course *c)
{
    clconv_attempt known;
    clconv_attempt_make(c, c->ops, c->rules.known, &known);
    clconv_contest_try(c, &c->whole, &known, 1);
}

clconv_status clconv_tuner_run(const clconv_problem *problem,
                               const clconv_device *device, unsigned ops,
                               size_t max_workspace,
                               const clconv_tuner_rules *rules,
                               const clconv_tuner_backend *backend,
                               clconv_tuner_result *out)
{
    clconv_course c = {
        .problem = problem,
        .device = device,
        .ops = ops,
        .max_workspace = max_workspace,
        .rules = complete(rules),
        .backend = backend,
        .start = backend->clock(backend->user),
        .whole = clconv_contest_make(CLCONV_STAGE_TOGETHER, ops),
    };
    clconv_choice choices[CLCONV_ROLES];
    clconv_status status = clconv_choices_parse(rules->within, choices);
    if (status != CLCONV_OK)
        return status;
    try_default(&c);
    if (c.default_plan.trial.outcome == CLCONV_TRIAL_REFUSED)
        return clconv_fail(CLCONV_UNSUPPORTED, "%s", c.default_plan.trial.why);
    if (!c.stopped && rules->known)
        try_known(&c);
    if (!c.stopped)
        search_all(&c);
    return clconv_stage_final(&c, out);
}
