/*
 * A text file that appears whole or not at all:
 *
 *     file_out f;
 *     if (!file_out_begin(path, &f)) ...
 *     fprintf(f.stream, ...);
 *     if (!file_out_commit(&f)) ...
 *
 * False means that one line went to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_FILE_OUT_H
#define CLCONV_BENCH_FILE_OUT_H

#include <stdbool.h>
#include <stdio.h>

#define FILE_OUT_PATH 4096

typedef struct file_out {
    const char *path;              /* the caller's */
    char temporary[FILE_OUT_PATH]; /* beside it, for who writes by name */
    FILE *stream;
} file_out;

/* Whether path can be written, to be asked before the long work; option is
 * what messages call it. */
bool file_out_possible(const char *option, const char *path);

bool file_out_begin(const char *path, file_out *out);

/* Ends it either way: puts it in its place, or removes it. */
bool file_out_commit(file_out *f);
void file_out_discard(file_out *f);

#endif
