/*
 * Lines go into one growing text; holes are a short list searched linearly
 * (a kernel has a few dozen).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "text.h"

#define MAX_HOLES 160
#define MAX_NAME 40
#define MAX_VALUE 96
#define MAX_PARTS 32

typedef struct hole {
    char name[MAX_NAME];
    char value[MAX_VALUE];
} hole;

struct clconv_emit {
    clconv_text out;
    hole holes[MAX_HOLES];
    int hole_count;
    const char *parts[MAX_PARTS]; /* names of those that were emitted */
    int part_count;
    int depth; /* open blocks */
    char error[160];
};

clconv_emit *clconv_emit_new(void)
{
    return calloc(1, sizeof(clconv_emit));
}

void clconv_emit_free(clconv_emit *e)
{
    if (!e)
        return;
    clconv_text_free(&e->out);
    free(e);
}

const char *clconv_emit_error(const clconv_emit *e)
{
    if (!e->error[0] && e->out.failed)
        return "out of memory";
    return e->error;
}

static bool failed(const clconv_emit *e)
{
    return e->error[0] || e->out.failed;
}

static void fail(clconv_emit *e, const char *what, const char *name,
                 size_t length)
{
    if (failed(e))
        return;
    snprintf(e->error, sizeof e->error, "%s: %.*s", what,
             (int)(length > 80 ? 80 : length), name);
}

static hole *find_hole(clconv_emit *e, const char *name, size_t length)
{
    for (int i = 0; i < e->hole_count; ++i)
        if (strlen(e->holes[i].name) == length &&
            memcmp(e->holes[i].name, name, length) == 0)
            return &e->holes[i];
    return NULL;
}

void clconv_emit_set_text(clconv_emit *e, const char *name, const char *text)
{
    if (failed(e))
        return;
    hole *h = find_hole(e, name, strlen(name));
    if (!h && e->hole_count < MAX_HOLES)
        h = &e->holes[e->hole_count++];
    if (!h || strlen(name) >= MAX_NAME || strlen(text) >= MAX_VALUE) {
        fail(e, "too many holes, or one too long", name, strlen(name));
        return;
    }
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->value, sizeof h->value, "%s", text);
}

void clconv_emit_set(clconv_emit *e, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    /* An int literal in OpenCL C has 32 bits; a long one is suffixed. */
    if (value > INT32_MAX || value < INT32_MIN)
        snprintf(text, sizeof text, "%" PRId64 "L", value);
    clconv_emit_set_text(e, name, text);
}

void clconv_emit_set_exp2(clconv_emit *e, const char *name, int exponent)
{
    char text[32];
    snprintf(text, sizeof text, "0x1p%df", exponent);
    clconv_emit_set_text(e, name, text);
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Writes the value of the hole at s ("$name", "${name}" or "$$") and returns
 * what follows it. */
static const char *put_hole(clconv_emit *e, const char *s)
{
    if (s[1] == '$') {
        clconv_text_append(&e->out, "$", 1);
        return s + 2;
    }
    bool braces = s[1] == '{';
    const char *name = s + (braces ? 2 : 1);
    size_t length = 0;
    while (is_name(name[length]))
        ++length;
    const hole *h = find_hole(e, name, length);
    if (!h || (braces && name[length] != '}')) {
        fail(e, "unknown hole", s, strlen(s));
        return s + strlen(s);
    }
    clconv_text_puts(&e->out, h->value);
    return name + length + (braces ? 1 : 0);
}

static void put_filled(clconv_emit *e, const char *s)
{
    while (*s && !failed(e)) {
        size_t plain = strcspn(s, "$");
        clconv_text_append(&e->out, s, plain);
        s += plain;
        if (*s)
            s = put_hole(e, s);
    }
}

static void put_line(clconv_emit *e, const char *line, const char *tail)
{
    if (failed(e))
        return;
    if (line[0] == '#' && strncmp(line, "#pragma", 7) != 0) {
        fail(e, "a preprocessor line", line, strlen(line));
        return;
    }
    for (int i = 0; i < e->depth; ++i)
        clconv_text_puts(&e->out, "    ");
    put_filled(e, line);
    clconv_text_puts(&e->out, tail);
}

void clconv_emit_line(clconv_emit *e, const char *line)
{
    put_line(e, line, "\n");
}

void clconv_emit_blank(clconv_emit *e)
{
    if (!failed(e))
        clconv_text_puts(&e->out, "\n");
}

void clconv_emit_open(clconv_emit *e, const char *head)
{
    put_line(e, head ? head : "", head ? " {\n" : "{\n");
    ++e->depth;
}

void clconv_emit_close(clconv_emit *e)
{
    if (e->depth == 0) {
        fail(e, "a close without an open", "}", 1);
        return;
    }
    --e->depth;
    put_line(e, "}", "\n");
}

void clconv_emit_else(clconv_emit *e)
{
    if (e->depth == 0) {
        fail(e, "an else without an open", "else", 4);
        return;
    }
    --e->depth;
    put_line(e, "} else {", "\n");
    ++e->depth;
}

static const clconv_part *find_part(const char *name)
{
    for (size_t i = 0; i < clconv_part_count; ++i)
        if (strcmp(clconv_parts[i].name, name) == 0)
            return &clconv_parts[i];
    return NULL;
}

void clconv_emit_part(clconv_emit *e, const char *name)
{
    if (failed(e))
        return;
    for (int i = 0; i < e->part_count; ++i)
        if (strcmp(e->parts[i], name) == 0)
            return;
    const clconv_part *part = find_part(name);
    if (!part || e->depth != 0 || e->part_count == MAX_PARTS) {
        fail(e, "unknown part, or one inside a block", name, strlen(name));
        return;
    }
    e->parts[e->part_count++] = part->name;
    clconv_text_puts(&e->out, part->text);
    clconv_text_puts(&e->out, "\n");
}

char *clconv_emit_take(clconv_emit *e)
{
    if (e->depth != 0)
        fail(e, "a block is still open", "}", 1);
    if (failed(e))
        return NULL;
    return clconv_text_take(&e->out);
}
