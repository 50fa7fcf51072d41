/*
 * A program's key begins with the names and versions that make its binary
 * useless elsewhere, one a line: it is this device's if these lines are. A
 * record is if it is of the same device, driver and units.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_format.h"
#include "os.h"
#include "store.h"
#include "tunedb.h"

/* Larger than all programs of a directory that anybody has; a larger file is
 * not ours. */
#define MAX_BUNDLE ((size_t)1 << 31)

/* A directory, opened. */
typedef struct place {
    const clconv_bundle_place *is;
    clconv_tunedb *records;
    clconv_store *programs;
} place;

static void close_place(place *p)
{
    clconv_tunedb_free(p->records);
    clconv_store_free(p->programs);
}

static clconv_status open_place(const clconv_bundle_place *is,
                                const clconv_log *log, place *out)
{
    place p = {is, clconv_tunedb_new(is->dir, log),
               clconv_store_new(is->dir, log)};
    if (p.records && p.programs) {
        *out = p;
        return CLCONV_OK;
    }
    close_place(&p);
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "cache directory %s cannot be used: it must be a "
                       "directory of this user or root that nobody else may "
                       "write to",
                       is->dir);
}

/* ---- Whose is it? ------------------------------------------------------ */

/* The line of text that begins at start. */
static int line_length(const char *start, const char *end)
{
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    return (int)((newline ? newline : end) - start);
}

/* Where two texts part, back to the beginning of that line. */
static size_t differing_line(const char *a, size_t a_size, const char *b,
                             size_t b_size)
{
    size_t line = 0, least = a_size < b_size ? a_size : b_size;
    for (size_t i = 0; i < least && a[i] == b[i]; ++i)
        if (a[i] == '\n')
            line = i + 1;
    return line;
}

static void note_foreign(clconv_bundle_counts *counts, const char *format, ...)
    CLCONV_PRINTF(2, 3);

static void note_foreign(clconv_bundle_counts *counts, const char *format, ...)
{
    if (counts->foreign++ > 0)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(counts->why, sizeof counts->why, format, args);
    va_end(args);
}

static bool owns_program(const place *p, const clconv_program_file *program,
                         clconv_bundle_counts *counts)
{
    const char *prefix = p->is->prefix, *key = program->key;
    size_t length = strlen(prefix);
    if (program->key_size >= length && memcmp(key, prefix, length) == 0)
        return true;
    size_t at = differing_line(key, program->key_size, prefix, length);
    note_foreign(counts, "a program of \"%.*s\", here it is \"%.*s\"",
                 line_length(key + at, key + program->key_size), key + at,
                 line_length(prefix + at, prefix + length), prefix + at);
    return false;
}

static bool owns_record(const place *p, const clconv_record *r,
                        clconv_bundle_counts *counts)
{
    if (clconv_record_nearness(r, p->is->device) == CLCONV_NEAR_DRIVER)
        return true;
    note_foreign(counts, "a record of %s, driver %s, %d compute units",
                 r->device.name, r->device.driver, r->device.compute_units);
    return false;
}

/* ---- Writing ----------------------------------------------------------- */

typedef struct writer {
    const place *from;
    clconv_text bytes;
    clconv_bundle_counts counts;
} writer;

static void add_records(writer *w)
{
    const clconv_record *r;
    for (int i = 0; (r = clconv_tunedb_user_record(w->from->records, i)); ++i) {
        if (!owns_record(w->from, r, &w->counts))
            continue;
        clconv_text line = CLCONV_TEXT_EMPTY;
        clconv_record_format(r, &line);
        w->bytes.failed |= line.failed;
        clconv_part part = {CLCONV_PART_RECORD, line.data, line.length};
        if (!line.failed)
            clconv_bundle_append(&w->bytes, &part);
        w->counts.records++;
        clconv_text_free(&line);
    }
}

static bool add_program(void *user, const clconv_program_file *p)
{
    writer *w = user;
    if (p->size == 0 || !owns_program(w->from, p, &w->counts))
        return true;
    size_t size;
    unsigned char *file = clconv_program_file_pack(p, &size);
    clconv_part part = {CLCONV_PART_PROGRAM, file, size};
    w->bytes.failed |= !file;
    if (file)
        clconv_bundle_append(&w->bytes, &part);
    w->counts.programs++;
    free(file);
    return !w->bytes.failed;
}

/* In the file's own directory, aside and renamed. */
static clconv_status put_file(const char *path, const clconv_text *bytes)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    clconv_text dir = CLCONV_TEXT_EMPTY, why = CLCONV_TEXT_EMPTY;
    clconv_text_append(&dir, path, (size_t)(name - path));
    clconv_text_puts(&dir, ".");
    clconv_os_result result = CLCONV_OS_FAILED;
    if (!dir.failed && *name)
        result =
            clconv_os_replace(dir.data, name, bytes->data, bytes->length, &why);
    clconv_status status = CLCONV_OK;
    if (result != CLCONV_OS_DONE)
        status = clconv_fail(CLCONV_INVALID_ARGUMENT,
                             "file %s cannot be written: %s", path,
                             why.data ? why.data : "it has no name");
    clconv_text_free(&dir);
    clconv_text_free(&why);
    return status;
}

static clconv_status pack(writer *w)
{
    clconv_bundle_begin(&w->bytes);
    add_records(w);
    if (!clconv_store_each(w->from->programs, "", add_program, w))
        w->bytes.failed = true;
    clconv_bundle_end(&w->bytes,
                      (size_t)(w->counts.records + w->counts.programs));
    if (w->bytes.failed)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a bundle");
    return CLCONV_OK;
}

clconv_status clconv_bundle_write(const clconv_bundle_place *from,
                                  const clconv_log *log, const char *file,
                                  clconv_bundle_counts *out)
{
    place p;
    clconv_status status = open_place(from, log, &p);
    if (status != CLCONV_OK)
        return status;
    writer w = {.from = &p};
    status = pack(&w);
    if (status == CLCONV_OK)
        status = put_file(file, &w.bytes);
    if (status == CLCONV_OK)
        *out = w.counts;
    clconv_text_free(&w.bytes);
    close_place(&p);
    return status;
}

/* ---- Reading ----------------------------------------------------------- */

static const char *check_record(const clconv_part *part, clconv_record *out,
                                clconv_record_result *result)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    *result = clconv_record_parse(part->data, part->size, true, out, &why);
    clconv_text_free(&why);
    return *result == CLCONV_RECORD_DAMAGED ? "one of its records is damaged"
                                            : NULL;
}

static const char *check_part(const clconv_part *part)
{
    clconv_record record;
    clconv_record_result result;
    clconv_program_file program;
    if (part->kind == CLCONV_PART_RECORD)
        return check_record(part, &record, &result);
    return clconv_program_file_parse(part->data, part->size, &program);
}

/* False, as in what follows: it could not be written. */
static bool take_record(const place *to, const clconv_part *part,
                        clconv_bundle_counts *counts)
{
    clconv_record record;
    clconv_record_result result;
    check_record(part, &record, &result);
    if (result != CLCONV_RECORD_OK)
        note_foreign(counts, "a record for other kernels than this version's");
    if (result != CLCONV_RECORD_OK || !owns_record(to, &record, counts))
        return true;
    bool written = clconv_tunedb_save(to->records, &record);
    counts->records += written;
    return written;
}

static bool take_program(const place *to, const clconv_part *part,
                         clconv_bundle_counts *counts)
{
    clconv_program_file p;
    clconv_program_file_parse(part->data, part->size, &p);
    if (!owns_program(to, &p, counts))
        return true;
    clconv_text key = CLCONV_TEXT_EMPTY;
    clconv_text_append(&key, p.key, p.key_size);
    bool written = !key.failed &&
                   clconv_store_write(to->programs, key.data, p.data, p.size);
    counts->programs += written;
    clconv_text_free(&key);
    return written;
}

static bool take_part(const place *to, const clconv_part *part,
                      clconv_bundle_counts *counts)
{
    return part->kind == CLCONV_PART_RECORD ? take_record(to, part, counts)
                                            : take_program(to, part, counts);
}

/* A fault of the bundle's or of one of its parts, or NULL. */
static const char *check_bundle(const unsigned char *bytes, size_t size,
                                clconv_bundle_reader *out)
{
    clconv_part part;
    const char *fault = clconv_bundle_open(bytes, size, out);
    clconv_bundle_reader reader = *out;
    while (!fault && clconv_bundle_next(&reader, &part))
        fault = check_part(&part);
    return fault;
}

static clconv_status take_bundle(const char *file, clconv_bundle_reader reader,
                                 const place *to, clconv_bundle_counts *counts)
{
    clconv_part part;
    bool written = true;
    while (written && clconv_bundle_next(&reader, &part))
        written = take_part(to, &part, counts);
    if (written)
        return CLCONV_OK;
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "cache directory %s cannot be written: of file %s only "
                       "%d records and %d programs are taken",
                       to->is->dir, file, counts->records, counts->programs);
}

static clconv_status check_and_take(const char *file,
                                    const unsigned char *bytes, size_t size,
                                    const place *to, clconv_bundle_counts *out)
{
    clconv_bundle_reader reader = {NULL, NULL};
    clconv_bundle_counts counts = {0};
    const char *fault = check_bundle(bytes, size, &reader);
    if (fault)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "file %s is not taken: %s",
                           file, fault);
    clconv_status status = take_bundle(file, reader, to, &counts);
    if (status == CLCONV_OK)
        *out = counts;
    return status;
}

static clconv_status read_file(const char *path, unsigned char **bytes,
                               size_t *size)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_os_result result =
        clconv_os_read(path, MAX_BUNDLE, bytes, size, &why);
    clconv_status status = CLCONV_OK;
    if (result != CLCONV_OS_DONE)
        status = clconv_fail(CLCONV_INVALID_ARGUMENT,
                             "file %s cannot be read: %s", path,
                             result == CLCONV_OS_MISSING ? "there is none"
                             : why.data                  ? why.data
                                                         : "no memory");
    clconv_text_free(&why);
    return status;
}

clconv_status clconv_bundle_read(const char *file, const clconv_bundle_place *to,
                                 const clconv_log *log,
                                 clconv_bundle_counts *out)
{
    unsigned char *bytes;
    size_t size;
    clconv_status status = read_file(file, &bytes, &size);
    if (status != CLCONV_OK)
        return status;
    place p;
    status = open_place(to, log, &p);
    if (status == CLCONV_OK) {
        status = check_and_take(file, bytes, size, &p, out);
        close_place(&p);
    }
    free(bytes);
    return status;
}
