/*
 * Lines are written by one write() each to a file opened for appending, so
 * that several programs may share it. One that was torn, by a kill or for want
 * of room, is closed before the next: it costs no other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "kernel.h"
#include "message.h"
#include "seal.h"
#include "trial_fields.h"

typedef struct entry {
    uint64_t key; /* of problem, ops and plan */
    clconv_trial trial;
} entry;

struct journal {
    char *path;
    int file;
    bool failed; /* to write, said */
    entry *entries;
    int count, capacity;
    int lines, skipped;
};

/* ---- Keys -------------------------------------------------------------- */

char *journal_path(const char *dir, const clconv_device *device)
{
    clconv_text facts = CLCONV_TEXT_EMPTY, path = CLCONV_TEXT_EMPTY;
    char hex[CLCONV_HASH_HEX];
    clconv_text_printf(&facts, "%s\n%s\n%s\n%s\n%d\n%u\n%s\n", device->name,
                       device->vendor, device->platform, device->driver,
                       device->compute_units, device->units, clconv_version());
    for (int i = 0; i < clconv_kernel_count; ++i)
        clconv_text_printf(&facts, "%s:%d\n", clconv_kernels[i]->name,
                           clconv_kernels[i]->revision);
    if (facts.data)
        clconv_hash_hex(clconv_hash_bytes(facts.data, facts.length), hex);
    if (!facts.failed)
        clconv_text_printf(&path, "%s/journal-%.16s.txt", dir, hex);
    path.failed = path.failed || facts.failed;
    clconv_text_free(&facts);
    return clconv_text_take(&path);
}

/* 64 bits: of a million plans two are the same with a chance of 1e-8. */
static uint64_t make_key(const char *problem, unsigned ops, const char *plan)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&text, "%s %u %s", problem, ops, plan);
    uint64_t key =
        text.failed ? 0 : clconv_hash_bytes(text.data, text.length).low;
    clconv_text_free(&text);
    return key;
}

/* ---- In memory --------------------------------------------------------- */

static entry *find_entry(const journal *j, uint64_t key)
{
    for (int i = 0; i < j->count; ++i)
        if (j->entries[i].key == key)
            return &j->entries[i];
    return NULL;
}

static entry *new_entry(journal *j, uint64_t key)
{
    if (j->count == j->capacity) {
        int capacity = j->capacity ? 2 * j->capacity : 256;
        entry *more = realloc(j->entries, (size_t)capacity * sizeof *more);
        if (!more)
            return NULL;
        j->entries = more;
        j->capacity = capacity;
    }
    entry *e = &j->entries[j->count++];
    e->key = key;
    return e;
}

/* Without memory the trial is forgotten, not the run. */
static void remember(journal *j, uint64_t key, const clconv_trial *trial)
{
    entry *e = find_entry(j, key);
    if (!e)
        e = new_entry(j, key);
    if (e)
        e->trial = *trial;
}

/* ---- Lines ------------------------------------------------------------- */

/* What a line is about. */
typedef struct subject {
    char problem[256];
    long ops;
    char plan[CLCONV_RECORD_PLAN];
    bool has_plan;
} subject;

static bool take_field(const line_field *f, subject *s, clconv_trial *trial)
{
    if (strcmp(f->name, "problem") == 0)
        return line_copy(f->value, s->problem, sizeof s->problem);
    if (strcmp(f->name, "plan") == 0) {
        s->has_plan = true;
        return line_copy(f->value, s->plan, sizeof s->plan);
    }
    if (strcmp(f->name, "ops") == 0)
        return line_integer(f->value, 1, CLCONV_OP_BACKWARD, &s->ops);
    return trial_take(f, trial);
}

static bool read_line(journal *j, const char *line, size_t length)
{
    subject s = {.ops = 0};
    clconv_trial trial = trial_failed(CLCONV_OUTCOMES, "");
    line_field f;
    if (clconv_seal_take(line, &length) != CLCONV_SEAL_RIGHT)
        return false;
    clconv_fields in = {.at = line, .end = line + length};
    while (line_next(&in, &f))
        if (!take_field(&f, &s, &trial))
            return false;
    if (in.fault || !*s.problem || !s.has_plan || !s.ops ||
        trial.outcome == CLCONV_OUTCOMES)
        return false;
    remember(j, make_key(s.problem, (unsigned)s.ops, s.plan), &trial);
    return true;
}

static void read_lines(journal *j, FILE *from)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, from) > 0) {
        size_t length = strcspn(line, "\n");
        if (read_line(j, line, length))
            j->lines++;
        else if (length > 0)
            j->skipped++;
    }
    free(line);
}

/* True if all of it was written; else errno says why not. */
static bool append(const journal *j, const char *data, size_t length)
{
    ssize_t put = write(j->file, data, length);
    if (put >= 0)
        errno = ENOSPC; /* unless it was all */
    return put == (ssize_t)length;
}

/* Whoever tore the last line, ours starts anew. */
static bool close_torn_line(const journal *j)
{
    char last = '\n';
    off_t end = lseek(j->file, 0, SEEK_END);
    return end <= 0 || pread(j->file, &last, 1, end - 1) != 1 || last == '\n' ||
           append(j, "\n", 1);
}

/* ---- The object -------------------------------------------------------- */

static journal *fail_open(const char *path, int error)
{
    message_error("%s: %s", path, strerror(error));
    return NULL;
}

journal *journal_open(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        return fail_open(path, errno);
    journal *j = calloc(1, sizeof *j);
    char *copy = strdup(path);
    FILE *from = j && copy ? fopen(path, "r") : NULL;
    if (!from) {
        int error = j && copy ? errno : ENOMEM;
        close(file);
        free(copy);
        free(j);
        return fail_open(path, error);
    }
    j->path = copy;
    j->file = file;
    read_lines(j, from);
    fclose(from);
    return j;
}

void journal_close(journal *j)
{
    if (!j)
        return;
    close(j->file);
    free(j->path);
    free(j->entries);
    free(j);
}

int journal_count(const journal *j)
{
    return j->lines;
}

int journal_skipped(const journal *j)
{
    return j->skipped;
}

/* Once. */
static void say_failure(journal *j, int error)
{
    if (!j->failed)
        message_warning("the journal %s cannot be written: %s", j->path,
                        strerror(error));
    j->failed = true;
}

void journal_add(journal *j, const char *problem, unsigned ops,
                 const char *plan, const clconv_trial *trial)
{
    clconv_text line = CLCONV_TEXT_EMPTY;
    line_put_text(&line, "problem", problem);
    line_put_integer(&line, "ops", (long)ops);
    line_put_text(&line, "plan", plan);
    trial_put(&line, trial);
    clconv_seal_put(&line, 0);
    clconv_text_puts(&line, "\n");
    if (line.failed)
        say_failure(j, ENOMEM);
    else if (!close_torn_line(j) || !append(j, line.data, line.length))
        say_failure(j, errno);
    clconv_text_free(&line);
    remember(j, make_key(problem, ops, plan), trial);
}

const clconv_trial *journal_find(const journal *j, const char *problem,
                                 unsigned ops, const char *plan)
{
    const entry *e = find_entry(j, make_key(problem, ops, plan));
    return e ? &e->trial : NULL;
}
