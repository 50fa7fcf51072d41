/*
 * A binary is stored as soon as its program is built, but where the driver
 * compiles at the first launch only after one, see cl_query.h. There it costs
 * about as much as the build did, which pays off only for a program that comes
 * back: unless the policy is CLCONV_CACHE_ALL, the first process that launched
 * it leaves a mark, and the next one, which found the mark and had to build
 * again, stores the binary.
 *
 * One lock covers look-up and build, so that threads which ask for the same
 * source at the same time compile it once. Programs live as long as the
 * cache; there are as many as there are distinct sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_cache.h"

#include <stdlib.h>
#include <string.h>

#include "cl_build.h"
#include "cl_query.h"
#include "hash.h"
#include "os.h"
#include "ptx.h"
#include "store.h"

typedef struct entry {
    struct entry *next;
    clconv_hash hash; /* of key */
    char *key;
    cl_program program;
    size_t stored; /* bytes of the binary on disk; 0: none */
    bool used;     /* also before this process: it was marked or stored */
} entry;

struct clconv_cache {
    cl_context context;
    cl_device_id device;
    clconv_log log;
    char *prefix; /* of every key: versions, device, driver */
    bool late;    /* a binary is asked for after a launch only ... */
    bool costly;  /* ... and even then is worth its price at once */
    bool offline;
    clconv_store *store; /* NULL: memory only */
    clconv_mutex *mutex; /* guards what follows, and the store */
    entry *entries;
    int builds;
};

const char *clconv_origin_name(clconv_origin origin)
{
    static const char *const names[CLCONV_ORIGINS] = {
        [CLCONV_ORIGIN_MEMORY] = "memory",
        [CLCONV_ORIGIN_DISK] = "disk",
        [CLCONV_ORIGIN_BUILT] = "built",
    };
    return origin < CLCONV_ORIGINS ? names[origin] : "unknown";
}

/* ---- The cache --------------------------------------------------------- */

char *clconv_cache_prefix(cl_device_id device)
{
    char *identity = clconv_query_identity(device);
    if (!identity)
        return NULL;
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_text_printf(
        &t, "libclconv: %s\n%soptions: %s\nretarget: %d\nsource:\n",
        clconv_version(), identity, CLCONV_BUILD_OPTIONS, CLCONV_PTX_REVISION);
    free(identity);
    return clconv_text_take(&t);
}

clconv_status clconv_cache_new(cl_context context, cl_device_id device,
                               const clconv_cache_options *options,
                               const clconv_log *log, clconv_cache **out)
{
    clconv_cache *c = calloc(1, sizeof *c);
    if (!c)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a cache");
    clRetainContext(context);
    clRetainDevice(device);
    c->context = context;
    c->device = device;
    c->log = *log;
    c->prefix = clconv_cache_prefix(device);
    c->late = clconv_query_compiles_late(device);
    c->costly = options->policy == CLCONV_CACHE_ALL;
    c->offline = options->offline;
    c->mutex = clconv_mutex_new();
    if (!c->prefix || !c->mutex) {
        clconv_cache_free(c);
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a cache");
    }
    if (options->dir)
        c->store = clconv_store_new(options->dir, log);
    *out = c;
    return CLCONV_OK;
}

static void free_entry(entry *e)
{
    if (e->program)
        clReleaseProgram(e->program);
    free(e->key);
    free(e);
}

void clconv_cache_free(clconv_cache *c)
{
    if (!c)
        return;
    while (c->entries) {
        entry *e = c->entries;
        c->entries = e->next;
        free_entry(e);
    }
    clconv_store_free(c->store);
    clconv_mutex_free(c->mutex);
    free(c->prefix);
    clReleaseDevice(c->device);
    clReleaseContext(c->context);
    free(c);
}

bool clconv_cache_is_on_disk(const clconv_cache *c)
{
    return c->store != NULL;
}

int clconv_cache_builds(clconv_cache *c)
{
    clconv_mutex_lock(c->mutex);
    int builds = c->builds;
    clconv_mutex_unlock(c->mutex);
    return builds;
}

/* ---- Memory ------------------------------------------------------------ */

/* Takes the key; NULL: no memory. The entry has no program yet. */
static entry *new_entry(char *key)
{
    entry *e = key ? calloc(1, sizeof *e) : NULL;
    if (!e) {
        free(key);
        return NULL;
    }
    e->key = key;
    e->hash = clconv_hash_bytes(key, strlen(key));
    return e;
}

static entry *find_same(const clconv_cache *c, const entry *wanted)
{
    for (entry *e = c->entries; e; e = e->next)
        if (e->hash.low == wanted->hash.low &&
            e->hash.high == wanted->hash.high &&
            strcmp(e->key, wanted->key) == 0)
            return e;
    return NULL;
}

static char *make_key(const clconv_cache *c, const char *source)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_text_puts(&t, c->prefix);
    clconv_text_puts(&t, source);
    return clconv_text_take(&t);
}

/* ---- Disk -------------------------------------------------------------- */

static bool take_binary(clconv_cache *c, entry *e, const unsigned char *data,
                        size_t size)
{
    bool taken =
        clconv_build_binary(c->context, c->device, data, size, &e->program);
    if (taken)
        e->stored = size;
    else if (!c->offline) /* there is no other to make */
        clconv_store_drop(c->store, e->key, "the driver does not take it");
    return taken;
}

static bool load(clconv_cache *c, entry *e)
{
    unsigned char *data;
    size_t size;
    if (!c->store || !clconv_store_read(c->store, e->key, &data, &size))
        return false;
    e->used = true;
    bool taken = size > 0 && take_binary(c, e, data, size);
    free(data);
    return taken;
}

static void save(clconv_cache *c, entry *e)
{
    unsigned char *data;
    size_t size;
    if (!c->store ||
        !clconv_build_get_binary(e->program, c->device, &data, &size))
        return;
    if (clconv_store_write(c->store, e->key, data, size))
        e->stored = size;
    free(data);
}

/* Asking for the size alone makes PoCL compile: ask only if it is worth it. */
static void refresh(clconv_cache *c, entry *e)
{
    if (c->late && !c->costly && !e->used)
        clconv_store_mark(c->store, e->key);
    else if (clconv_build_binary_size(e->program, c->device) > e->stored)
        save(c, e);
}

void clconv_cache_refresh(clconv_cache *c, cl_program program)
{
    if (!c->store)
        return;
    clconv_mutex_lock(c->mutex);
    for (entry *e = c->entries; e; e = e->next)
        if (e->program == program)
            refresh(c, e);
    clconv_mutex_unlock(c->mutex);
}

/* ---- Look-up ----------------------------------------------------------- */

static clconv_status build(clconv_cache *c, const clconv_source *source,
                           entry *e)
{
    if (c->offline)
        return clconv_fail(
            CLCONV_BUILD_FAILED,
            "kernel %s for %s is not among the compiled programs of this "
            "device, and CLCONV_OFFLINE forbids to compile it: run clconv-tune "
            "%s without CLCONV_OFFLINE, or take the programs of another "
            "machine of this kind with clconv-tune import",
            source->kernel, source->problem, source->problem);
    clconv_status status =
        clconv_build_source(c->context, c->device, source->kernel, source->text,
                            &c->log, &e->program);
    if (status != CLCONV_OK)
        return status;
    c->builds++;
    if (!c->late)
        save(c, e);
    return CLCONV_OK;
}

/* Loads or builds the program of a new entry. */
static clconv_status fill(clconv_cache *c, const clconv_source *source,
                          entry *e, clconv_origin *origin)
{
    if (load(c, e)) {
        *origin = CLCONV_ORIGIN_DISK;
        return CLCONV_OK;
    }
    *origin = CLCONV_ORIGIN_BUILT;
    return build(c, source, e);
}

/* The entry that answers; takes the one given, which names what is wanted. */
static clconv_status find_or_fill(clconv_cache *c, const clconv_source *source,
                                  entry *wanted, clconv_origin *origin,
                                  entry **out)
{
    entry *same = find_same(c, wanted);
    if (same) {
        free_entry(wanted);
        *origin = CLCONV_ORIGIN_MEMORY;
        *out = same;
        return CLCONV_OK;
    }
    clconv_status status = fill(c, source, wanted, origin);
    if (status != CLCONV_OK) {
        free_entry(wanted);
        return status;
    }
    wanted->next = c->entries;
    c->entries = wanted;
    *out = wanted;
    return CLCONV_OK;
}

clconv_status clconv_cache_program(clconv_cache *c, const clconv_source *source,
                                   clconv_origin *origin, cl_program *out)
{
    entry *wanted = new_entry(make_key(c, source->text));
    if (!wanted)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for kernel %s",
                           source->kernel);
    entry *e = NULL;
    clconv_mutex_lock(c->mutex);
    clconv_status status = find_or_fill(c, source, wanted, origin, &e);
    if (status == CLCONV_OK) {
        clRetainProgram(e->program);
        *out = e->program;
    }
    clconv_mutex_unlock(c->mutex);
    return status;
}
