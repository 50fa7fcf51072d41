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

static void add(clconv_shape *s, const char *name, int64_t value, bool varying)
{
    assert(s->count < CLCONV_MAX_SHAPE && strlen(name) < sizeof s->name[0]);
    snprintf(s->name[s->count], sizeof s->name[0], "%s", name);
    s->varying[s->count] = varying;
    s->value[s->count++] = value;
}

void clconv_shape_add(clconv_shape *s, const char *name, int64_t value)
{
    add(s, name, value, false);
}

void clconv_shape_add_varying(clconv_shape *s, const char *name, int64_t value)
{
    add(s, name, value, true);
}

void clconv_shape_arg(const clconv_shape *s, clconv_pass *pass)
{
    pass->shape_count = 0;
    for (int i = 0; i < s->count; ++i)
        if (s->varying[i] || !s->baked)
            pass->shape[pass->shape_count++] = s->value[i];
    if (pass->shape_count > 0)
        clconv_entry_arg(pass, s->baked ? CLCONV_ARG_CALL : CLCONV_ARG_SHAPE,
                         CLCONV_DY);
}

static bool has_varying(const clconv_shape *s)
{
    for (int i = 0; i < s->count; ++i)
        if (s->varying[i])
            return true;
    return false;
}

/* A line for each member: NULL for none. */
static void emit_members(clconv_emit *e, const clconv_shape *s,
                         const char *fixed, const char *varying)
{
    for (int i = 0; i < s->count; ++i) {
        const char *line = s->varying[i] ? varying : fixed;
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
    if (!s->baked || !has_varying(s))
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
    if (!s->baked)
        return;
    clconv_emit_line(e, "const shape_t shape = {");
    emit_members(e, s, "    .$member = $value,", "    .$member = call.$member,");
    clconv_emit_line(e, "};");
}
