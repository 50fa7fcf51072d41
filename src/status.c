/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "status.h"

#include <stdio.h>
#include <string.h>

/* Long enough for a sentence and the first lines of a build log; a longer
 * one is cut. No allocation: failing must not fail. */
static _Thread_local char last_error[2048];

const char *clconv_status_name(clconv_status status)
{
#define NAME_CASE(name, value, text)                                           \
    case name: return #name;
    switch (status) {
        CLCONV_STATUS_LIST(NAME_CASE)
    }
#undef NAME_CASE
    return "unknown status";
}

const char *clconv_status_text(clconv_status status)
{
#define TEXT_CASE(name, value, text)                                           \
    case name: return text;
    switch (status) {
        CLCONV_STATUS_LIST(TEXT_CASE)
    }
#undef TEXT_CASE
    return "unknown status";
}

const char *clconv_last_error(void)
{
    return last_error;
}

clconv_status clconv_fail(clconv_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

void clconv_fail_prefix(const char *format, ...)
{
    char rest[sizeof last_error];
    memcpy(rest, last_error, sizeof rest);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof last_error)
        snprintf(last_error + used, sizeof last_error - used, "%s", rest);
}
