/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"

#include <stdio.h>

#include "operand.h"
#include "sizes.h"

void clconv_entry_arg(clconv_pass *pass, clconv_arg_kind kind,
                      clconv_tensor tensor)
{
    pass->args[pass->arg_count++] = (clconv_arg){kind, tensor};
}

static bool is_pointer(clconv_arg_kind kind)
{
    return kind == CLCONV_ARG_TENSOR || kind == CLCONV_ARG_COPY ||
           kind == CLCONV_ARG_PACKED || kind == CLCONV_ARG_OPERAND ||
           kind == CLCONV_ARG_SCRATCH || kind == CLCONV_ARG_BIAS_SUMS ||
           kind == CLCONV_ARG_COUNTS;
}

/* beta, or of several beta_<tensor>. */
static void set_beta(clconv_emit *e, const clconv_pass *pass,
                     const clconv_arg *arg)
{
    int count = 0;
    char name[32] = "beta";
    for (int i = 0; i < pass->arg_count; ++i)
        count += pass->args[i].kind == CLCONV_ARG_BETA;
    if (count > 1)
        snprintf(name, sizeof name, "beta_%s", clconv_tensor_name(arg->tensor));
    clconv_emit_set_text(e, "name", name);
}

/* $name of an argument. */
static void set_name(clconv_emit *e, const clconv_arg *arg)
{
    const char *tensor = clconv_tensor_name(arg->tensor);
    char name[32];
    snprintf(name, sizeof name, "%s", tensor);
    if (arg->kind == CLCONV_ARG_SCRATCH)
        snprintf(name, sizeof name, "scratch");
    if (arg->kind == CLCONV_ARG_BIAS_SUMS)
        snprintf(name, sizeof name, "bias_sums");
    if (arg->kind == CLCONV_ARG_COPY)
        snprintf(name, sizeof name, "%s_copy", tensor);
    if (arg->kind == CLCONV_ARG_PACKED)
        snprintf(name, sizeof name, "%s_packed", tensor);
    if (arg->kind == CLCONV_ARG_COUNTS)
        snprintf(name, sizeof name, "%s_counts", tensor);
    clconv_emit_set_text(e, "name", name);
}

/* $type of what a pointer argument points to. */
static void set_type(clconv_emit *e, const clconv_task *t, const clconv_arg *arg)
{
    bool half_type = t->problem->type[arg->tensor] == CLCONV_F16;
    if (arg->kind == CLCONV_ARG_OPERAND)
        half_type = clconv_operand_is_half(t, arg->tensor);
    const char *type = half_type ? "half" : "float";
    if (arg->kind == CLCONV_ARG_COPY || arg->kind == CLCONV_ARG_PACKED)
        type = "half";
    if (arg->kind == CLCONV_ARG_SCRATCH || arg->kind == CLCONV_ARG_BIAS_SUMS)
        type = "float";
    if (arg->kind == CLCONV_ARG_COUNTS)
        type = "uint";
    bool input =
        clconv_tensor_is_input(arg->tensor) &&
        (arg->kind == CLCONV_ARG_TENSOR || arg->kind == CLCONV_ARG_OPERAND);
    clconv_emit_set_text(e, "const", input ? "const " : "");
    clconv_emit_set_text(e, "type", type);
}

/* The declaration without what follows it, $tail. */
static const char *declaration(const clconv_task *t, clconv_arg_kind kind)
{
    switch (kind) {
    case CLCONV_ARG_BIAS_SUMS:
        return "    __global const float *$name, long ${name}_offset, "
               "int bias_count, int bias_run$tail";
    case CLCONV_ARG_BETA: return "    float $name$tail";
    case CLCONV_ARG_BATCH: return "    int batch$tail";
    case CLCONV_ARG_ELEMENTS: return "    long elements$tail";
    case CLCONV_ARG_SIZES:
        return t->baked ? "    int batch$tail" : "    sizes_t sizes$tail";
    case CLCONV_ARG_SHAPE: return "    shape_t shape$tail";
    case CLCONV_ARG_CALL: return "    call_t call$tail";
    case CLCONV_ARG_MAP: return "    map_t ${name}_map$tail";
    default: return "    __global $const$type *$name, long ${name}_offset$tail";
    }
}

static void emit_arg(clconv_emit *e, const clconv_task *t,
                     const clconv_pass *pass, const clconv_arg *arg, bool last)
{
    set_name(e, arg);
    if (arg->kind == CLCONV_ARG_BETA)
        set_beta(e, pass, arg);
    if (is_pointer(arg->kind))
        set_type(e, t, arg);
    clconv_emit_set_text(e, "tail", last ? ")" : ",");
    if (last)
        clconv_emit_open(e, declaration(t, arg->kind));
    else
        clconv_emit_line(e, declaration(t, arg->kind));
}

static void emit_offset(clconv_emit *e, const clconv_arg *arg)
{
    if (!is_pointer(arg->kind))
        return;
    set_name(e, arg);
    if (arg->kind == CLCONV_ARG_COUNTS)
        clconv_emit_line(e, "if ($name)");
    clconv_emit_line(e, arg->kind == CLCONV_ARG_COUNTS
                            ? "    $name += ${name}_offset;"
                            : "$name += ${name}_offset;");
}

void clconv_entry_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const char *attribute)
{
    clconv_emit_set_text(e, "entry", pass->entry);
    clconv_emit_line(e, "__kernel");
    if (attribute)
        clconv_emit_line(e, attribute);
    clconv_emit_line(e, "void $entry(");
    for (int i = 0; i < pass->arg_count; ++i)
        emit_arg(e, t, pass, &pass->args[i], i == pass->arg_count - 1);
    for (int i = 0; i < pass->arg_count; ++i)
        emit_offset(e, &pass->args[i]);
    for (int i = 0; i < pass->arg_count; ++i)
        if (pass->args[i].kind == CLCONV_ARG_SIZES && t->baked)
            clconv_sizes_emit_baked(e, t->problem);
}

void clconv_entry_emit_apart(clconv_emit *e, const clconv_task *t, int local)
{
    if (t->device->is_cpu && local == 1)
        clconv_emit_line(e, "__attribute__((noinline))");
}
