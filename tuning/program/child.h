/*
 * A process that reads lines and writes lines, in a process group of its own,
 * so that Ctrl-C does not reach it and whatever it started ends with it. It is
 * expected to end when its stdin does (parent.h), as it does when this process
 * is killed.
 *
 *     child c;
 *     if (!child_start(&how, &c)) ...                // said on stderr
 *     child_write(&c, "do=...\n", 7);
 *     if (child_read(&c, child_clock() + 5, &line) != CHILD_LINE) ...
 *     child_kill(&c);
 *
 * SIGPIPE must be ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_CHILD_H
#define CLCONV_TUNE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "text.h"

typedef struct child {
    pid_t id; /* 0: none */
    int to, from;
    clconv_text unread; /* what came and was not yet given out as a line */
    clconv_text line;   /* that was given out last */
} child;

typedef struct child_how {
    const char *const *argv;     /* ends with NULL; found in PATH */
    const char *const *settings; /* "NAME=value", ends with NULL */
    const char *log;             /* a file that stderr replaces */
} child_how;

/* Seconds, never back. */
double child_clock(void);

/* False with a line on stderr. */
bool child_start(const child_how *how, child *out);

/* False: it does not read. */
bool child_write(child *c, const char *data, size_t length);

typedef enum child_result { CHILD_LINE, CHILD_ENDED, CHILD_LATE } child_result;

/* The next line, without newline, valid until the next call; waits for it
 * until that time on the clock. */
child_result child_read(child *c, double deadline, char **line);

/* Waits until one of these has something to read, or has ended, or that time
 * has come; its index, -1 for none. Those with id 0 are skipped. */
int child_wait_any(child *const *children, int count, double deadline);

/* Waits for its end; the exit status, -1 if a signal ended it; *why gets
 * "signal 11" or "exit status 1". It has closed its output already. */
int child_finish(child *c, clconv_text *why);

/* Ends it with all that it started. No-op for id 0. */
void child_kill(child *c, clconv_text *why);

#endif
