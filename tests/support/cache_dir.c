/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cache_dir.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cache_dir_make(cache_dir *dir)
{
    const char *base = getenv("TMPDIR");
    snprintf(dir->path, sizeof dir->path, "%s/clconv-cache-XXXXXX",
             base ? base : "/tmp");
    cr_assert_not_null(mkdtemp(dir->path), "%s", dir->path);
    snprintf(dir->entries, sizeof dir->entries, "%s/programs-1", dir->path);
}

/* Calls for each name but "." and ".."; returns how many there are. */
static int each_file(const char *path, void (*call)(const char *, void *),
                     void *user)
{
    int count = 0;
    DIR *stream = opendir(path);
    if (!stream)
        return 0;
    for (struct dirent *e = readdir(stream); e; e = readdir(stream)) {
        char file[1024];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (call)
            call(file, user);
        ++count;
    }
    closedir(stream);
    return count;
}

static void remove_tree(const char *path, void *user)
{
    each_file(path, remove_tree, user);
    remove(path);
}

void cache_dir_remove(const cache_dir *dir)
{
    remove_tree(dir->path, NULL);
}

int cache_dir_count(const cache_dir *dir)
{
    return each_file(dir->entries, NULL, NULL);
}

static void keep_path(const char *path, void *user)
{
    cache_file *file = user;
    snprintf(file->path, sizeof file->path, "%s", path);
}

void cache_dir_read_only_entry(const cache_dir *dir, cache_file *out)
{
    cr_assert_eq(each_file(dir->entries, keep_path, out), 1, "%s", dir->entries);
    FILE *file = fopen(out->path, "rb");
    cr_assert_not_null(file, "%s", out->path);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    cr_assert_gt(size, 0, "%s is empty", out->path);
    rewind(file);
    out->size = (size_t)size;
    out->data = malloc(out->size);
    cr_assert_not_null(out->data);
    cr_assert_eq(fread(out->data, 1, out->size, file), out->size);
    fclose(file);
}

void cache_file_write(const cache_file *file)
{
    FILE *stream = fopen(file->path, "wb");
    cr_assert_not_null(stream, "%s", file->path);
    cr_assert_eq(fwrite(file->data, 1, file->size, stream), file->size);
    cr_assert_eq(fclose(stream), 0);
}

void cache_file_free(cache_file *file)
{
    free(file->data);
    file->data = NULL;
}

void cache_log_write(clconv_log_level level, const char *message, void *user)
{
    cache_log *log = user;
    if (level != CLCONV_LOG_WARNING)
        return;
    log->warnings++;
    snprintf(log->last, sizeof log->last, "%s", message);
}
