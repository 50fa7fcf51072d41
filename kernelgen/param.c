/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void clconv_param_first(const clconv_param *params, int count, int *values)
{
    for (int i = 0; i < count; ++i)
        values[i] = params[i].values[0];
}

static void put_value(const clconv_param *p, int value, clconv_text *out)
{
    if (p->names[0])
        clconv_text_puts(out, p->names[value]);
    else
        clconv_text_printf(out, "%d", value);
}

void clconv_param_format(const clconv_param *params, int count,
                         const int *values, clconv_text *out)
{
    for (int i = 0; i < count; ++i) {
        clconv_text_printf(out, "%s%s=", i ? "," : "", params[i].name);
        put_value(&params[i], values[i], out);
    }
}

static bool same(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool value_is(const clconv_param *p, int index, const char *text,
                     size_t length)
{
    char number[16];
    if (p->names[0])
        return same(p->names[index], text, length);
    snprintf(number, sizeof number, "%d", p->values[index]);
    return same(number, text, length);
}

static void list_params(const clconv_param *params, int count, const char *name,
                        size_t length, clconv_text *why)
{
    clconv_text_printf(why, "no parameter \"%.*s\"; there is", (int)length,
                       name);
    for (int i = 0; i < count; ++i)
        clconv_text_printf(why, "%s %s", i ? "," : "", params[i].name);
    if (count == 0)
        clconv_text_puts(why, " none");
}

static void list_values(const clconv_param *p, const char *text, size_t length,
                        clconv_text *why)
{
    clconv_text_printf(why, "%s cannot be \"%.*s\"; it is one of", p->name,
                       (int)length, text);
    for (int i = 0; i < p->count; ++i) {
        clconv_text_puts(why, i ? ", " : " ");
        put_value(p, p->values[i], why);
    }
}

bool clconv_param_parse(const clconv_param *params, int count,
                        const char *assignment, size_t length, int *values,
                        clconv_text *why)
{
    const char *equals = memchr(assignment, '=', length);
    size_t name_length = equals ? (size_t)(equals - assignment) : length;
    const char *text = equals ? equals + 1 : assignment + length;
    size_t text_length = length - (size_t)(text - assignment);
    for (int i = 0; i < count; ++i) {
        if (!same(params[i].name, assignment, name_length))
            continue;
        for (int v = 0; v < params[i].count; ++v)
            if (value_is(&params[i], v, text, text_length)) {
                values[i] = params[i].values[v];
                return true;
            }
        list_values(&params[i], text, text_length, why);
        return false;
    }
    list_params(params, count, assignment, name_length, why);
    return false;
}

static int index_of(const clconv_param *p, int value)
{
    for (int v = 0; v < p->count; ++v)
        if (p->values[v] == value)
            return v;
    return 0;
}

bool clconv_param_next(const clconv_param *params, int count, int *values)
{
    for (int i = count - 1; i >= 0; --i) {
        int next = index_of(&params[i], values[i]) + 1;
        if (next < params[i].count) {
            values[i] = params[i].values[next];
            return true;
        }
        values[i] = params[i].values[0];
    }
    return false;
}

void clconv_param_emit(const clconv_param *params, int count, const int *values,
                       clconv_emit *e)
{
    for (int i = 0; i < count; ++i) {
        if (params[i].names[0])
            clconv_emit_set_text(e, params[i].name, params[i].names[values[i]]);
        else
            clconv_emit_set(e, params[i].name, values[i]);
    }
}
