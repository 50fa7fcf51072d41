/*
 * A line of text that ends with a check of itself, so that one that was torn or
 * changed is known: "problem=... us=12 check=0123456789abcdef".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SEAL_H
#define CLCONV_SEAL_H

#include <stddef.h>

#include "text.h"

/* Appends the check of what follows start in the text. */
void clconv_seal_put(clconv_text *line, size_t start);

typedef enum clconv_seal {
    CLCONV_SEAL_RIGHT, /* and *length is now what comes before it */
    CLCONV_SEAL_MISSING,
    CLCONV_SEAL_WRONG
} clconv_seal;

clconv_seal clconv_seal_take(const char *line, size_t *length);

#endif
