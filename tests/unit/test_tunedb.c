/*
 * The records of a cache directory: whatever becomes of its files and whoever
 * writes at the same time, a reader gets whole records or none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache_dir.h"
#include "hash.h"
#include "records.h"
#include "shipped.h"
#include "tunedb.h"

#define ASKED "n32c64h16w16k64r3s3p1"

static cache_dir dir;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

static clconv_tunedb *open_db(void)
{
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &logger);
    cr_assert_not_null(db);
    return db;
}

static clconv_device here(void)
{
    clconv_device d;
    cr_assert(clconv_device_preset("cpu", &d));
    strcpy(d.name, "a processor");
    strcpy(d.vendor, "a maker");
    strcpy(d.platform, "a platform");
    strcpy(d.driver, "1.0");
    return d;
}

static clconv_record record(const char *problem, double microseconds)
{
    clconv_device d = here();
    clconv_record r = record_of(problem, &d);
    r.microseconds = microseconds;
    return r;
}

static void save(clconv_tunedb *db, const char *problem, double microseconds)
{
    clconv_record r = record(problem, microseconds);
    cr_assert(clconv_tunedb_save(db, &r), "%s", warnings.last);
}

/* The time that the best record for a problem has; 0: there is none. */
static double best(clconv_tunedb *db, const char *problem)
{
    clconv_device d = here();
    clconv_record r = record_of(problem, &d);
    clconv_match matches[CLCONV_MAX_MATCHES];
    int count = clconv_tunedb_find(db, &r.problem, &d, r.ops, matches);
    return count ? matches[0].record->microseconds : 0;
}

static void set_up(void)
{
    cache_dir_make(&dir);
    snprintf(dir.entries, sizeof dir.entries, "%s/" CLCONV_TUNEDB_DIR, dir.path);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(tunedb, .init = set_up, .fini = tear_down);

/* ---- There and back ---------------------------------------------------- */

Test(tunedb, what_was_saved_is_found_by_another)
{
    clconv_tunedb *db = open_db();
    cr_assert_eq(best(db, ASKED), 0);
    save(db, ASKED, 10);
    cr_assert_eq(best(db, ASKED), 10);
    clconv_tunedb_free(db);
    db = open_db();
    cr_assert_eq(best(db, ASKED), 10);
    cr_assert_eq(cache_dir_count(&dir), 1);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_tunedb_free(db);
}

Test(tunedb, nothing_is_read_or_made_before_it_is_asked)
{
    clconv_tunedb *db = open_db();
    cr_assert_neq(access(dir.entries, F_OK), 0);
    best(db, ASKED);
    cr_assert_eq(access(dir.entries, F_OK), 0);
    clconv_tunedb_free(db);
}

Test(tunedb, the_newer_record_replaces_the_older_one)
{
    clconv_tunedb *db = open_db();
    save(db, ASKED, 10);
    const clconv_record *old = clconv_tunedb_user_record(db, 0);
    save(db, ASKED, 20);
    cr_assert_eq(best(db, ASKED), 20);
    cr_assert_eq(old->microseconds, 10); /* a plan may point to it */
    cr_assert_null(clconv_tunedb_user_record(db, 1));
    cr_assert_eq(cache_dir_count(&dir), 1);
    clconv_tunedb_free(db);
}

Test(tunedb, what_another_writes_meanwhile_is_found)
{
    clconv_tunedb *db = open_db(), *other = open_db();
    cr_assert_eq(best(db, ASKED), 0);
    save(other, ASKED, 10);
    cr_assert_eq(best(db, ASKED), 10);
    save(other, ASKED, 20);
    cr_assert_eq(best(db, ASKED), 20);
    clconv_tunedb_free(other);
    clconv_tunedb_free(db);
}

Test(tunedb, this_very_problem_comes_alone_others_in_order)
{
    clconv_tunedb *db = open_db();
    clconv_device d = here();
    clconv_record r = record(ASKED, 1);
    clconv_match matches[CLCONV_MAX_MATCHES];
    save(db, "n32c128h16w16k64r3s3p1", 30);
    save(db, "n64c64h16w16k64r3s3p1", 20);
    cr_assert_eq(clconv_tunedb_find(db, &r.problem, &d, r.ops, matches), 2);
    cr_assert_eq(matches[0].record->microseconds, 20);
    cr_assert_eq(matches[1].record->microseconds, 30);
    save(db, ASKED, 10);
    cr_assert_eq(clconv_tunedb_find(db, &r.problem, &d, r.ops, matches), 1);
    cr_assert_eq(matches[0].record->microseconds, 10);
    cr_assert_str_eq(matches[0].why, "tuned");
    clconv_tunedb_free(db);
}

Test(tunedb, records_are_listed_and_removed)
{
    clconv_tunedb *db = open_db();
    save(db, "n1c8h8w8k8r1s1", 1);
    save(db, "n2c8h8w8k8r1s1", 2);
    save(db, "n3c8h8w8k8r1s1", 3);
    clconv_record second = *clconv_tunedb_user_record(db, 1);
    clconv_tunedb_remove(db, &second);
    cr_assert_eq(clconv_tunedb_user_record(db, 0)->microseconds, 1);
    cr_assert_eq(clconv_tunedb_user_record(db, 1)->microseconds, 3);
    cr_assert_null(clconv_tunedb_user_record(db, 2));
    cr_assert_eq(cache_dir_count(&dir), 2);
    clconv_tunedb_free(db);
    db = open_db();
    cr_assert_not_null(clconv_tunedb_user_record(db, 1));
    cr_assert_null(clconv_tunedb_user_record(db, 2));
    clconv_tunedb_free(db);
}

Test(tunedb, a_record_that_cannot_be_read_again_is_not_kept)
{
    clconv_tunedb *db = open_db();
    clconv_record r = record(ASKED, 10);
    strcpy(r.plan, "cast");
    cr_assert_not(clconv_tunedb_save(db, &r));
    cr_assert_not_null(strstr(warnings.last, "no kernel for dx"), "%s",
                       warnings.last);
    cr_assert_eq(best(db, ASKED), 0);
    clconv_tunedb_free(db);
}

Test(tunedb, every_shipped_record_is_read)
{
    clconv_tunedb *db = clconv_tunedb_new(NULL, &logger);
    clconv_tunedb_counts counts;
    clconv_tunedb_count(db, &counts);
    cr_assert_eq(counts.stale + counts.unknown + counts.damaged, 0,
                 "%d stale, %d unknown, %d damaged", counts.stale,
                 counts.unknown, counts.damaged);
    cr_assert_geq(counts.shipped, (int)clconv_shipped_count);
    clconv_tunedb_free(db);
}

/* ---- Damage ------------------------------------------------------------ */

/* What a new reader finds in the directory. */
static clconv_tunedb_counts counts_now(void)
{
    clconv_tunedb *db = open_db();
    clconv_tunedb_counts counts;
    clconv_tunedb_count(db, &counts);
    clconv_tunedb_free(db);
    return counts;
}

Test(tunedb, every_flipped_bit_is_found_and_the_file_dropped)
{
    clconv_tunedb *db = open_db();
    save(db, ASKED, 10);
    clconv_tunedb_free(db);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    for (size_t bit = 0; bit < 8 * file.size; ++bit) {
        warnings.warnings = 0;
        file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        cache_file_write(&file);
        file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        db = open_db();
        cr_assert_eq(best(db, ASKED), 0, "bit %zu", bit);
        cr_assert_eq(best(db, ASKED), 0, "bit %zu", bit);
        cr_assert_eq(warnings.warnings, 1, "bit %zu", bit);
        cr_assert_eq(cache_dir_count(&dir), 0, "bit %zu", bit);
        cache_file_write(&file); /* another process makes it good again */
        cr_assert_eq(best(db, ASKED), 10, "bit %zu", bit);
        clconv_tunedb_free(db);
    }
    cache_file_free(&file);
}

/* For want of descriptors a good one cannot be read either. */
Test(tunedb, what_cannot_be_read_is_told_once_and_stays)
{
    clconv_tunedb *db = open_db();
    save(db, ASKED, 10);
    clconv_tunedb_free(db);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    free(file.data);
    file.size = 1 << 20;
    file.data = calloc(1, file.size);
    cache_file_write(&file);
    cr_assert_eq(counts_now().damaged, 0);
    cr_assert_eq(cache_dir_count(&dir), 1);
    cr_assert_eq(unlink(file.path), 0);
    cr_assert_eq(mkdir(file.path, 0700), 0);
    db = open_db();
    warnings.warnings = 0;
    cr_assert_eq(best(db, ASKED), 0);
    cr_assert_eq(best(db, ASKED), 0);
    cr_assert_eq(warnings.warnings, 1);
    clconv_tunedb_free(db);
    cr_assert_eq(rmdir(file.path), 0);
    cache_file_free(&file);
}

/* The only file's line, changed and sealed again. */
static void rewrite(const char *from, const char *to)
{
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    clconv_text line = CLCONV_TEXT_EMPTY;
    clconv_text_append(&line, (const char *)file.data, file.size);
    *strstr(line.data, " check=") = '\0';
    char *at = strstr(line.data, from), hash[CLCONV_HASH_HEX];
    cr_assert_not_null(at, "%s in %s", from, line.data);
    clconv_text changed = CLCONV_TEXT_EMPTY;
    clconv_text_append(&changed, line.data, (size_t)(at - line.data));
    clconv_text_printf(&changed, "%s%s", to, at + strlen(from));
    clconv_hash_hex(clconv_hash_bytes(changed.data, changed.length), hash);
    clconv_text_printf(&changed, " check=%.16s\n", hash);
    free(file.data);
    file.data = (unsigned char *)changed.data;
    file.size = changed.length;
    cache_file_write(&file);
    clconv_text_free(&line);
    clconv_text_free(&changed);
}

static void expect_kept(const char *from, const char *to, int stale, int unknown)
{
    clconv_tunedb *db = open_db();
    save(db, ASKED, 10);
    clconv_tunedb_free(db);
    rewrite(from, to);
    clconv_tunedb_counts counts = counts_now();
    cr_assert_eq(counts.user, 0, "%s", to);
    cr_assert_eq(counts.stale, stale, "%s", to);
    cr_assert_eq(counts.unknown, unknown, "%s", to);
    cr_assert_eq(cache_dir_count(&dir), 1, "%s", to);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(tunedb, what_another_version_wrote_stays_until_it_is_tuned_again)
{
    expect_kept("revisions=cast:", "revisions=cast:9", 1, 0);
    expect_kept(" us=", " energy=12 us=", 0, 1);
    expect_kept(ASKED, "n1c1h1w1k1r1s1", 0, 1); /* under another's name */
    clconv_tunedb *db = open_db();
    cr_assert_eq(best(db, ASKED), 0);
    save(db, ASKED, 10);
    cr_assert_eq(best(db, ASKED), 10);
    clconv_tunedb_free(db);
    cr_assert_eq(cache_dir_count(&dir), 1);
}

/* ---- Directories ------------------------------------------------------- */

Test(tunedb, without_a_directory_records_are_kept_in_memory)
{
    clconv_tunedb *db = clconv_tunedb_new(NULL, &logger);
    clconv_record r = record(ASKED, 10);
    cr_assert_not(clconv_tunedb_save(db, &r));
    cr_assert_eq(best(db, ASKED), 10);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_tunedb_free(db);
}

Test(tunedb, a_directory_that_everybody_may_write_is_not_used)
{
    cr_assert_eq(mkdir(dir.entries, 0700), 0);
    cr_assert_eq(chmod(dir.entries, 0777), 0);
    clconv_tunedb *db = open_db();
    clconv_record r = record(ASKED, 10);
    cr_assert_not(clconv_tunedb_save(db, &r));
    cr_assert_eq(best(db, ASKED), 10);
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "everybody may write"), "%s",
                       warnings.last);
    clconv_tunedb_free(db);
    cr_assert_eq(cache_dir_count(&dir), 0);
}

/* The directory goes away under the library: the same as one that has become
 * read-only, but it also stops root. */
Test(tunedb, a_directory_that_cannot_be_written_warns_once)
{
    clconv_tunedb *db = open_db();
    save(db, ASKED, 10);
    cache_dir_remove(&dir);
    clconv_record r = record(ASKED, 20);
    cr_assert_not(clconv_tunedb_save(db, &r));
    cr_assert_eq(best(db, ASKED), 20);
    cr_assert_not(clconv_tunedb_save(db, &r));
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "cannot be written"), "%s",
                       warnings.last);
    clconv_tunedb_free(db);
}

Test(tunedb, an_older_file_does_not_replace_what_could_not_be_written)
{
    clconv_tunedb *db = open_db(), *other = open_db();
    clconv_record r = record(ASKED, 20);
    cr_assert_eq(best(db, ASKED), 0);
    cache_dir_remove(&dir);
    cr_assert_not(clconv_tunedb_save(db, &r));
    save(other, ASKED, 10); /* makes the directory again */
    cr_assert_eq(cache_dir_count(&dir), 1);
    cr_assert_eq(best(db, ASKED), 20);
    clconv_tunedb_free(other);
    clconv_tunedb_free(db);
}

/* ---- Many at once ------------------------------------------------------ */

enum { THREADS = 8, PROBLEMS = 5, ROUNDS = 60 };

/* Each thread saves and finds the same few problems; a record's time says
 * which problem it is of. */
static void *work(void *argument)
{
    clconv_tunedb *db = argument;
    bool ok = true;
    for (int i = 0; i < ROUNDS; ++i) {
        char problem[64];
        int n = i % PROBLEMS + 1;
        snprintf(problem, sizeof problem, "n%dc8h8w8k8r1s1", 1 << n);
        save(db, problem, n);
        ok = ok && best(db, problem) == n;
    }
    return ok ? argument : NULL;
}

static void work_in_threads(clconv_tunedb *db)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, db), 0);
    for (int i = 0; i < THREADS; ++i) {
        void *result;
        cr_assert_eq(pthread_join(threads[i], &result), 0);
        cr_assert_eq(result, db, "thread %d found another record", i);
    }
}

Test(tunedb, threads_share_one)
{
    clconv_tunedb *db = open_db();
    work_in_threads(db);
    clconv_tunedb_free(db);
    cr_assert_eq(counts_now().user, PROBLEMS);
    cr_assert_eq(counts_now().damaged, 0);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(tunedb, processes_share_a_directory)
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    clconv_tunedb *db = open_db();
    bool ok = work(db) != NULL && warnings.warnings == 0;
    clconv_tunedb_free(db);
    if (child == 0)
        _exit(ok ? 0 : 1);
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(ok && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s",
              warnings.last);
    cr_assert_eq(counts_now().user, PROBLEMS);
}
