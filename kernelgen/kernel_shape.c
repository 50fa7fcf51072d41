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

void clconv_shape_add(clconv_shape *s, const char *name, int64_t value)
{
    assert(s->count < CLCONV_MAX_SHAPE && strlen(name) < sizeof s->name[0]);
    snprintf(s->name[s->count], sizeof s->name[0], "%s", name);
    s->value[s->count++] = value;
}

void clconv_shape_arg(const clconv_shape *s, clconv_pass *pass)
{
    if (s->baked)
        return;
    clconv_entry_arg(pass, CLCONV_ARG_SHAPE, CLCONV_DY);
    memcpy(pass->shape, s->value, sizeof pass->shape);
    pass->shape_count = s->count;
}

static void emit_members(clconv_emit *e, const clconv_shape *s, const char *line)
{
    for (int i = 0; i < s->count; ++i) {
        clconv_emit_set_text(e, "member", s->name[i]);
        clconv_emit_set(e, "value", s->value[i]);
        clconv_emit_line(e, line);
    }
}

void clconv_shape_emit(clconv_emit *e, const clconv_shape *s)
{
    clconv_emit_line(e, "typedef struct {");
    emit_members(e, s, "    long $member;");
    clconv_emit_line(e, "} shape_t;");
    clconv_emit_blank(e);
}

void clconv_shape_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const clconv_shape *s)
{
    clconv_entry_open(e, t, pass, NULL);
    if (!s->baked)
        return;
    clconv_emit_line(e, "const shape_t shape = {");
    emit_members(e, s, "    .$member = $value,");
    clconv_emit_line(e, "};");
}
