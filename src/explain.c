/*
 * clconv_plan_explain(): a plan as text for people.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

static void explain_device(const clconv_device *d, clconv_text *out)
{
    clconv_text_printf(out, "device: %s / %s (driver %s, %d compute units",
                       d->platform, d->name, d->driver, d->compute_units);
    if (d->units) {
        clconv_text_puts(out, ", unit ");
        clconv_units_format(d->units, out);
        clconv_text_puts(out, d->unit_emulated ? " emulated" : "");
    }
    clconv_text_puts(out, ")\n");
}

/* "dw, db" of an op mask, in the order of clconv_op's bits. */
static void explain_ops(unsigned ops, clconv_text *out)
{
    static const char *const names[] = {"dw", "db", "dx", "y"};
    const char *separator = "";
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
        if (ops & (1u << i)) {
            clconv_text_printf(out, "%s%s", separator, names[i]);
            separator = ", ";
        }
}

/* What a pass serves in this plan: a cast's serves gradients and Y. */
static unsigned served(const clconv_plan *plan, const clconv_pass *pass)
{
    bool forward = (plan->steps.ops & CLCONV_OP_FORWARD) != 0;
    return pass->serves &
           (forward ? (unsigned)CLCONV_OP_FORWARD : CLCONV_OP_BACKWARD);
}

static void explain_passes(const clconv_plan *plan, int index, clconv_text *out)
{
    clconv_task task = clconv_step_task(&plan->steps, index, &plan->device);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = plan->steps.step[index].kernel->passes(
        &task, plan->steps.problem.n, pass);
    for (int i = 0; i < count; ++i) {
        clconv_text_printf(out, "    %s: %zu groups of %zu", pass[i].entry,
                           pass[i].groups, pass[i].local);
        unsigned ops = served(plan, &pass[i]);
        clconv_text_puts(out, ops ? ", for " : "");
        explain_ops(ops, out);
        clconv_text_puts(out, pass[i].counts ? ", counts" : "");
        clconv_text_puts(out, "\n");
    }
}

/* " (copied, summed)" */
static void explain_done(const clconv_step *step, clconv_tensor t,
                         clconv_text *out)
{
    const char *words[3];
    int count = 0;
    if (step->copies & CLCONV_BIT(t))
        words[count++] = "copied";
    if (step->copies & CLCONV_PACKED(t))
        words[count++] = "packed";
    if (step->bias && t == CLCONV_DY)
        words[count++] = "summed";
    for (int i = 0; i < count; ++i)
        clconv_text_printf(out, "%s%s", i ? ", " : " (", words[i]);
    clconv_text_puts(out, count ? ")" : "");
}

/* " of dy (copied, summed), x (packed), w" */
static void explain_cast(const clconv_step *step, clconv_text *out)
{
    const char *separator = " of";
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        if (!(step->reads & CLCONV_BIT(t)))
            continue;
        clconv_text_printf(out, "%s %s", separator, clconv_tensor_name(t));
        explain_done(step, t, out);
        separator = ",";
    }
}

static void explain_step(const clconv_plan *plan, int index, clconv_text *out)
{
    const clconv_step *step = &plan->steps.step[index];
    clconv_task task = clconv_step_task(&plan->steps, index, &plan->device);
    clconv_text_printf(out, "step %d: %s", index + 1, step->kernel->name);
    if (step->kernel->role == CLCONV_ROLE_CAST)
        explain_cast(step, out);
    clconv_text_printf(out, " (%s; program %s, %.1f ms; scratch %zu bytes)\n",
                       step->why, clconv_origin_name(plan->built[index].origin),
                       plan->built[index].milliseconds,
                       step->kernel->scratch(&task));
    explain_passes(plan, index, out);
}

void clconv_plan_describe_programs(const clconv_plan *plan, clconv_text *out)
{
    int count[CLCONV_ORIGINS] = {0};
    for (int i = 0; i < plan->steps.count; ++i)
        count[plan->built[i].origin]++;
    clconv_text_printf(out, "programs: %d from disk, %d built from source",
                       count[CLCONV_ORIGIN_DISK], count[CLCONV_ORIGIN_BUILT]);
    if (count[CLCONV_ORIGIN_MEMORY] > 0)
        clconv_text_printf(out, ", %d from memory", count[CLCONV_ORIGIN_MEMORY]);
}

/* The record that the plan comes from, and what it promises. */
static void explain_record(const clconv_match *match, clconv_text *out)
{
    const clconv_record *r = match->record;
    if (!r)
        return;
    clconv_text_printf(out, "record: %s: ", match->why);
    clconv_problem_format(&r->problem, out);
    clconv_text_printf(out, ", %.1f us", r->microseconds);
    if (r->default_microseconds > 0)
        clconv_text_printf(out, " (default plan %.1f us)",
                           r->default_microseconds);
    clconv_text_printf(out, ", %s%son %s (driver %s)\n", r->date,
                       r->date[0] ? " " : "", r->device.name, r->device.driver);
}

static void explain_copy(const clconv_steps *steps, clconv_tensor tensor,
                         bool packed, clconv_text *out)
{
    clconv_text_printf(out, "    %s copy of %s: %zu bytes at %zu\n",
                       packed ? "packed" : "fp16", clconv_tensor_name(tensor),
                       clconv_steps_copy_bytes(steps, tensor, packed),
                       packed ? steps->packed_offset[tensor]
                              : steps->copy_offset[tensor]);
}

static void explain_workspace(const clconv_steps *steps, clconv_text *out)
{
    unsigned copies = clconv_steps_copies(steps);
    clconv_text_printf(out, "workspace: %zu bytes\n", steps->workspace);
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        if (copies & CLCONV_BIT(t))
            explain_copy(steps, t, false, out);
        if (copies & CLCONV_PACKED(t))
            explain_copy(steps, t, true, out);
    }
}

static double gflop(const clconv_steps *steps)
{
    int results = ((steps->ops & CLCONV_OP_DW) != 0) +
                  ((steps->ops & CLCONV_OP_DX) != 0) +
                  ((steps->ops & CLCONV_OP_FORWARD) != 0);
    return 1e-9 * results * clconv_problem_flops(&steps->problem);
}

static void explain(const clconv_plan *plan, clconv_text *out)
{
    const clconv_steps *steps = &plan->steps;
    clconv_text_puts(out, "problem: ");
    clconv_problem_format(&steps->problem, out);
    clconv_text_puts(out, "\ncomputes: ");
    explain_ops(steps->ops, out);
    clconv_text_printf(out, " (%.3g GFLOP)\n", gflop(steps));
    explain_device(&plan->device, out);
    clconv_text_puts(out, "plan: ");
    clconv_steps_format(steps, out);
    clconv_text_puts(out, "\n");
    explain_record(&plan->match, out);
    for (int i = 0; i < steps->count; ++i)
        explain_step(plan, i, out);
    clconv_plan_describe_programs(plan, out);
    clconv_text_puts(out, "\n");
    explain_workspace(steps, out);
    clconv_text_printf(out, "replay: clconv-check%s --problem \"",
                       steps->ops & CLCONV_OP_FORWARD ? " --forward" : "");
    clconv_problem_format(&steps->problem, out);
    clconv_text_puts(out, "\" --plan \"");
    clconv_steps_format(steps, out);
    clconv_text_puts(out, "\"\n");
}

clconv_status clconv_plan_explain(const clconv_plan *plan, char *text,
                                  size_t size, size_t *needed)
{
    if (!plan || (!text && size > 0))
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s is NULL",
                           plan ? "text" : "plan");
    clconv_text out = CLCONV_TEXT_EMPTY;
    explain(plan, &out);
    size_t length = out.length;
    char *whole = clconv_text_take(&out);
    if (!whole)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a text");
    if (size > 0) {
        size_t fits = length < size - 1 ? length : size - 1;
        memcpy(text, whole, fits);
        text[fits] = '\0';
    }
    if (needed)
        *needed = length + 1;
    free(whole);
    return CLCONV_OK;
}
