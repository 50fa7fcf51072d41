/*
 * An entry's file, all numbers little-endian:
 *
 *      0  "clconvPB"
 *      8  u32 format, u32 zero
 *     16  u64 bytes of key, u64 bytes of data
 *     32  u64[2] hash of key
 *     48  u64[2] hash of data
 *     64  key (no terminator), data
 *
 * The lengths must add up to the file's, so that every flipped or missing
 * byte is found before anything is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "os.h"

enum { FORMAT = 1, HEADER = 64, DAY = 24 * 60 * 60 };

/* No program is as large; a larger file is not ours. */
#define MAX_FILE ((size_t)1 << 30)

static const unsigned char magic[8] = {'c', 'l', 'c', 'o', 'n', 'v', 'P', 'B'};

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

clconv_store *clconv_store_new(const char *dir, const clconv_log *log)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/programs-%d", dir, FORMAT);
    clconv_store *s = calloc(1, sizeof *s);
    char *name = clconv_text_take(&path);
    if (!s || !name)
        goto failed;
    /* Whoever may write the parent may swap the directory: check both. */
    if (!clconv_os_private_dir(dir, &why) || !clconv_os_private_dir(name, &why))
        goto failed;
    clconv_os_remove_unfinished(name, DAY);
    s->dir = name;
    s->log = *log;
    return s;
failed:
    clconv_log_warn(log,
                    "cache directory %s is not used (%s): "
                    "compiled programs are kept in memory only",
                    dir, why.data ? why.data : "no memory");
    clconv_text_free(&why);
    free(name);
    free(s);
    return NULL;
}

void clconv_store_free(clconv_store *s)
{
    if (!s)
        return;
    free(s->dir);
    free(s);
}

/* ---- The bytes of an entry --------------------------------------------- */

static void put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; ++i)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_u64(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put_hash(unsigned char *at, const void *data, size_t size)
{
    clconv_hash hash = clconv_hash_bytes(data, size);
    put_u64(at, hash.low);
    put_u64(at + 8, hash.high);
}

static bool same_hash(const unsigned char *at, const void *data, size_t size)
{
    unsigned char hash[16];
    put_hash(hash, data, size);
    return memcmp(at, hash, sizeof hash) == 0;
}

static unsigned char *pack(const char *key, const unsigned char *data,
                           size_t size, size_t *total)
{
    size_t key_size = strlen(key);
    if (size > MAX_FILE || key_size > MAX_FILE - HEADER - size)
        return NULL;
    unsigned char *file = calloc(1, HEADER + key_size + size);
    if (!file)
        return NULL;
    memcpy(file, magic, sizeof magic);
    put_u64(file + 8, FORMAT);
    put_u64(file + 16, key_size);
    put_u64(file + 24, size);
    put_hash(file + 32, key, key_size);
    put_hash(file + 48, data, size);
    memcpy(file + HEADER, key, key_size);
    memcpy(file + HEADER + key_size, data, size);
    *total = HEADER + key_size + size;
    return file;
}

/* NULL if the file is a whole entry of this key; else what is wrong. */
static const char *find_fault(const unsigned char *file, size_t total,
                              const char *key)
{
    size_t key_size = strlen(key);
    if (total < HEADER || memcmp(file, magic, sizeof magic) != 0)
        return "it is not an entry";
    if (get_u64(file + 8) != FORMAT)
        return "it has another format";
    uint64_t rest = total - HEADER;
    uint64_t key_there = get_u64(file + 16);
    if (key_there > rest || get_u64(file + 24) != rest - key_there)
        return "its length is wrong";
    const unsigned char *body = file + HEADER;
    if (!same_hash(file + 32, body, (size_t)key_there) ||
        !same_hash(file + 48, body + key_there, (size_t)(rest - key_there)))
        return "its checksum is wrong";
    if (key_there != key_size || memcmp(body, key, key_size) != 0)
        return "it is of another program";
    return NULL;
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

void clconv_store_drop(clconv_store *s, const char *key, const char *reason)
{
    char *path = entry_path(s, key);
    if (!path)
        return;
    clconv_log_warn(&s->log, "cache entry %s is dropped: %s", path, reason);
    clconv_os_remove(path);
    free(path);
}

static bool load(clconv_store *s, const char *key, unsigned char **file,
                 size_t *total)
{
    char *path = entry_path(s, key);
    if (!path)
        return false;
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_os_result result = clconv_os_read(path, MAX_FILE, file, total, &why);
    if (result == CLCONV_OS_FAILED)
        clconv_store_drop(s, key, why.data ? why.data : "no memory");
    clconv_text_free(&why);
    free(path);
    return result == CLCONV_OS_DONE;
}

bool clconv_store_read(clconv_store *s, const char *key, unsigned char **data,
                       size_t *size)
{
    unsigned char *file;
    size_t total;
    if (!load(s, key, &file, &total))
        return false;
    const char *fault = find_fault(file, total, key);
    if (fault) {
        clconv_store_drop(s, key, fault);
        free(file);
        return false;
    }
    size_t start = HEADER + strlen(key);
    memmove(file, file + start, total - start);
    *data = file;
    *size = total - start;
    return true;
}

bool clconv_store_write(clconv_store *s, const char *key,
                        const unsigned char *data, size_t size)
{
    if (s->read_only)
        return false;
    size_t total;
    unsigned char *file = pack(key, data, size, &total);
    if (!file)
        return false;
    char name[CLCONV_HASH_HEX];
    entry_name(key, name);
    clconv_text why = CLCONV_TEXT_EMPTY;
    if (clconv_os_replace(s->dir, name, file, total, &why) != CLCONV_OS_DONE) {
        s->read_only = true;
        clconv_log_warn(&s->log,
                        "cache directory %s cannot be written (%s): new "
                        "programs are kept in memory only",
                        s->dir, why.data ? why.data : "no memory");
    }
    clconv_text_free(&why);
    free(file);
    return !s->read_only;
}
