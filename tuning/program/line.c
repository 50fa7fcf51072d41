/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void put_name(clconv_text *line, const char *name)
{
    bool is_first = line->length == 0 || line->data[line->length - 1] == '\n';
    clconv_text_printf(line, "%s%s=", is_first ? "" : " ", name);
}

void line_put_text(clconv_text *line, const char *name, const char *value)
{
    put_name(line, name);
    clconv_fields_quote(line, value);
}

void line_put_integer(clconv_text *line, const char *name, long value)
{
    put_name(line, name);
    clconv_text_printf(line, "%ld", value);
}

void line_put_real(clconv_text *line, const char *name, double value)
{
    put_name(line, name);
    clconv_text_printf(line, "%.17g", value);
}

bool line_next(clconv_fields *in, line_field *out)
{
    return clconv_fields_more(in) &&
           clconv_fields_next(in, out->name, sizeof out->name, out->value,
                              sizeof out->value);
}

bool line_copy(const char *value, char *to, size_t size)
{
    return (size_t)snprintf(to, size, "%s", value) < size;
}

bool line_integer(const char *value, long low, long high, long *out)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < low || number > high)
        return false;
    *out = number;
    return true;
}

bool line_real(const char *value, double *out)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end)
        return false;
    *out = number;
    return true;
}
