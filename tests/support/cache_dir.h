/*
 * A new cache directory for one test, and the entries in it.
 *
 *     cache_dir dir;
 *     cache_dir_make(&dir);
 *     ... use dir.path ...
 *     cr_assert_eq(cache_dir_count(&dir), 1);
 *     cache_dir_remove(&dir);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CACHE_DIR_H
#define CACHE_DIR_H

#include <stddef.h>

#include "clconv/clconv.h"

typedef struct cache_dir {
    char path[512];    /* exists */
    char entries[544]; /* where entries go; made by the library */
} cache_dir;

typedef struct cache_file {
    char path[1024];
    unsigned char *data; /* malloc'ed */
    size_t size;
} cache_file;

void cache_dir_make(cache_dir *dir);
void cache_dir_remove(const cache_dir *dir);

/* Files there are, of any name. */
int cache_dir_count(const cache_dir *dir);

/* Reads the only entry; anything else fails the test. */
void cache_dir_read_only_entry(const cache_dir *dir, cache_file *out);

/* The file as it is in memory now. */
void cache_file_write(const cache_file *file);
void cache_file_free(cache_file *file);

/* A log callback that counts warnings in an int and keeps the last one. */
typedef struct cache_log {
    int warnings;
    char last[1024];
} cache_log;

void cache_log_write(clconv_log_level level, const char *message, void *user);

#endif
