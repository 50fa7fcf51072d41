/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fields.h"

#include <string.h>

/* A character that ends a line or that no terminal shows. */
static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* ---- Printing --------------------------------------------------------- */

void clconv_fields_quote(clconv_text *out, const char *value)
{
    clconv_text_puts(out, "\"");
    for (; *value; ++value)
        if (is_control(*value))
            clconv_text_printf(out, "\\x%02x", (unsigned)(unsigned char)*value);
        else
            clconv_text_printf(out, "%s%c",
                               *value == '"' || *value == '\\' ? "\\" : "",
                               *value);
    clconv_text_puts(out, "\"");
}

/* ---- Parsing ---------------------------------------------------------- */

static bool fail(clconv_fields *in, const char *fault)
{
    in->fault = fault;
    return false;
}

static bool is_at(const clconv_fields *in, char c)
{
    return in->at < in->end && *in->at == c;
}

/* A string that is filled byte by byte. */
typedef struct sink {
    char *data;
    size_t size, used; /* size: with the terminator */
} sink;

static bool put(clconv_fields *in, sink *out, char c)
{
    if (out->used + 1 >= out->size)
        return fail(in, "a name or value is too long");
    out->data[out->used++] = c;
    out->data[out->used] = '\0';
    return true;
}

static bool take_name(clconv_fields *in, sink *out)
{
    for (; in->at < in->end; ++in->at) {
        char c = *in->at;
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            break;
        if (!put(in, out, c))
            return false;
    }
    if (out->used == 0 || !is_at(in, '='))
        return fail(in, "expected name=value");
    ++in->at;
    return true;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* What stands behind a backslash. */
static bool take_escape(clconv_fields *in, sink *out)
{
    if (is_at(in, '"') || is_at(in, '\\'))
        return put(in, out, *in->at++);
    if (!is_at(in, 'x') || in->end - in->at < 3)
        return fail(in, "expected \\\", \\\\ or \\x and two digits");
    int high = hex_digit(in->at[1]), low = hex_digit(in->at[2]);
    if (high < 0 || low < 0 || high + low == 0)
        return fail(in, "expected two digits 0-9 a-f, not 00, after \\x");
    in->at += 3;
    return put(in, out, (char)(high * 16 + low));
}

static bool take_quoted(clconv_fields *in, sink *out)
{
    for (++in->at; in->at < in->end && *in->at != '"';) {
        char c = *in->at++;
        if (is_control(c))
            return fail(in, "a control character in quotes");
        if (!(c == '\\' ? take_escape(in, out) : put(in, out, c)))
            return false;
    }
    if (!is_at(in, '"'))
        return fail(in, "a quote is not closed");
    ++in->at;
    return true;
}

static bool take_bare(clconv_fields *in, sink *out)
{
    for (; in->at < in->end && *in->at != ' '; ++in->at) {
        if (is_control(*in->at) || *in->at == '"' || *in->at == '\\')
            return fail(in, "a value with such characters must be in quotes");
        if (!put(in, out, *in->at))
            return false;
    }
    return out->used > 0 || fail(in, "a value is missing");
}

bool clconv_fields_more(clconv_fields *in)
{
    while (is_at(in, ' '))
        ++in->at;
    return in->at < in->end;
}

bool clconv_fields_next(clconv_fields *in, char *name, size_t name_size,
                        char *value, size_t value_size)
{
    sink names = {name, name_size, 0}, values = {value, value_size, 0};
    *name = *value = '\0';
    if (!take_name(in, &names))
        return false;
    if (!(is_at(in, '"') ? take_quoted(in, &values) : take_bare(in, &values)))
        return false;
    if (in->at < in->end && *in->at != ' ')
        return fail(in, "expected a space between two fields");
    return true;
}
