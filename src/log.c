/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "log.h"

#include <stdlib.h>

void clconv_log_write(const clconv_log *log, clconv_log_level level,
                      const char *format, ...)
{
    if (!log->fn)
        return;
    clconv_text text = CLCONV_TEXT_EMPTY;
    va_list args;
    va_start(args, format);
    clconv_text_vprintf(&text, format, args);
    va_end(args);
    char *message = clconv_text_take(&text);
    log->fn(level, message ? message : "no memory for a log message", log->user);
    free(message);
}
