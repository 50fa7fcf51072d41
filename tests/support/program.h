/*
 * Runs a program of the build and keeps what it said.
 *
 *     program_result r;
 *     program_run((const char *[]){CLCONV_RUN, "--help", NULL}, &r);
 *     cr_assert_eq(r.status, 0, "%s", r.err);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_PROGRAM_H
#define CLCONV_TESTS_PROGRAM_H

typedef struct program_result {
    int status;      /* exit status; -1 if a signal ended it */
    char out[16384]; /* stdout and stderr, terminated, cut to fit */
    char err[16384];
} program_result;

/* argv ends with NULL, and argv[0] is a path. A program that cannot be
 * started fails the test. */
void program_run(const char *const *argv, program_result *out);

/* A new directory under $TMPDIR or /tmp; its name stays valid until the next
 * call. */
const char *program_make_directory(void);

/* Removes a directory and the files in it. */
void program_remove_directory(const char *path);

#endif
