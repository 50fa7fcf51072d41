/*
 * A cache directory that cannot be written, such as one that was made for a
 * whole system: what is in it is used, and nothing is added.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "cache_dir.h"
#include "mounts.h"
#include "records.h"
#include "store.h"
#include "tunedb.h"

#define PROBLEM "n32c64h16w16k64r3s3p1"

static const char key[] = "device: any\nsource:\n__kernel void f() {}\n";
static const unsigned char bytes[] = {0, 1, 2, 255, 0, 'x', 0};

static cache_dir dir;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};
static clconv_device device;

static void set_up(void)
{
    cache_dir_make(&dir);
    cr_assert(mounts_enter());
    cr_assert(clconv_device_preset("cpu", &device));
    strcpy(device.driver, "1");
}

static void tear_down(void)
{
    mounts_end(dir.path);
    cache_dir_remove(&dir);
}

TestSuite(read_only, .init = set_up, .fini = tear_down);

/* ---- Entries ------------------------------------------------------------- */

static void write_program(void)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert(clconv_store_write(s, key, bytes, sizeof bytes));
    clconv_store_free(s);
}

static bool reads_program(clconv_store *s)
{
    unsigned char *data;
    size_t size;
    if (!clconv_store_read(s, key, &data, &size))
        return false;
    cr_assert_eq(size, sizeof bytes);
    cr_assert_arr_eq(data, bytes, sizeof bytes);
    free(data);
    return true;
}

static bool save_record(clconv_tunedb *db, double microseconds)
{
    clconv_record r = record_of(PROBLEM, &device);
    r.microseconds = microseconds;
    return clconv_tunedb_save(db, &r);
}

static void write_record(double microseconds)
{
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &logger);
    cr_assert(save_record(db, microseconds));
    clconv_tunedb_free(db);
}

static double best_time(clconv_tunedb *db)
{
    clconv_record r = record_of(PROBLEM, &device);
    clconv_match matches[CLCONV_MAX_MATCHES];
    return clconv_tunedb_find(db, &r.problem, &device, r.ops, matches)
               ? matches[0].record->microseconds
               : 0;
}

/* One more than there were, which names this directory. */
static void expect_warning(const char *path)
{
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
    cr_assert_not_null(strstr(warnings.last, path), "%s", warnings.last);
    cr_assert_not_null(strstr(warnings.last, "Read-only file system"), "%s",
                       warnings.last);
    warnings.warnings = 0;
}

/* ---- Programs ------------------------------------------------------------ */

Test(read_only, programs_are_read_and_the_first_write_warns)
{
    write_program();
    mounts_read_only(dir.path);
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert_not_null(s, "%s", warnings.last);
    cr_assert(reads_program(s));
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    cr_assert_not(clconv_store_write(s, "another", bytes, sizeof bytes));
    expect_warning(dir.entries);
    cr_assert_not(clconv_store_write(s, key, bytes, 1));
    cr_assert_not(clconv_store_mark(s, "another"));
    cr_assert(reads_program(s));
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_store_free(s);
}

Test(read_only, a_damaged_program_is_not_used_and_stays)
{
    cache_file file;
    write_program();
    cache_dir_read_only_entry(&dir, &file);
    file.data[file.size - 1] ^= 1;
    cache_file_write(&file);
    cache_file_free(&file);
    mounts_read_only(dir.path);
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert_not(reads_program(s));
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "is not used: its checksum"), "%s",
                       warnings.last);
    cr_assert_not(clconv_store_drop(s, key, "test"));
    clconv_store_free(s);
    cr_assert_eq(cache_dir_count(&dir), 1);
}

/* ---- Records ------------------------------------------------------------- */

Test(read_only, records_are_read_and_new_ones_kept_in_memory)
{
    char path[600];
    snprintf(path, sizeof path, "%s/" CLCONV_TUNEDB_DIR, dir.path);
    write_record(20);
    mounts_read_only(dir.path);
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &logger);
    cr_assert_eq(best_time(db), 20);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    cr_assert_not(save_record(db, 10));
    expect_warning(path);
    cr_assert_eq(best_time(db), 10);
    cr_assert_not(save_record(db, 5));
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_tunedb_free(db);
    db = clconv_tunedb_new(dir.path, &logger);
    const clconv_record *r = clconv_tunedb_user_record(db, 0);
    cr_assert_not_null(r);
    cr_assert_not(clconv_tunedb_remove(db, r));
    cr_assert_eq(best_time(db), 20);
    clconv_tunedb_free(db);
}

/* ---- What it lacks ------------------------------------------------------- */

/* It may have records and no programs: each is looked for by itself. */
Test(read_only, a_directory_without_entries_is_used_for_what_it_has)
{
    write_record(20);
    mounts_read_only(dir.path);
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert_not_null(s);
    expect_warning(dir.entries);
    cr_assert_not(reads_program(s));
    cr_assert_not(clconv_store_write(s, key, bytes, sizeof bytes));
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_store_free(s);
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &logger);
    cr_assert_eq(best_time(db), 20);
    clconv_tunedb_free(db);
}

/* ---- Bundles ------------------------------------------------------------- */

Test(read_only, a_bundle_is_made_of_it_and_none_is_taken_into_it)
{
    char file[600];
    cache_dir other;
    clconv_bundle_place place = {dir.path, &device, "device: any\n"};
    clconv_bundle_counts counts;
    cache_dir_make(&other);
    snprintf(file, sizeof file, "%s/all.clconv", other.path);
    write_program();
    write_record(20);
    mounts_read_only(dir.path);
    cr_assert_eq(clconv_bundle_write(&place, &logger, file, &counts), CLCONV_OK,
                 "%s", clconv_last_error());
    cr_assert_eq(counts.records, 1);
    cr_assert_eq(counts.programs, 1);
    cr_assert_eq(clconv_bundle_read(file, &place, &logger, &counts),
                 CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), dir.path), "%s",
                       clconv_last_error());
    cache_dir_remove(&other);
}
