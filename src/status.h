/*
 * How a function fails: return clconv_fail(code, "sentence ..."). The
 * sentence names the argument and its allowed range; clconv_last_error()
 * shows it to the caller of the library, in the same thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_STATUS_H
#define CLCONV_STATUS_H

#include "clconv/clconv.h"
#include "text.h"

/* Keeps the sentence and returns the status it was given. */
clconv_status clconv_fail(clconv_status status, const char *format, ...)
    CLCONV_PRINTF(2, 3);

/* Puts a prefix before the sentence of the last failure: "plan, kernel x: ". */
void clconv_fail_prefix(const char *format, ...) CLCONV_PRINTF(1, 2);

#endif
