/*
 * Lines are written by one write() each to a file opened for appending, so
 * that several programs may share it.
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
#include "trial_fields.h"

#define CHECK_FIELD " check="
#define CHECK_DIGITS 16

typedef struct entry {
    uint64_t key; /* of problem, ops and plan */
    clconv_trial trial;
} entry;

struct journal {
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
    clconv_text_printf(&facts, "%s\n%s\n%s\n%s\n%d\n%d\n%s\n", device->name,
                       device->vendor, device->platform, device->driver,
                       device->compute_units, (int)device->unit,
                       clconv_version());
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

static void seal(const char *line, size_t length, char out[CHECK_DIGITS + 1])
{
    char hex[CLCONV_HASH_HEX];
    clconv_hash_hex(clconv_hash_bytes(line, length), hex);
    memcpy(out, hex, CHECK_DIGITS);
    out[CHECK_DIGITS] = '\0';
}

/* Cuts the check off; false: it does not hold. */
static bool unseal(char *line)
{
    char check[CHECK_DIGITS + 1];
    size_t length = strlen(line), tail = strlen(CHECK_FIELD) + CHECK_DIGITS;
    if (length < tail)
        return false;
    char *at = line + length - tail;
    seal(line, (size_t)(at - line), check);
    if (strncmp(at, CHECK_FIELD, strlen(CHECK_FIELD)) != 0 ||
        strcmp(at + strlen(CHECK_FIELD), check) != 0)
        return false;
    *at = '\0';
    return true;
}

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

static bool read_line(journal *j, char *line)
{
    subject s = {.ops = 0};
    clconv_trial trial = trial_failed(CLCONV_OUTCOMES, "");
    line_field f;
    if (!unseal(line))
        return false;
    clconv_fields in = {.at = line, .end = line + strlen(line)};
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
        line[strcspn(line, "\n")] = '\0';
        if (read_line(j, line))
            j->lines++;
        else if (*line)
            j->skipped++;
    }
    free(line);
}

/* A last line that a kill has torn is closed, so that ours starts anew. */
static void close_torn_line(journal *j)
{
    char last = '\n';
    off_t end = lseek(j->file, 0, SEEK_END);
    if (end > 0 && pread(j->file, &last, 1, end - 1) == 1 && last != '\n' &&
        write(j->file, "\n", 1) != 1)
        j->failed = true;
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
    FILE *from = j ? fopen(path, "r") : NULL;
    if (!from) {
        close(file);
        free(j);
        return fail_open(path, j ? errno : ENOMEM);
    }
    j->file = file;
    read_lines(j, from);
    fclose(from);
    close_torn_line(j);
    return j;
}

void journal_close(journal *j)
{
    if (!j)
        return;
    close(j->file);
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

void journal_add(journal *j, const char *problem, unsigned ops,
                 const char *plan, const clconv_trial *trial)
{
    char check[CHECK_DIGITS + 1];
    clconv_text line = CLCONV_TEXT_EMPTY;
    line_put_text(&line, "problem", problem);
    line_put_integer(&line, "ops", (long)ops);
    line_put_text(&line, "plan", plan);
    trial_put(&line, trial);
    if (!line.failed)
        seal(line.data, line.length, check);
    clconv_text_printf(&line, CHECK_FIELD "%s\n", line.failed ? "" : check);
    bool ok = !line.failed &&
              write(j->file, line.data, line.length) == (ssize_t)line.length;
    if (!ok && !j->failed)
        message_warning("the journal cannot be written: %s", strerror(errno));
    j->failed = j->failed || !ok;
    clconv_text_free(&line);
    remember(j, make_key(problem, ops, plan), trial);
}

const clconv_trial *journal_find(const journal *j, const char *problem,
                                 unsigned ops, const char *plan)
{
    const entry *e = find_entry(j, make_key(problem, ops, plan));
    return e ? &e->trial : NULL;
}
