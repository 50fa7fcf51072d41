/*
 * One line on stderr that says what is being done, if stderr is a terminal;
 * nothing at all otherwise.
 *
 *     progress_show("112 px: %s", name);
 *     ...
 *     progress_clear();       // before anything else is printed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_PROGRESS_H
#define CLCONV_EXAMPLES_PROGRESS_H

#if defined(__GNUC__)
#define PROGRESS_FORMAT __attribute__((format(printf, 1, 2)))
#else
#define PROGRESS_FORMAT
#endif

void progress_show(const char *format, ...) PROGRESS_FORMAT;
void progress_clear(void);

#endif
