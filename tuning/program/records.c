/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "message.h"
#include "os.h"
#include "record_list.h"
#include "results.h"
#include "store.h"

static const clconv_log no_log = {NULL, NULL};

/* ---- list -------------------------------------------------------------- */

/* Records that no plan is made of. */
static void print_skipped(station *s)
{
    clconv_tunedb_counts counts;
    clconv_tunedb_count(s->records, &counts);
    if (counts.stale + counts.unknown + counts.damaged > 0)
        printf("\nskipped: %d of other kernel revisions, %d with unknown "
               "fields, %d damaged\n",
               counts.stale, counts.unknown, counts.damaged);
}

int records_list(station *s)
{
    record_list list;
    if (!record_list_all(s, &list))
        return EXIT_FAILURE;
    const char *device = "";
    for (int i = 0; i < list.count; ++i) {
        const clconv_record *r = &list.items[i];
        if (strcmp(device, r->device.name) != 0) {
            printf("%s%s / %s, driver %s, tuned %s\n", *device ? "\n" : "",
                   r->device.platform, r->device.name, r->device.driver,
                   r->date);
            results_print_head(stdout);
            device = r->device.name;
        }
        results_print(stdout, r);
    }
    if (list.count == 0)
        printf("there are no records in %s\n", s->places.cache);
    print_skipped(s);
    record_list_free(&list);
    return EXIT_SUCCESS;
}

/* ---- merge ------------------------------------------------------------- */

typedef struct merged {
    int taken, slower, skipped;
} merged;

/* The user's record of the same key; NULL: none. */
static const clconv_record *find_same(station *s, const clconv_record *r)
{
    const clconv_record *at;
    for (int i = 0; (at = clconv_tunedb_user_record(s->records, i)); ++i)
        if (clconv_record_same_key(at, r))
            return at;
    return NULL;
}

static bool take_record(station *s, const clconv_record *r, merged *m)
{
    const clconv_record *mine = find_same(s, r);
    if (mine && mine->microseconds <= r->microseconds) {
        m->slower++;
        return true;
    }
    m->taken++;
    return clconv_tunedb_save(s->records, r);
}

static bool merge_line(station *s, const char *file, int number,
                       const char *line, merged *m)
{
    clconv_record r;
    clconv_text why = CLCONV_TEXT_EMPTY;
    bool ok = true;
    switch (clconv_record_parse(line, strcspn(line, "\r\n"), false, &r, &why)) {
    case CLCONV_RECORD_OK: ok = take_record(s, &r, m); break;
    case CLCONV_RECORD_BLANK: break;
    default:
        m->skipped++;
        message_warning("%s:%d: %s", file, number, why.data ? why.data : "");
    }
    clconv_text_free(&why);
    return ok;
}

static bool merge_file(station *s, const char *path, merged *m)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    bool ok = true;
    if (!file) {
        message_error("merge %s: %s", path, strerror(errno));
        return false;
    }
    for (int number = 1; ok && getline(&line, &size, file) > 0; ++number)
        ok = merge_line(s, path, number, line, m);
    free(line);
    fclose(file);
    return ok;
}

int records_merge(station *s)
{
    merged m = {0, 0, 0};
    bool ok = true;
    for (int i = 0; i < s->options->file_count; ++i)
        ok = merge_file(s, s->options->files[i], &m) && ok;
    printf("%d taken, %d no faster than what is there, %d skipped\n", m.taken,
           m.slower, m.skipped);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- export, import ---------------------------------------------------- */

/* The exit status. */
static int say_bundle(const char *verb, clconv_status status,
                      const clconv_bundle_counts *counts)
{
    if (status) {
        message_error("%s: %s", verb, clconv_last_error());
        return EXIT_FAILURE;
    }
    printf("%d records, %d programs\n", counts->records, counts->programs);
    if (counts->foreign)
        printf("%d left out: %s\n", counts->foreign, counts->why);
    if (counts->records + counts->programs > 0)
        return EXIT_SUCCESS;
    message_error("%s: there is nothing of this device", verb);
    return EXIT_FAILURE;
}

int records_export(station *s)
{
    const clconv_bundle_place from = {s->places.cache, &s->device, s->prefix};
    clconv_bundle_counts counts = {0};
    clconv_status status =
        clconv_bundle_write(&from, &station_log, s->options->files[0], &counts);
    return say_bundle("export", status, &counts);
}

int records_import(station *s)
{
    const clconv_bundle_place to = {s->places.cache, &s->device, s->prefix};
    clconv_bundle_counts counts = {0};
    clconv_status status =
        clconv_bundle_read(s->options->files[0], &to, &station_log, &counts);
    return say_bundle("import", status, &counts);
}

/* ---- clean ------------------------------------------------------------- */

static int clean_records(station *s)
{
    record_list list;
    if (!record_list_of_device(s, &list))
        return 0;
    int count = 0;
    for (int i = 0; i < list.count; ++i)
        count += clconv_tunedb_remove(s->records, &list.items[i]);
    record_list_free(&list);
    return count;
}

static int clean_journal(const station *s)
{
    char *path = journal_path(s->places.tune, &s->device);
    int count = path && unlink(path) == 0;
    free(path);
    return count;
}

typedef struct keys {
    char **items;
    int count;
} keys;

static bool add_key(void *user, const clconv_program_file *entry)
{
    keys *k = user;
    char **more = realloc(k->items, ((size_t)k->count + 1) * sizeof *more);
    char *key = more ? strndup(entry->key, entry->key_size) : NULL;
    if (more)
        k->items = more;
    if (key)
        k->items[k->count++] = key;
    return key != NULL;
}

/* Removing while the directory is read is left to nobody: keys first. */
static int clean_programs(const station *s)
{
    keys k = {NULL, 0};
    int count = 0;
    clconv_store *store = clconv_store_new(s->places.cache, &no_log);
    if (!store)
        return 0;
    clconv_store_each(store, s->prefix, add_key, &k);
    for (int i = 0; i < k.count; ++i) {
        count += clconv_store_drop(store, k.items[i], "clean");
        free(k.items[i]);
    }
    free(k.items);
    clconv_store_free(store);
    return count;
}

int records_clean(station *s)
{
    int records = clean_records(s), journals = clean_journal(s);
    printf("removed %d records, %d journals, %d programs of %s\n", records,
           journals, clean_programs(s), s->label);
    return EXIT_SUCCESS;
}
