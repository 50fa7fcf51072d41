/*
 * Each role has a list of candidates in order of preference: every kernel of
 * the table that covers the problem, with its default values, the cheapest
 * first; each followed by the same with the cast fused, then with weights as
 * they are, which needs less workspace. The first pair (bwd_data, bwd_weight)
 * that fits the workspace is the plan; the cast follows from the copies that
 * the pair wants. Where both are wanted and neither was named, one kernel for
 * both takes their place if it costs less. Forward is a cast and the first of
 * its own list that fits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "planner.h"

#include <string.h>

#include "operand.h"

#define MAX_CANDIDATES 48

typedef struct candidates {
    clconv_step step[MAX_CANDIDATES];
    double cost[MAX_CANDIDATES]; /* of the kernel with its defaults */
    int count;
} candidates;

typedef struct search {
    const clconv_problem *problem;
    const clconv_device *device;
    unsigned ops;
    clconv_choice choice[CLCONV_ROLES];
    const char *why[CLCONV_ROLES]; /* there is that choice, if there is one */
} search;

static clconv_task task_of(const search *s, const clconv_step *step)
{
    return (clconv_task){
        .problem = s->problem,
        .device = s->device,
        .values = step->values,
        .copies = step->copies,
        .counts = step->counts,
        .reads = step->reads,
        .bias = step->bias,
        .finishes_bias = step->finishes_bias,
        .baked = clconv_kernel_bakes(step->kernel, step->values),
    };
}

/* ---- Candidates of one role ------------------------------------------- */

/* Grants the copies that these values want: plain ones as far as the problem
 * casts, packed ones also of fp16 tensors, which may lie otherwise. */
static unsigned granted_copies(const search *s, const clconv_step *step)
{
    clconv_task task = task_of(s, step);
    unsigned wanted = step->kernel->wants_copies(&task);
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        if (!clconv_problem_casts(s->problem, t))
            wanted &= ~CLCONV_BIT(t);
        if (s->problem->math != CLCONV_MIXED)
            wanted &= ~CLCONV_PACKED(t);
    }
    return wanted;
}

/* What the step counts: not what a cast reads and writes anyway. */
static unsigned granted_counts(const search *s, const clconv_step *step)
{
    clconv_task task = task_of(s, step);
    if (!step->kernel->counts)
        return 0;
    return step->kernel->counts(&task) &
           ~clconv_operand_copied_bits(step->copies);
}

/* What a step of this kernel and these values is granted. False if the values
 * are not legal. */
static bool complete(const search *s, clconv_step *step)
{
    if (step->kernel->role != CLCONV_ROLE_CAST) {
        step->copies = granted_copies(s, step);
        step->counts = granted_counts(s, step);
    }
    clconv_task task = task_of(s, step);
    return step->kernel->legal(&task);
}

/* Adds the step if its values are legal: behind all of the same cost. */
static void consider(const search *s, clconv_step step, double cost,
                     candidates *out)
{
    if (!complete(s, &step) || out->count == MAX_CANDIDATES)
        return;
    int at = out->count++;
    for (; at > 0 && out->cost[at - 1] > cost; --at) {
        out->step[at] = out->step[at - 1];
        out->cost[at] = out->cost[at - 1];
    }
    out->step[at] = step;
    out->cost[at] = cost;
}

static double cost_of(const search *s, const clconv_step *step)
{
    clconv_task task = task_of(s, step);
    return step->kernel->cost ? step->kernel->cost(&task) : 0;
}

static int find_param(const clconv_kernel *k, const char *name)
{
    for (int i = 0; i < k->param_count; ++i)
        if (strcmp(k->params[i].name, name) == 0)
            return i;
    return -1;
}

/* The value of a named parameter that prints as text, or -1. */
static int find_named(const clconv_param *p, const char *text)
{
    for (int i = 0; i < p->count && p->names[0]; ++i)
        if (strcmp(p->names[i], text) == 0)
            return i;
    return -1;
}

/* A named parameter that is left open takes this value: false if there is none
 * such, or it has it. */
static bool set_named(const clconv_choice *choice, clconv_step *step,
                      const char *name, const char *value)
{
    int param = find_param(step->kernel, name);
    if (param < 0 || choice->given[param])
        return false;
    int named = find_named(&step->kernel->params[param], value);
    if (named < 0 || step->values[param] == named)
        return false;
    step->values[param] = named;
    return true;
}

static void consider_kernel(const search *s, const clconv_kernel *k,
                            candidates *out)
{
    const clconv_choice *choice = &s->choice[k->role];
    clconv_step step = {.kernel = k};
    step.why = choice->kernel ? s->why[k->role] : "default";
    k->defaults(s->problem, s->device, step.values);
    for (int i = 0; i < k->param_count; ++i)
        if (choice->given[i])
            step.values[i] = choice->values[i];
    if (k->role != CLCONV_ROLE_CAST)
        step.copies = granted_copies(s, &step);
    double cost = cost_of(s, &step);
    consider(s, step, cost, out);

    if (set_named(choice, &step, "cast", "fused"))
        consider(s, step, cost, out);
    if (set_named(choice, &step, "weights", "plain"))
        consider(s, step, cost, out);
}

static const char *role_text(clconv_role role)
{
    static const char *const texts[CLCONV_ROLES] = {
        [CLCONV_ROLE_CAST] = "the cast",
        [CLCONV_ROLE_BWD_DATA] = "dX",
        [CLCONV_ROLE_BWD_WEIGHT] = "dW",
        [CLCONV_ROLE_BACKWARD] = "dX and dW at once",
        [CLCONV_ROLE_FORWARD] = "Y",
    };
    return texts[role];
}

static clconv_status fail_none(const search *s, clconv_role role, bool covered)
{
    const clconv_kernel *asked = s->choice[role].kernel;
    if (!asked)
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "no kernel for %s covers this problem on this "
                           "device",
                           role_text(role));
    if (!covered)
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "plan: %s does not cover this problem on this "
                           "device (%s)",
                           asked->name, asked->summary);
    return clconv_fail(CLCONV_UNSUPPORTED,
                       "plan: these values of %s do not fit this problem and "
                       "device",
                       asked->name);
}

/* Does any kernel cover the problem? */
static bool gather(const search *s, clconv_role role, candidates *out)
{
    const clconv_kernel *asked = s->choice[role].kernel;
    bool covered = false;
    out->count = 0;
    for (int i = 0; i < clconv_kernel_count; ++i) {
        const clconv_kernel *k = clconv_kernels[i];
        if (k->role != role || (asked && k != asked))
            continue;
        if (!k->covers(s->problem, s->device))
            continue;
        covered = true;
        consider_kernel(s, k, out);
    }
    return covered;
}

static clconv_status collect(const search *s, clconv_role role, candidates *out)
{
    bool covered = gather(s, role, out);
    return out->count == 0 ? fail_none(s, role, covered) : CLCONV_OK;
}

/* ---- From choices to steps -------------------------------------------- */

static void add_cast(const search *s, const clconv_step *cast, unsigned reads,
                     unsigned copies, unsigned counts, clconv_steps *out)
{
    clconv_step *step = &out->step[out->count++];
    *step = *cast;
    step->reads = reads;
    step->copies = copies;
    step->counts = counts & ~clconv_operand_copied_bits(copies);
    step->bias = (s->ops & CLCONV_OP_DB) != 0;
}

/* Has dW's kernel a pass that takes the last sum of dbias along, which saves
 * the cast a launch? */
static bool finishes_bias(const search *s, const clconv_step *weight)
{
    clconv_task task = task_of(s, weight);
    return (s->ops & CLCONV_OP_DB) && weight->kernel->finishes_bias &&
           weight->kernel->finishes_bias(&task);
}

/* data or weight may be NULL: not wanted. */
static void assemble(const search *s, const clconv_step *cast,
                     const clconv_step *data, const clconv_step *weight,
                     clconv_steps *out)
{
    unsigned copies = (data ? data->copies : 0) | (weight ? weight->copies : 0);
    unsigned reads = CLCONV_BIT(CLCONV_DY) |
                     (weight ? CLCONV_BIT(CLCONV_X) : 0) |
                     (data ? CLCONV_BIT(CLCONV_W) : 0);
    *out = (clconv_steps){.problem = *s->problem, .ops = s->ops};
    unsigned counts = (data ? data->counts : 0) | (weight ? weight->counts : 0);
    bool finishes = weight && finishes_bias(s, weight);
    add_cast(s, cast, reads, copies, counts, out);
    out->step[0].finishes_bias = finishes;
    if (data)
        out->step[out->count++] = *data;
    if (weight) {
        out->step[out->count] = *weight;
        out->step[out->count++].finishes_bias = finishes;
    }
    clconv_steps_lay_out(out, s->device);
}

static clconv_status fail_workspace(size_t max_workspace, size_t least)
{
    return clconv_fail(CLCONV_UNSUPPORTED,
                       "max_workspace is %zu bytes; the smallest plan for "
                       "this problem needs %zu",
                       max_workspace, least);
}

/* A kernel a gradient, after a cast. */
static clconv_status choose_apart(const search *s, size_t max_workspace,
                                  clconv_steps *out)
{
    candidates cast, data = {.count = 0}, weight = {.count = 0};
    clconv_status status = collect(s, CLCONV_ROLE_CAST, &cast);
    if (status == CLCONV_OK && (s->ops & CLCONV_OP_DX))
        status = collect(s, CLCONV_ROLE_BWD_DATA, &data);
    if (status == CLCONV_OK && (s->ops & CLCONV_OP_DW))
        status = collect(s, CLCONV_ROLE_BWD_WEIGHT, &weight);
    if (status != CLCONV_OK)
        return status;

    size_t least = SIZE_MAX;
    for (int i = 0; i < (data.count ? data.count : 1); ++i)
        for (int j = 0; j < (weight.count ? weight.count : 1); ++j) {
            clconv_steps steps;
            assemble(s, &cast.step[0], data.count ? &data.step[i] : NULL,
                     weight.count ? &weight.step[j] : NULL, &steps);
            if (steps.workspace <= max_workspace) {
                *out = steps;
                return CLCONV_OK;
            }
            if (steps.workspace < least)
                least = steps.workspace;
        }
    return fail_workspace(max_workspace, least);
}

/* ---- Forward ------------------------------------------------------------ */

static void assemble_forward(const search *s, const clconv_step *cast,
                             const clconv_step *forward, clconv_steps *out)
{
    *out = (clconv_steps){.problem = *s->problem, .ops = s->ops};
    add_cast(s, cast, CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W),
             forward->copies, forward->counts, out);
    out->step[out->count++] = *forward;
    clconv_steps_lay_out(out, s->device);
}

static clconv_status choose_forward(const search *s, size_t max_workspace,
                                    clconv_steps *out)
{
    candidates cast, forward;
    clconv_status status = collect(s, CLCONV_ROLE_CAST, &cast);
    if (status == CLCONV_OK)
        status = collect(s, CLCONV_ROLE_FORWARD, &forward);
    if (status != CLCONV_OK)
        return status;
    size_t least = SIZE_MAX;
    for (int i = 0; i < forward.count; ++i) {
        clconv_steps steps;
        assemble_forward(s, &cast.step[0], &forward.step[i], &steps);
        if (steps.workspace <= max_workspace) {
            *out = steps;
            return CLCONV_OK;
        }
        if (steps.workspace < least)
            least = steps.workspace;
    }
    return fail_workspace(max_workspace, least);
}

/* ---- One kernel for all ------------------------------------------------ */

static bool wants_both(const search *s)
{
    return (s->ops & CLCONV_OP_DX) && (s->ops & CLCONV_OP_DW);
}

static void assemble_together(const search *s, const clconv_step *backward,
                              clconv_steps *out)
{
    *out = (clconv_steps){.problem = *s->problem, .ops = s->ops, .count = 1};
    out->step[0] = *backward;
    out->step[0].bias = (s->ops & CLCONV_OP_DB) != 0;
    clconv_steps_lay_out(out, s->device);
}

static clconv_status choose_together(const search *s, size_t max_workspace,
                                     clconv_steps *out)
{
    candidates backward;
    if (!wants_both(s))
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "plan: %s is for dX and dW together; this plan has "
                           "not both",
                           s->choice[CLCONV_ROLE_BACKWARD].kernel->name);
    clconv_status status = collect(s, CLCONV_ROLE_BACKWARD, &backward);
    if (status != CLCONV_OK)
        return status;
    assemble_together(s, &backward.step[0], out);
    return out->workspace <= max_workspace
               ? CLCONV_OK
               : fail_workspace(max_workspace, out->workspace);
}

static double cost_of_all(const search *s, const clconv_steps *steps)
{
    double sum = 0;
    for (int i = 0; i < steps->count; ++i)
        sum += cost_of(s, &steps->step[i]);
    return sum;
}

/* The cheapest for all, if it may be taken in place of these steps. */
static void prefer_together(const search *s, size_t max_workspace,
                            clconv_steps *steps)
{
    candidates backward;
    clconv_steps together;
    if (!wants_both(s))
        return;
    gather(s, CLCONV_ROLE_BACKWARD, &backward);
    if (backward.count == 0)
        return;
    assemble_together(s, &backward.step[0], &together);
    if (together.workspace <= max_workspace &&
        cost_of_all(s, &together) < cost_of_all(s, steps))
        *steps = together;
}

static bool names_apart(const clconv_choice choice[CLCONV_ROLES])
{
    return choice[CLCONV_ROLE_CAST].kernel ||
           choice[CLCONV_ROLE_BWD_DATA].kernel ||
           choice[CLCONV_ROLE_BWD_WEIGHT].kernel;
}

static clconv_status choose(const search *s, size_t max_workspace,
                            clconv_steps *out)
{
    if (s->ops & CLCONV_OP_FORWARD)
        return choose_forward(s, max_workspace, out);
    if (s->choice[CLCONV_ROLE_BACKWARD].kernel)
        return choose_together(s, max_workspace, out);
    clconv_status status = choose_apart(s, max_workspace, out);
    if (status == CLCONV_OK && !names_apart(s->choice))
        prefer_together(s, max_workspace, out);
    return status;
}

/* ---- The whole --------------------------------------------------------- */

/* May the suggestion for this role be added to what was asked for? */
static bool goes_with(const clconv_choice asked[CLCONV_ROLES], int role)
{
    return role == CLCONV_ROLE_BACKWARD ? !names_apart(asked)
                                        : !asked[CLCONV_ROLE_BACKWARD].kernel;
}

/* What was asked for, else what was suggested. */
static clconv_status read_choices(const clconv_request *request, search *s)
{
    clconv_choice suggested[CLCONV_ROLES];
    clconv_status status = clconv_choices_parse(request->plan, s->choice);
    if (status == CLCONV_OK)
        status = clconv_choices_parse(request->suggestion, suggested);
    if (status != CLCONV_OK)
        return status;
    clconv_choice asked[CLCONV_ROLES];
    memcpy(asked, s->choice, sizeof asked);
    for (int role = 0; role < CLCONV_ROLES; ++role) {
        s->why[role] = "asked for";
        if (s->choice[role].kernel || !suggested[role].kernel ||
            !goes_with(asked, role))
            continue;
        s->choice[role] = suggested[role];
        if (request->suggestion_unbaked)
            clconv_kernel_unbake(s->choice[role].kernel, s->choice[role].values);
        s->why[role] = request->suggestion_why;
    }
    return CLCONV_OK;
}

clconv_status clconv_planner_choose(const clconv_problem *problem,
                                    const clconv_device *device,
                                    const clconv_request *request,
                                    clconv_steps *out)
{
    search s = {.problem = problem, .device = device, .ops = request->ops};
    clconv_status status = read_choices(request, &s);
    if (status != CLCONV_OK)
        return status;
    return choose(&s, request->max_workspace, out);
}

bool clconv_planner_step(const clconv_problem *problem,
                         const clconv_device *device,
                         const clconv_kernel *kernel, const int *values,
                         clconv_step *out, double *cost)
{
    search s = {.problem = problem, .device = device};
    clconv_step step = {.kernel = kernel, .why = "asked for"};
    memcpy(step.values, values, sizeof *values * (size_t)kernel->param_count);
    if (!kernel->covers(problem, device) || !complete(&s, &step))
        return false;
    *cost = cost_of(&s, &step);
    *out = step;
    return true;
}
