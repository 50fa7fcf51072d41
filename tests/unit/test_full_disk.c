/*
 * A file system that is full: whatever room there is left, a reader gets what
 * was there before or the whole of what is new, what could not be written is
 * said with its path, and no rest of it stays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle.h"
#include "cache_dir.h"
#include "journal.h"
#include "mounts.h"
#include "os.h"
#include "records.h"
#include "store.h"
#include "trial_fields.h"
#include "tunedb.h"

#define NO_SPACE "No space left on device"

enum { PAGE = 4096, PAGES = 64 };

static cache_dir full;      /* the file system */
static cache_dir elsewhere; /* where there is room */
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};
static clconv_device device;
static char path[600];

static void set_up(void)
{
    cache_dir_make(&full);
    cache_dir_make(&elsewhere);
    cr_assert(mounts_enter());
    mounts_small(full.path, (size_t)PAGES * PAGE, 0);
    cr_assert(clconv_device_preset("cpu", &device));
    strcpy(device.driver, "1");
}

static void tear_down(void)
{
    mounts_end(full.path);
    cache_dir_remove(&full);
    cache_dir_remove(&elsewhere);
}

TestSuite(full_disk, .init = set_up, .fini = tear_down);

/* Room for so many pages, and not a byte more. */
static void leave_room(int pages)
{
    mounts_fill(full.path);
    mounts_make_room(full.path, (size_t)pages * PAGE);
}

static void expect_in(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "no %s in: %s", part, text);
}

/* One warning, which names this directory and the reason. */
static void expect_warning(const char *dir)
{
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
    expect_in(warnings.last, dir);
    expect_in(warnings.last, NO_SPACE);
}

static void expect_no_rest(const char *dir)
{
    char pattern[700];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/" CLCONV_OS_UNFINISHED "*", dir);
    cr_assert_eq(glob(pattern, 0, NULL, &found), GLOB_NOMATCH, "%s", pattern);
}

/* ---- Programs ------------------------------------------------------------ */

enum { PROGRAM_PAGES = 6, PROGRAM = PROGRAM_PAGES * PAGE - 1000 };

static bool write_program(const char *key, int version)
{
    static unsigned char bytes[PROGRAM];
    clconv_store *s = clconv_store_new(full.path, &logger);
    cr_assert_not_null(s, "%s", warnings.last);
    memset(bytes, version, sizeof bytes);
    bool written = clconv_store_write(s, key, bytes, sizeof bytes);
    clconv_store_free(s);
    return written;
}

/* 0: there is none. */
static int read_program(const char *key)
{
    unsigned char *data;
    size_t size;
    clconv_store *s = clconv_store_new(full.path, &logger);
    cr_assert_not_null(s, "%s", warnings.last);
    bool found = clconv_store_read(s, key, &data, &size);
    clconv_store_free(s);
    if (!found)
        return 0;
    int version = data[0];
    cr_assert_eq(size, PROGRAM);
    cr_assert_eq(memcmp(data, data + 1, size - 1), 0);
    free(data);
    return version;
}

/* old: the version that there is; the one that is there then. */
static int replace_program(const char *key, int old, int pages)
{
    warnings.warnings = 0;
    leave_room(pages);
    bool written = write_program(key, old + 1);
    if (!written)
        expect_warning(full.entries);
    int now = written ? old + 1 : old;
    cr_assert_eq(read_program(key), now, "%d pages", pages);
    cr_assert_eq(warnings.warnings, !written, "%s", warnings.last);
    expect_no_rest(full.entries);
    return now;
}

Test(full_disk, a_program_is_there_as_a_whole_or_as_it_was)
{
    clconv_store_free(clconv_store_new(full.path, &logger));
    int old = 0, fresh = 0;
    for (int pages = 0; pages <= PROGRAM_PAGES + 1; ++pages) {
        old = replace_program("one", old, pages);
        fresh = replace_program("another", fresh, pages);
        cr_assert_eq(old > 0, pages >= PROGRAM_PAGES, "%d pages", pages);
    }
    cr_assert_eq(cache_dir_count(&full), 2);
}

/* ---- Records ------------------------------------------------------------- */

#define PROBLEM "n32c64h16w16k64r3s3p1"

static bool save_record(double microseconds)
{
    clconv_record r = record_of(PROBLEM, &device);
    r.microseconds = microseconds;
    clconv_tunedb *db = clconv_tunedb_new(full.path, &logger);
    bool saved = clconv_tunedb_save(db, &r);
    clconv_tunedb_free(db);
    return saved;
}

/* Its time, and nothing else in the directory; 0: there is none. */
static double read_record(void)
{
    clconv_tunedb_counts counts;
    clconv_tunedb *db = clconv_tunedb_new(full.path, &logger);
    const clconv_record *r = clconv_tunedb_user_record(db, 0);
    double microseconds = r ? r->microseconds : 0;
    clconv_tunedb_count(db, &counts);
    cr_assert_eq(counts.user, r != NULL);
    cr_assert_eq(counts.damaged, 0);
    clconv_tunedb_free(db);
    return microseconds;
}

Test(full_disk, a_record_is_there_as_a_whole_or_as_it_was)
{
    snprintf(path, sizeof path, "%s/" CLCONV_TUNEDB_DIR, full.path);
    read_record();
    for (int old = 0; old <= 10; old += 10) {
        warnings.warnings = 0;
        leave_room(0);
        cr_assert_not(save_record(old + 10));
        expect_warning(path);
        cr_assert_eq(read_record(), old);
        expect_no_rest(path);
        leave_room(1);
        cr_assert(save_record(old + 10), "%s", warnings.last);
        cr_assert_eq(read_record(), old + 10);
    }
}

/* ---- Bundles ------------------------------------------------------------- */

enum { PROGRAMS = 4 };
static const char prefix[] = "device: any\n";

static void fill_cache(const cache_dir *dir)
{
    static const unsigned char bytes[PAGE] = "a program";
    clconv_record r = record_of(PROBLEM, &device);
    clconv_tunedb *db = clconv_tunedb_new(dir->path, &logger);
    clconv_store *s = clconv_store_new(dir->path, &logger);
    cr_assert(clconv_tunedb_save(db, &r));
    for (int i = 0; i < PROGRAMS; ++i) {
        char key[64];
        snprintf(key, sizeof key, "%s%d", prefix, i);
        cr_assert(clconv_store_write(s, key, bytes, sizeof bytes));
    }
    clconv_store_free(s);
    clconv_tunedb_free(db);
}

static clconv_status write_bundle(const char *file)
{
    clconv_bundle_place here = {elsewhere.path, &device, prefix};
    clconv_bundle_counts counts;
    return clconv_bundle_write(&here, &logger, file, &counts);
}

static clconv_status read_bundle(const char *file, const cache_dir *to)
{
    clconv_bundle_place there = {to->path, &device, prefix};
    clconv_bundle_counts counts;
    return clconv_bundle_read(file, &there, &logger, &counts);
}

Test(full_disk, a_bundle_is_written_as_a_whole_or_stays_as_it_was)
{
    struct stat before, after;
    snprintf(path, sizeof path, "%s/all.clconv", full.path);
    cr_assert_eq(write_bundle(path), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(stat(path, &before), 0);
    fill_cache(&elsewhere);
    int pages = 0;
    for (;; ++pages) {
        leave_room(pages);
        if (write_bundle(path) == CLCONV_OK)
            break;
        expect_in(clconv_last_error(), path);
        expect_in(clconv_last_error(), NO_SPACE);
        cr_assert_eq(stat(path, &after), 0);
        cr_assert_eq(after.st_ino, before.st_ino, "%d pages", pages);
        expect_no_rest(full.path);
    }
    cr_assert_gt(pages, PROGRAMS);
    cr_assert_eq(read_bundle(path, &elsewhere), CLCONV_OK);
}

/* Those that are there; each must be as it was written. */
static int count_taken(void)
{
    int count = read_record() > 0;
    clconv_store *s = clconv_store_new(full.path, &logger);
    for (int i = 0; i < PROGRAMS; ++i) {
        char key[64];
        unsigned char *data;
        size_t size;
        snprintf(key, sizeof key, "%s%d", prefix, i);
        if (!clconv_store_read(s, key, &data, &size))
            continue;
        cr_assert(size == PAGE && strcmp((char *)data, "a program") == 0);
        free(data);
        ++count;
    }
    clconv_store_free(s);
    return count;
}

Test(full_disk, an_import_takes_whole_parts_and_says_that_it_lacks_some)
{
    snprintf(path, sizeof path, "%s/all.clconv", elsewhere.path);
    fill_cache(&elsewhere);
    cr_assert_eq(write_bundle(path), CLCONV_OK);
    count_taken(); /* makes the directories */
    int pages = 0;
    for (;; ++pages) {
        warnings.warnings = 0;
        leave_room(pages);
        if (read_bundle(path, &full) == CLCONV_OK)
            break;
        expect_in(clconv_last_error(), full.path);
        expect_in(clconv_last_error(), path);
        expect_warning(full.path);
        cr_assert_lt(count_taken(), PROGRAMS + 1);
        expect_no_rest(full.entries);
    }
    cr_assert_gt(pages, 0);
    cr_assert_eq(count_taken(), PROGRAMS + 1);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

/* ---- The journal --------------------------------------------------------- */

static void add_trial(journal *j, int number)
{
    char plan[16];
    clconv_trial t = trial_failed(CLCONV_TRIAL_OK, "");
    t.seconds = number;
    snprintf(plan, sizeof plan, "plan %d", number);
    journal_add(j, PROBLEM, 7, plan, &t);
}

/* Does it know that trial, and rightly? */
static bool has_trial(const journal *j, int number)
{
    char plan[16];
    snprintf(plan, sizeof plan, "plan %d", number);
    const clconv_trial *t = journal_find(j, PROBLEM, 7, plan);
    cr_assert(!t || t->seconds == number, "%s", plan);
    return t != NULL;
}

/* What is written to stderr from now on, and what that was. */
static FILE *catch_stderr(void)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    cr_assert_geq(dup2(fileno(file), STDERR_FILENO), 0);
    return file;
}

static void read_stderr(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

Test(full_disk, a_journal_loses_what_did_not_fit_and_nothing_after_it)
{
    enum { TRIALS = 100, LATER = 10 };
    char said[4096];
    FILE *errors = catch_stderr();
    snprintf(path, sizeof path, "%s/journal.txt", full.path);
    journal *j = journal_open(path);
    cr_assert_not_null(j);
    leave_room(1);
    for (int i = 0; i < TRIALS; ++i)
        add_trial(j, i);
    leave_room(2);
    for (int i = TRIALS; i < TRIALS + LATER; ++i)
        add_trial(j, i);
    journal_close(j);
    read_stderr(errors, said, sizeof said);
    expect_in(said, path);
    expect_in(said, NO_SPACE);
    cr_assert_eq(strchr(said, '\n'), strrchr(said, '\n'), "%s", said);

    j = journal_open(path);
    int first = 0;
    for (int i = 0; i < TRIALS; ++i)
        first += has_trial(j, i);
    cr_assert(first > 0 && first < TRIALS, "%d", first);
    for (int i = TRIALS; i < TRIALS + LATER; ++i)
        cr_assert(has_trial(j, i), "trial %d", i);
    cr_assert_eq(journal_skipped(j), 1);
    journal_close(j);
}

/* ---- Directories --------------------------------------------------------- */

/* Makes files until there is no inode left. */
static void use_inodes(void)
{
    for (int i = 0, file = 0; file >= 0; ++i) {
        snprintf(path, sizeof path, "%s/file-%d", full.path, i);
        file = open(path, O_WRONLY | O_CREAT, 0600);
        close(file);
    }
}

Test(full_disk, a_directory_that_cannot_be_made_says_why)
{
    mounts_end(full.path);
    mounts_small(full.path, (size_t)PAGES * PAGE, 10);
    use_inodes();
    snprintf(path, sizeof path, "%s/cache", full.path);
    cr_assert_null(clconv_store_new(path, &logger));
    expect_warning(path);
    warnings.warnings = 0;
    cr_assert_not(write_program("one", 1));
    expect_warning(full.entries);
    cr_assert_not(save_record(1));
    cr_assert_eq(warnings.warnings, 2);
    expect_in(warnings.last, NO_SPACE);
}
