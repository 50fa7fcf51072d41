/*
 * All members are longs, so that host and device agree about the struct
 * without padding; text that counts in ints says so where it reads them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_shape.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "entry.h"

static void add(clconv_shape *s, const char *name, int64_t value,
                clconv_shape_kind kind)
{
    assert(s->count < CLCONV_MAX_SHAPE && strlen(name) < sizeof s->name[0]);
    snprintf(s->name[s->count], sizeof s->name[0], "%s", name);
    s->kind[s->count] = kind;
    s->value[s->count++] = value;
}

void clconv_shape_add(clconv_shape *s, const char *name, int64_t value)
{
    add(s, name, value, CLCONV_SHAPE_PLAIN);
}

void clconv_shape_add_varying(clconv_shape *s, const char *name, int64_t value)
{
    add(s, name, value, CLCONV_SHAPE_VARYING);
}

void clconv_shape_add_fixed(clconv_shape *s, const char *name, int64_t value)
{
    add(s, name, value, CLCONV_SHAPE_FIXED);
}

static bool is_constant(const clconv_shape *s, int member)
{
    return s->baked ? s->kind[member] != CLCONV_SHAPE_VARYING
                    : s->kind[member] == CLCONV_SHAPE_FIXED;
}

static int count_constants(const clconv_shape *s)
{
    int count = 0;
    for (int i = 0; i < s->count; ++i)
        count += is_constant(s, i);
    return count;
}

void clconv_shape_arg(const clconv_shape *s, clconv_pass *pass)
{
    bool whole = count_constants(s) == 0;
    pass->shape_count = 0;
    for (int i = 0; i < s->count; ++i)
        if (!is_constant(s, i))
            pass->shape[pass->shape_count++] = s->value[i];
    if (pass->shape_count > 0)
        clconv_entry_arg(pass, whole ? CLCONV_ARG_SHAPE : CLCONV_ARG_CALL,
                         CLCONV_DY);
}

/* A line for each member: NULL for none. */
static void emit_members(clconv_emit *e, const clconv_shape *s,
                         const char *constant, const char *argument)
{
    for (int i = 0; i < s->count; ++i) {
        const char *line = is_constant(s, i) ? constant : argument;
        if (!line)
            continue;
        clconv_emit_set_text(e, "member", s->name[i]);
        clconv_emit_set(e, "value", s->value[i]);
        clconv_emit_line(e, line);
    }
}

#define MEMBER "    long $member;"

void clconv_shape_emit(clconv_emit *e, const clconv_shape *s)
{
    clconv_emit_line(e, "typedef struct {");
    emit_members(e, s, MEMBER, MEMBER);
    clconv_emit_line(e, "} shape_t;");
    clconv_emit_blank(e);
    int constants = count_constants(s);
    if (constants == 0 || constants == s->count)
        return;
    clconv_emit_line(e, "typedef struct {");
    emit_members(e, s, NULL, MEMBER);
    clconv_emit_line(e, "} call_t;");
    clconv_emit_blank(e);
}

void clconv_shape_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const clconv_shape *s)
{
    clconv_entry_open(e, t, pass, NULL);
    if (count_constants(s) == 0)
        return;
    clconv_emit_line(e, "const shape_t shape = {");
    emit_members(e, s, "    .$member = $value,", "    .$member = call.$member,");
    clconv_emit_line(e, "};");
}
