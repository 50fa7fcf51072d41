/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for extra bytes and the terminator. */
static bool reserve(clconv_text *t, size_t extra)
{
    if (t->failed)
        return false;
    if (extra < t->capacity - t->length)
        return true;
    size_t capacity = t->capacity ? t->capacity : 128;
    while (capacity - t->length <= extra) {
        if (capacity > (size_t)-1 / 2) {
            t->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *data = realloc(t->data, capacity);
    if (!data) {
        t->failed = true;
        return false;
    }
    t->data = data;
    t->capacity = capacity;
    return true;
}

void clconv_text_append(clconv_text *t, const char *data, size_t length)
{
    if (!reserve(t, length))
        return;
    memcpy(t->data + t->length, data, length);
    t->length += length;
    t->data[t->length] = '\0';
}

void clconv_text_puts(clconv_text *t, const char *string)
{
    clconv_text_append(t, string, strlen(string));
}

void clconv_text_vprintf(clconv_text *t, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        t->failed = true;
    else if (reserve(t, (size_t)length)) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
}

void clconv_text_printf(clconv_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clconv_text_vprintf(t, format, args);
    va_end(args);
}

char *clconv_text_take(clconv_text *t)
{
    clconv_text_append(t, "", 0); /* an empty string is a string */
    char *data = t->failed ? NULL : t->data;
    if (t->failed)
        free(t->data);
    *t = CLCONV_TEXT_EMPTY;
    return data;
}

void clconv_text_free(clconv_text *t)
{
    free(t->data);
    *t = CLCONV_TEXT_EMPTY;
}
