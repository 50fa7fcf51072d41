/*
 * A message is formatted whole and written by one call, so that lines of
 * several threads or processes do not mix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

static const char *program;

void message_program(const char *name)
{
    program = name;
}

static void join_lines(char *text)
{
    for (; *text; ++text) {
        if (*text == '\n' || *text == '\r')
            *text = ' ';
    }
}

static void write_line(const char *kind, const char *format, va_list values)
{
    char text[4096];

    vsnprintf(text, sizeof(text), format, values);
    join_lines(text);
    fprintf(stderr, "%s%s%s%s\n", program ? program : "", program ? ": " : "",
            kind, text);
}

void message_error(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    write_line("", format, values);
    va_end(values);
}

void message_warning(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    write_line("warning: ", format, values);
    va_end(values);
}
