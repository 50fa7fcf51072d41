/*
 * One-line messages on stderr: "clconv-run: x.npy: no such file".
 *
 *     message_program("clconv-run");      // first thing in main()
 *     message_error("%s: no such file", path);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_MESSAGE_H
#define CLCONV_TOOLS_MESSAGE_H

#if defined(__GNUC__)
#define MESSAGE_FORMAT __attribute__((format(printf, 1, 2)))
#else
#define MESSAGE_FORMAT
#endif

/* What every line starts with; name is kept, not copied. Without a call,
 * lines start with no name. */
void message_program(const char *name);

/* Writes one line. The format has no newline; what it prints may have some
 * (a compiler's log), and these become spaces. */
void message_error(const char *format, ...) MESSAGE_FORMAT;

/* The same, marked "warning: ". */
void message_warning(const char *format, ...) MESSAGE_FORMAT;

#endif
