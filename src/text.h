/*
 * A growing string. The first failure (no memory) sticks: later calls do
 * nothing, and the caller checks once, at clconv_text_take().
 *
 *     clconv_text t = CLCONV_TEXT_EMPTY;
 *     clconv_text_printf(&t, "n%d", n);
 *     char *s = clconv_text_take(&t);      // yours: free(); NULL: no memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TEXT_H
#define CLCONV_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct clconv_text {
    char *data; /* terminated once anything was appended */
    size_t length, capacity;
    bool failed;
} clconv_text;

#define CLCONV_TEXT_EMPTY                                                      \
    (clconv_text)                                                              \
    {                                                                          \
        0                                                                      \
    }

#if defined(__GNUC__)
#define CLCONV_PRINTF(format, first)                                           \
    __attribute__((__format__(__printf__, format, first)))
#else
#define CLCONV_PRINTF(format, first)
#endif

void clconv_text_append(clconv_text *t, const char *data, size_t length);
void clconv_text_puts(clconv_text *t, const char *string);
void clconv_text_printf(clconv_text *t, const char *format, ...)
    CLCONV_PRINTF(2, 3);
void clconv_text_vprintf(clconv_text *t, const char *format, va_list args);

/* The string, yours to free(), and t empty again; NULL after a failure. */
char *clconv_text_take(clconv_text *t);
void clconv_text_free(clconv_text *t);

#endif
