/*
 * The line starts with the seconds since the first one, goes back to its
 * start by '\r' and is erased by the terminal's "erase to the end of line".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ERASE "\r\033[K"

static long seconds_since_first(void)
{
    static time_t first;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (first == 0)
        first = now.tv_sec;
    return (long)(now.tv_sec - first);
}

void progress_show(const char *format, ...)
{
    va_list values;

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, ERASE "[%3ld s] ", seconds_since_first());
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fflush(stderr);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs(ERASE, stderr);
}
