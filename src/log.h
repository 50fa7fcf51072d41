/*
 * The caller's log callback. A message goes nowhere else: nothing is printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_LOG_H
#define CLCONV_LOG_H

#include "clconv/clconv.h"
#include "text.h"

typedef struct clconv_log {
    clconv_log_fn fn; /* NULL: no log */
    void *user;
} clconv_log;

void clconv_log_write(const clconv_log *log, clconv_log_level level,
                      const char *format, ...) CLCONV_PRINTF(3, 4);

#define clconv_log_warn(log, ...)                                              \
    clconv_log_write(log, CLCONV_LOG_WARNING, __VA_ARGS__)
#define clconv_log_info(log, ...)                                              \
    clconv_log_write(log, CLCONV_LOG_INFO, __VA_ARGS__)

#endif
