/*
 * A user's record is a file of one sealed line, named by a hash of its key, so
 * that the one for a problem is found without a look at the others; these are
 * read when it is not there. What was read stays for good: plans point to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tunedb.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "os.h"
#include "shipped.h"

enum { DAY = 24 * 60 * 60 };

typedef enum entry_state {
    LIVE,
    GONE, /* replaced or removed: plans may still point to the record */
    BAD   /* a file without a record that we could use, or one rejected */
} entry_state;

typedef struct entry {
    clconv_record record;
    entry_state state;
    char name[CLCONV_HASH_HEX]; /* the file's; of a shipped one "" */
    clconv_hash content;        /* of the file's bytes when it was read */
    bool unwritten;             /* the file, if there is one, is older */
} entry;

struct clconv_tunedb {
    clconv_mutex *mutex; /* around all that follows */
    clconv_log log;
    char *root; /* the cache directory; NULL: none */
    char *dir;  /* the records'; NULL: not opened, or not to be used */
    bool opened, read_shipped, read_all;
    bool warned; /* that it cannot be written */
    entry **entries;
    size_t count;
    clconv_tunedb_counts counts;
};

clconv_tunedb *clconv_tunedb_new(const char *dir, const clconv_log *log)
{
    clconv_tunedb *db = calloc(1, sizeof *db);
    if (!db)
        return NULL;
    db->log = *log;
    db->mutex = clconv_mutex_new();
    db->root = dir ? strdup(dir) : NULL;
    if (db->mutex && (db->root || !dir))
        return db;
    clconv_tunedb_free(db);
    return NULL;
}

void clconv_tunedb_free(clconv_tunedb *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < db->count; ++i)
        free(db->entries[i]);
    free(db->entries);
    free(db->dir);
    free(db->root);
    clconv_mutex_free(db->mutex);
    free(db);
}

/* ---- Entries ----------------------------------------------------------- */

static bool is_user(const entry *e)
{
    return e->name[0] != '\0';
}

/* NULL: no memory, and the record is not there. */
static entry *add(clconv_tunedb *db)
{
    entry **grown = realloc(db->entries, (db->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    db->entries = grown;
    entry *e = calloc(1, sizeof *e);
    if (e)
        db->entries[db->count++] = e;
    return e;
}

/* What is known of a file, or NULL. */
static entry *find_file(const clconv_tunedb *db, const char *name)
{
    for (size_t i = 0; i < db->count; ++i)
        if (db->entries[i]->state != GONE &&
            strcmp(db->entries[i]->name, name) == 0)
            return db->entries[i];
    return NULL;
}

static void add_file(clconv_tunedb *db, const char *name, clconv_hash content,
                     const clconv_record *record, entry_state state)
{
    entry *old = find_file(db, name);
    entry *e = add(db);
    if (!e)
        return;
    if (old)
        old->state = GONE;
    e->record = *record;
    e->state = state;
    e->content = content;
    strcpy(e->name, name);
}

static void count(clconv_tunedb *db, clconv_record_result result, int *good)
{
    int *const counters[] = {
        [CLCONV_RECORD_OK] = good,
        [CLCONV_RECORD_STALE] = &db->counts.stale,
        [CLCONV_RECORD_UNKNOWN] = &db->counts.unknown,
        [CLCONV_RECORD_DAMAGED] = &db->counts.damaged,
    };
    if (result != CLCONV_RECORD_BLANK)
        ++*counters[result];
}

/* ---- Shipped records --------------------------------------------------- */

static void read_line(clconv_tunedb *db, const char *line, size_t length)
{
    clconv_record record;
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_record_result result =
        clconv_record_parse(line, length, false, &record, &why);
    count(db, result, &db->counts.shipped);
    entry *e = result == CLCONV_RECORD_OK ? add(db) : NULL;
    if (e)
        e->record = record;
    clconv_text_free(&why);
}

static void read_shipped(clconv_tunedb *db)
{
    if (db->read_shipped)
        return;
    db->read_shipped = true;
    for (size_t i = 0; i < clconv_shipped_count; ++i)
        for (const char *at = clconv_shipped[i].text; *at;) {
            size_t length = strcspn(at, "\n");
            read_line(db, at, length);
            at += length + (at[length] == '\n');
        }
}

/* ---- The user's -------------------------------------------------------- */

/* Once, until a record is written again. */
static void warn_of_writing(clconv_tunedb *db, const clconv_text *why)
{
    if (!db->warned)
        clconv_log_warn(&db->log,
                        "cache directory %s cannot be written (%s): new tuned "
                        "records are kept in memory only",
                        db->dir, why->data ? why->data : "no memory");
    db->warned = true;
}

static bool open_dir(clconv_tunedb *db)
{
    if (db->opened || !db->root)
        return db->dir != NULL;
    db->opened = true;
    clconv_text why = CLCONV_TEXT_EMPTY;
    db->dir = clconv_os_private_subdir(db->root, CLCONV_TUNEDB_DIR, &why);
    if (!db->dir)
        clconv_log_warn(&db->log,
                        "cache directory %s is not used (%s): tuned records "
                        "are kept in memory only",
                        db->root, why.data ? why.data : "no memory");
    else if (why.length > 0)
        warn_of_writing(db, &why);
    else
        clconv_os_remove_unfinished(db->dir, DAY);
    clconv_text_free(&why);
    return db->dir != NULL;
}

/* The name of a record's file. */
static bool name_of(const clconv_record *r, char out[CLCONV_HASH_HEX])
{
    clconv_text key = CLCONV_TEXT_EMPTY;
    clconv_record_key(r, &key);
    bool ok = !key.failed;
    if (ok)
        clconv_hash_hex(clconv_hash_bytes(key.data, key.length), out);
    clconv_text_free(&key);
    return ok;
}

static char *path_of(const clconv_tunedb *db, const char *name)
{
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/%s", db->dir, name);
    return clconv_text_take(&path);
}

/* What the file's bytes are. */
static clconv_record_result parse_file(const char *name, const char *data,
                                       size_t size, clconv_record *out,
                                       clconv_text *why)
{
    char expected[CLCONV_HASH_HEX];
    if (size > 0 && data[size - 1] == '\n')
        --size;
    clconv_record_result result =
        clconv_record_parse(data, size, true, out, why);
    if (result == CLCONV_RECORD_BLANK) {
        clconv_text_puts(why, "it is empty");
        return CLCONV_RECORD_DAMAGED;
    }
    if (result == CLCONV_RECORD_OK &&
        (!name_of(out, expected) || strcmp(name, expected) != 0)) {
        clconv_text_puts(why, "its name is that of another record");
        return CLCONV_RECORD_UNKNOWN;
    }
    return result;
}

/* Of all that we cannot use only what is damaged goes: another version of the
 * library may know the rest. */
static void drop_damaged(clconv_tunedb *db, const char *path, const char *why)
{
    bool gone = clconv_os_remove(path);
    clconv_log_warn(&db->log, "tuned record %s is %s: %s", path,
                    gone ? "dropped" : "not used", why);
}

/* Keeps what a file says, unless that is known. */
static void take_file(clconv_tunedb *db, const char *name, const char *path,
                      const unsigned char *data, size_t size)
{
    clconv_hash content = clconv_hash_bytes(data, size);
    const entry *known = find_file(db, name);
    if (known && (known->unwritten || (known->content.low == content.low &&
                                       known->content.high == content.high)))
        return;
    clconv_record record = {.ops = 0};
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_record_result result =
        parse_file(name, (const char *)data, size, &record, &why);
    count(db, result, &db->counts.user);
    add_file(db, name, content, &record,
             result == CLCONV_RECORD_OK ? LIVE : BAD);
    if (result == CLCONV_RECORD_DAMAGED)
        drop_damaged(db, path, why.data ? why.data : "no memory");
    clconv_text_free(&why);
}

static void read_file(clconv_tunedb *db, const char *name)
{
    char *path = path_of(db, name);
    if (!path)
        return;
    unsigned char *data;
    size_t size;
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_os_result result =
        clconv_os_read_trusted(path, CLCONV_RECORD_LINE + 1, &data, &size, &why);
    if (result == CLCONV_OS_DONE) {
        take_file(db, name, path, data, size);
        free(data);
    }
    /* It may be a good one that cannot be read just now: it stays. */
    if (result == CLCONV_OS_FAILED && !find_file(db, name)) {
        add_file(db, name, (clconv_hash){0, 0}, &(clconv_record){.ops = 0}, BAD);
        clconv_log_warn(&db->log, "tuned record %s is not read: %s", path,
                        why.data ? why.data : "no memory");
    }
    clconv_text_free(&why);
    free(path);
}

static void read_all(clconv_tunedb *db)
{
    clconv_os_names names;
    read_shipped(db);
    if (db->read_all || !open_dir(db) || !clconv_os_list(db->dir, &names))
        return;
    db->read_all = true;
    for (size_t i = 0; i < names.count; ++i)
        if (strlen(names.name[i]) == CLCONV_HASH_HEX - 1)
            read_file(db, names.name[i]);
    clconv_os_names_free(&names);
}

/* ---- Finding ----------------------------------------------------------- */

static bool find_exact(clconv_tunedb *db, clconv_matching *m)
{
    clconv_record wanted = {
        .problem = *m->problem, .ops = m->ops, .device = *m->device};
    char name[CLCONV_HASH_HEX];
    if (!open_dir(db) || !name_of(&wanted, name))
        return false;
    read_file(db, name);
    const entry *e = find_file(db, name);
    if (e && e->state == LIVE)
        clconv_matching_add(m, &e->record);
    return m->count > 0;
}

/* The user's own come first, of equals. */
static void find_near(clconv_tunedb *db, clconv_matching *m)
{
    read_all(db);
    for (int user = 1; user >= 0; --user)
        for (size_t i = 0; i < db->count; ++i)
            if (db->entries[i]->state == LIVE &&
                is_user(db->entries[i]) == (user == 1))
                clconv_matching_add(m, &db->entries[i]->record);
}

int clconv_tunedb_find(clconv_tunedb *db, const clconv_problem *problem,
                       const clconv_device *device, unsigned ops,
                       clconv_match out[CLCONV_MAX_MATCHES])
{
    clconv_matching m = {.problem = problem, .device = device, .ops = ops};
    clconv_mutex_lock(db->mutex);
    if (!find_exact(db, &m))
        find_near(db, &m);
    clconv_mutex_unlock(db->mutex);
    memcpy(out, m.best, sizeof *out * (size_t)m.count);
    return m.count;
}

/* ---- Saving and removing ----------------------------------------------- */

static bool write_file(clconv_tunedb *db, const char *name,
                       const clconv_text *line)
{
    if (!open_dir(db))
        return false;
    clconv_text why = CLCONV_TEXT_EMPTY;
    bool done = clconv_os_replace(db->dir, name, line->data, line->length,
                                  &why) == CLCONV_OS_DONE;
    if (done)
        db->warned = false;
    else
        warn_of_writing(db, &why);
    clconv_text_free(&why);
    return done;
}

/* line: as it is on disk, with its newline. */
static bool save_line(clconv_tunedb *db, const clconv_text *line,
                      const clconv_record *r)
{
    char name[CLCONV_HASH_HEX];
    if (!name_of(r, name))
        return false;
    clconv_mutex_lock(db->mutex);
    bool written = write_file(db, name, line);
    add_file(db, name, clconv_hash_bytes(line->data, line->length), r, LIVE);
    entry *e = find_file(db, name);
    if (e)
        e->unwritten = !written;
    clconv_mutex_unlock(db->mutex);
    return written;
}

bool clconv_tunedb_save(clconv_tunedb *db, const clconv_record *r)
{
    clconv_record read; /* as any other process will have it */
    clconv_text line = CLCONV_TEXT_EMPTY, why = CLCONV_TEXT_EMPTY;
    clconv_record_format(r, &line);
    bool ok = !line.failed &&
              clconv_record_parse(line.data, line.length, true, &read, &why) ==
                  CLCONV_RECORD_OK;
    if (!ok)
        clconv_log_warn(&db->log, "a tuned record is not kept: %s",
                        why.data ? why.data : "no memory");
    clconv_text_puts(&line, "\n");
    ok = ok && !line.failed && save_line(db, &line, &read);
    clconv_text_free(&why);
    clconv_text_free(&line);
    return ok;
}

bool clconv_tunedb_remove(clconv_tunedb *db, const clconv_record *r)
{
    char name[CLCONV_HASH_HEX];
    if (!name_of(r, name))
        return false;
    clconv_mutex_lock(db->mutex);
    entry *e = find_file(db, name);
    char *path = open_dir(db) ? path_of(db, name) : NULL;
    bool gone = !path || clconv_os_remove(path);
    if (e && gone)
        e->state = GONE;
    clconv_mutex_unlock(db->mutex);
    free(path);
    return gone;
}

/* ---- Listing ----------------------------------------------------------- */

void clconv_tunedb_count(clconv_tunedb *db, clconv_tunedb_counts *out)
{
    clconv_mutex_lock(db->mutex);
    read_all(db);
    *out = db->counts;
    clconv_mutex_unlock(db->mutex);
}

const clconv_record *clconv_tunedb_user_record(clconv_tunedb *db, int index)
{
    const clconv_record *found = NULL;
    clconv_mutex_lock(db->mutex);
    read_all(db);
    for (size_t i = 0; !found && i < db->count; ++i) {
        const entry *e = db->entries[i];
        if (e->state == LIVE && is_user(e) && index-- == 0)
            found = &e->record;
    }
    clconv_mutex_unlock(db->mutex);
    return found;
}
