/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "os.h"

enum { DAY = 24 * 60 * 60 };

struct clconv_store {
    char *dir;
    clconv_log log;
    bool read_only; /* a write failed */
};

char *clconv_store_find_dir(const char *option, const clconv_log *log)
{
    clconv_text dir = CLCONV_TEXT_EMPTY;
    const char *ours = clconv_os_env("CLCONV_CACHE_DIR");
    const char *caches = clconv_os_env("XDG_CACHE_HOME");
    const char *home = clconv_os_env("HOME");
    if (option && !*option)
        return NULL;
    if (option || ours)
        clconv_text_puts(&dir, option ? option : ours);
    else if (caches && *caches == '/') /* a relative one is to be ignored */
        clconv_text_printf(&dir, "%s/clconv", caches);
    else if (home)
        clconv_text_printf(&dir, "%s/.cache/clconv", home);
    else {
        clconv_log_warn(log, "no cache directory (CLCONV_CACHE_DIR, "
                             "XDG_CACHE_HOME and HOME are not set): compiled "
                             "programs are kept in memory only");
        return NULL;
    }
    return clconv_text_take(&dir);
}

static void stop_writing(clconv_store *s, const clconv_text *why)
{
    s->read_only = true;
    clconv_log_warn(&s->log,
                    "cache directory %s cannot be written (%s): new programs "
                    "are kept in memory only",
                    s->dir, why->data ? why->data : "no memory");
}

clconv_store *clconv_store_new(const char *dir, const clconv_log *log)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    char name[32];
    snprintf(name, sizeof name, "programs-%d", CLCONV_PROGRAM_FILE_FORMAT);
    clconv_store *s = calloc(1, sizeof *s);
    char *path = s ? clconv_os_private_subdir(dir, name, &why) : NULL;
    if (path) {
        clconv_os_remove_unfinished(path, DAY);
        s->dir = path;
        s->log = *log;
        if (why.length > 0)
            stop_writing(s, &why);
    } else {
        clconv_log_warn(log,
                        "cache directory %s is not used (%s): "
                        "compiled programs are kept in memory only",
                        dir, why.data ? why.data : "no memory");
        free(s);
        s = NULL;
    }
    clconv_text_free(&why);
    return s;
}

void clconv_store_free(clconv_store *s)
{
    if (!s)
        return;
    free(s->dir);
    free(s);
}

/* ---- Files ------------------------------------------------------------- */

static void entry_name(const char *key, char out[CLCONV_HASH_HEX])
{
    clconv_hash_hex(clconv_hash_bytes(key, strlen(key)), out);
}

static char *entry_path(const clconv_store *s, const char *key)
{
    char name[CLCONV_HASH_HEX];
    entry_name(key, name);
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/%s", s->dir, name);
    return clconv_text_take(&path);
}

static bool same_key(const clconv_program_file *p, const char *key)
{
    return p->key_size == strlen(key) && memcmp(p->key, key, p->key_size) == 0;
}

static bool drop(const clconv_store *s, const char *path, const char *reason)
{
    bool gone = clconv_os_remove(path);
    clconv_log_warn(&s->log, "cache entry %s is %s: %s", path,
                    gone ? "dropped" : "not used", reason);
    return gone;
}

bool clconv_store_drop(clconv_store *s, const char *key, const char *reason)
{
    char *path = entry_path(s, key);
    bool gone = path && drop(s, path, reason);
    free(path);
    return gone;
}

/* What cannot be read just now, for want of memory or descriptors, stays. */
static bool load(const clconv_store *s, const char *path, unsigned char **file,
                 size_t *total)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_os_result result =
        clconv_os_read_trusted(path, CLCONV_PROGRAM_FILE_MAX, file, total, &why);
    if (result == CLCONV_OS_FAILED)
        clconv_log_warn(&s->log, "cache entry %s is not read: %s", path,
                        why.data ? why.data : "no memory");
    clconv_text_free(&why);
    return result == CLCONV_OS_DONE;
}

/* A whole entry, which points into *file, yours to free(). False: there is
 * none, or no longer. key NULL: whatever it is of. */
static bool load_entry(const clconv_store *s, const char *path, const char *key,
                       unsigned char **file, clconv_program_file *out)
{
    unsigned char *bytes;
    size_t total;
    clconv_program_file p;
    if (!load(s, path, &bytes, &total))
        return false;
    const char *fault = clconv_program_file_parse(bytes, total, &p);
    if (!fault && key && !same_key(&p, key))
        fault = "it is of another program";
    if (fault) {
        drop(s, path, fault);
        free(bytes);
        return false;
    }
    *file = bytes;
    *out = p;
    return true;
}

bool clconv_store_read(clconv_store *s, const char *key, unsigned char **data,
                       size_t *size)
{
    char *path = entry_path(s, key);
    unsigned char *file;
    clconv_program_file p;
    bool found = path && load_entry(s, path, key, &file, &p);
    free(path);
    if (!found)
        return false;
    memmove(file, p.data, p.size);
    *data = file;
    *size = p.size;
    return true;
}

/* The whole file of an entry. */
static bool put(clconv_store *s, const char *key, const unsigned char *file,
                size_t total)
{
    char name[CLCONV_HASH_HEX];
    entry_name(key, name);
    clconv_text why = CLCONV_TEXT_EMPTY;
    if (clconv_os_replace(s->dir, name, file, total, &why) != CLCONV_OS_DONE)
        stop_writing(s, &why);
    clconv_text_free(&why);
    return !s->read_only;
}

bool clconv_store_write(clconv_store *s, const char *key,
                        const unsigned char *data, size_t size)
{
    if (s->read_only)
        return false;
    clconv_program_file p = {key, strlen(key), data, size};
    size_t total;
    unsigned char *file = clconv_program_file_pack(&p, &total);
    bool written = file && put(s, key, file, total);
    free(file);
    return written;
}

bool clconv_store_mark(clconv_store *s, const char *key)
{
    unsigned char *data;
    size_t size;
    if (!clconv_store_read(s, key, &data, &size))
        return clconv_store_write(s, key, NULL, 0);
    free(data);
    return true;
}

/* ---- All of them ------------------------------------------------------- */

static bool visit_name(const clconv_store *s, const char *name,
                       const char *prefix, clconv_store_visit visit, void *user)
{
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/%s", s->dir, name);
    unsigned char *file;
    clconv_program_file p;
    if (path.failed || !load_entry(s, path.data, NULL, &file, &p)) {
        clconv_text_free(&path);
        return true;
    }
    clconv_text_free(&path);
    size_t length = strlen(prefix);
    bool wanted = p.key_size >= length && memcmp(p.key, prefix, length) == 0;
    bool more = !wanted || visit(user, &p);
    free(file);
    return more;
}

bool clconv_store_each(clconv_store *s, const char *prefix,
                       clconv_store_visit visit, void *user)
{
    clconv_os_names names;
    if (!clconv_os_list(s->dir, &names))
        return false;
    bool more = true;
    for (size_t i = 0; more && i < names.count; ++i)
        more = visit_name(s, names.name[i], prefix, visit, user);
    clconv_os_names_free(&names);
    return more;
}
