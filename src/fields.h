/*
 * Lines of named fields, name=value name="a value": the tokens.
 *
 *     clconv_fields in = {.at = line, .end = line + length};
 *     while (clconv_fields_more(&in))
 *         if (!clconv_fields_next(&in, name, sizeof name, value, sizeof value))
 *             ... in.fault says what is wrong ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_FIELDS_H
#define CLCONV_FIELDS_H

#include <stdbool.h>

#include "text.h"

/* Appends the value in quotes, with \", \\ and \x0a for what has no other
 * place in a line. */
void clconv_fields_quote(clconv_text *out, const char *value);

typedef struct clconv_fields {
    const char *at, *end;
    const char *fault; /* a static text, once something was wrong */
} clconv_fields;

/* Is anything but spaces left? */
bool clconv_fields_more(clconv_fields *in);

/* The next field, unquoted; false: there is none that is well-formed and
 * fits. */
bool clconv_fields_next(clconv_fields *in, char *name, size_t name_size,
                        char *value, size_t value_size);

#endif
