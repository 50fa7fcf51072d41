/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "pack.h"

clconv_task clconv_step_task(const clconv_steps *steps, int index,
                             const clconv_device *device)
{
    const clconv_step *step = &steps->step[index];
    return (clconv_task){
        .problem = &steps->problem,
        .device = device,
        .values = step->values,
        .copies = step->copies,
        .counts = step->counts,
        .reads = step->reads,
        .bias = step->bias,
        .finishes_bias = step->finishes_bias,
        .baked = clconv_kernel_bakes(step->kernel, step->values),
    };
}

/* ---- Workspace -------------------------------------------------------- */

unsigned clconv_steps_copies(const clconv_steps *steps)
{
    unsigned copies = 0;
    for (int i = 0; i < steps->count; ++i)
        copies |= steps->step[i].copies;
    return copies;
}

size_t clconv_steps_copy_bytes(const clconv_steps *steps, clconv_tensor tensor,
                               bool packed)
{
    const clconv_problem *p = &steps->problem;
    int64_t elements = packed ? clconv_pack_elements(p, tensor)
                              : clconv_problem_elements(p, tensor);
    return (size_t)elements * 2;
}

static size_t align_up(size_t bytes)
{
    return (bytes + CLCONV_WORKSPACE_ALIGN - 1) / CLCONV_WORKSPACE_ALIGN *
           CLCONV_WORKSPACE_ALIGN;
}

/* Bytes behind offset of an operand's copies. */
static size_t lay_out_copies(clconv_steps *steps, clconv_tensor t, size_t offset)
{
    unsigned copies = clconv_steps_copies(steps);
    steps->copy_offset[t] = offset;
    if (copies & CLCONV_BIT(t))
        offset += align_up(clconv_steps_copy_bytes(steps, t, false));
    steps->packed_offset[t] = offset;
    if (copies & CLCONV_PACKED(t))
        offset += align_up(clconv_steps_copy_bytes(steps, t, true));
    return offset;
}

/* Does a later step read what this one left? */
static bool keeps_scratch(const clconv_step *step)
{
    return step->kernel->role == CLCONV_ROLE_CAST && step->finishes_bias;
}

clconv_bias_sums clconv_steps_bias_sums(const clconv_steps *steps,
                                        const clconv_device *device,
                                        int64_t batch, size_t *offset)
{
    int cast = 0;
    while (!keeps_scratch(&steps->step[cast]))
        ++cast;
    clconv_task task = clconv_step_task(steps, cast, device);
    *offset = steps->step[cast].scratch_offset;
    return steps->step[cast].kernel->bias_sums(&task, batch);
}

/* Copies lie one after another, then a cast's scratch that a later step reads.
 * Steps run one after another, so all others share one scratch region behind
 * that, as large as the largest. */
void clconv_steps_lay_out(clconv_steps *steps, const clconv_device *device)
{
    size_t end = 0, scratch = 0;
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t)
        end = lay_out_copies(steps, t, end);
    for (int i = 0; i < steps->count; ++i) {
        clconv_task task = clconv_step_task(steps, i, device);
        size_t bytes = align_up(steps->step[i].kernel->scratch(&task));
        steps->step[i].scratch_offset = end;
        if (keeps_scratch(&steps->step[i]))
            end += bytes;
        else if (bytes > scratch)
            scratch = bytes;
    }
    steps->workspace = end + scratch;
}

/* ---- Printing --------------------------------------------------------- */

void clconv_steps_format(const clconv_steps *steps, clconv_text *out)
{
    const char *separator = "";
    for (int i = 0; i < steps->count; ++i) {
        const clconv_step *step = &steps->step[i];
        clconv_text_printf(out, "%s%s", separator, step->kernel->name);
        if (step->kernel->param_count)
            clconv_text_puts(out, ":");
        clconv_param_format(step->kernel->params, step->kernel->param_count,
                            step->values, out);
        separator = ";";
    }
}

/* ---- Parsing ---------------------------------------------------------- */

static void list_kernels(clconv_text *why)
{
    for (int i = 0; i < clconv_kernel_count; ++i)
        clconv_text_printf(why, "%s %s", i ? "," : "", clconv_kernels[i]->name);
}

/* Turns a sentence about a part of the plan string into the failure. */
static clconv_status fail_plan(clconv_text *why)
{
    char *sentence = clconv_text_take(why);
    if (!sentence)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "out of memory");
    clconv_status status =
        clconv_fail(CLCONV_INVALID_ARGUMENT, "plan: %s", sentence);
    free(sentence);
    return status;
}

/* Index of the parameter that an assignment names; it was parsed before. */
static int param_index(const clconv_kernel *k, const char *text)
{
    for (int i = 0; i < k->param_count; ++i) {
        size_t length = strlen(k->params[i].name);
        if (strncmp(k->params[i].name, text, length) == 0 && text[length] == '=')
            return i;
    }
    return 0;
}

/* "name=value,name=value" of one kernel. */
static clconv_status parse_values(const char *text, size_t length,
                                  clconv_choice *out)
{
    const clconv_kernel *k = out->kernel;
    while (length) {
        const char *comma = memchr(text, ',', length);
        size_t part = comma ? (size_t)(comma - text) : length;
        clconv_text why = CLCONV_TEXT_EMPTY;
        if (!clconv_param_parse(k->params, k->param_count, text, part,
                                out->values, &why)) {
            clconv_text sentence = CLCONV_TEXT_EMPTY;
            clconv_text_printf(&sentence, "%s: ", k->name);
            clconv_text_append(&sentence, why.data ? why.data : "", why.length);
            clconv_text_free(&why);
            return fail_plan(&sentence);
        }
        out->given[param_index(k, text)] = true;
        text += part + (comma ? 1 : 0);
        length -= part + (comma ? 1 : 0);
    }
    return CLCONV_OK;
}

/* Is there a backward beside another kernel? */
static bool is_with_others(const clconv_choice choice[CLCONV_ROLES])
{
    int count = 0;
    for (int role = 0; role < CLCONV_ROLES; ++role)
        count += choice[role].kernel != NULL;
    return choice[CLCONV_ROLE_BACKWARD].kernel && count > 1;
}

/* "kernel" or "kernel:values". */
static clconv_status parse_kernel(const char *text, size_t length,
                                  clconv_choice out[CLCONV_ROLES])
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    const clconv_kernel *k = clconv_kernel_find(text, name);
    clconv_text why = CLCONV_TEXT_EMPTY;
    if (!k) {
        clconv_text_printf(&why, "no kernel \"%.*s\"; there is",
                           (int)(name < 80 ? name : 80), text);
        list_kernels(&why);
        return fail_plan(&why);
    }
    clconv_choice *choice = &out[k->role];
    if (choice->kernel) {
        clconv_text_printf(&why, "%s and %s do the same; name one",
                           choice->kernel->name, k->name);
        return fail_plan(&why);
    }
    choice->kernel = k;
    if (is_with_others(out)) {
        clconv_text_printf(&why, "%s does all by itself; name no other kernel",
                           out[CLCONV_ROLE_BACKWARD].kernel->name);
        return fail_plan(&why);
    }
    if (!colon)
        return CLCONV_OK;
    return parse_values(colon + 1, length - name - 1, choice);
}

clconv_status clconv_choices_parse(const char *text,
                                   clconv_choice out[CLCONV_ROLES])
{
    clconv_choice choices[CLCONV_ROLES] = {{0}};
    while (text && *text) {
        size_t length = strcspn(text, ";");
        clconv_status status = parse_kernel(text, length, choices);
        if (status != CLCONV_OK)
            return status;
        text += length;
        text += *text == ';';
    }
    memcpy(out, choices, sizeof choices);
    return CLCONV_OK;
}
