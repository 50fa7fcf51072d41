/*
 * clconv-tune and its cache directory: what it leaves there, and what it says
 * where that is full or cannot be written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache_dir.h"
#include "cl_cache.h"
#include "cl_query.h"
#include "host.h"
#include "mounts.h"
#include "program.h"
#include "records.h"
#include "rig.h"
#include "store.h"
#include "tunedb.h"

#define PROBLEM "n2c4h6w6k4r1s1"
#define NO_SPACE "No space left on device"

/* A busy machine is slow to compile, which is no fault of a plan's. */
#define PATIENT "--time-limit=10m"

enum { ROOM = 1 << 20 };

static program_result result;
static cache_dir dir, other;

static void set_up(void)
{
    cache_dir_make(&dir);
    cache_dir_make(&other);
}

static void clean_up(void)
{
    cache_dir_remove(&dir);
    cache_dir_remove(&other);
}

TestSuite(clconv_tune_places, .init = set_up, .fini = clean_up);

/* Two more words, NULL where there are fewer. */
static void tune_in(const cache_dir *cache, const char *a, const char *b)
{
    program_run((const char *[]){CLCONV_TUNE, "--cache-dir", cache->path,
                                 PATIENT, a, b, NULL},
                &result);
}

static void assert_ran(int status, const char *part)
{
    cr_assert_eq(result.status, status, "status %d:\n%s%s", result.status,
                 result.out, result.err);
    cr_assert_not_null(strstr(result.out, part), "lacks \"%s\":\n%s%s", part,
                       result.out, result.err);
}

static void assert_says(const char *part)
{
    cr_assert_not_null(strstr(result.err, part), "lacks \"%s\":\n%s%s", part,
                       result.out, result.err);
}

static void tune(void)
{
    tune_in(&dir, PROBLEM, "--budget=1s");
    assert_ran(0, "\n" PROBLEM " ");
}

/* As if tuned: a record, and a program of any bytes. */
static void fill(void)
{
    host h;
    clconv_device device;
    const clconv_log none = {NULL, NULL};
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &h), HOST_OK);
    cr_assert_eq(clconv_query_device(h.context, h.device, false, &device),
                 CLCONV_OK);
    clconv_record r = record_of(PROBLEM, &device);
    char *key = clconv_cache_prefix(h.device);
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &none);
    clconv_store *s = clconv_store_new(dir.path, &none);
    cr_assert(clconv_tunedb_save(db, &r));
    cr_assert(clconv_store_write(s, key, (const unsigned char *)"x", 1));
    clconv_store_free(s);
    clconv_tunedb_free(db);
    free(key);
    host_close(&h);
}

/* ---- Programs ------------------------------------------------------------ */

/* Those by which a context, without any plan, finds out about its device. */
static int count_own_programs(void)
{
    host h;
    clconv_context *context;
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = other.path;
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &h), HOST_OK);
    cr_assert_eq(clconv_context_create(h.context, h.device, &options, &context),
                 CLCONV_OK, "%s", clconv_last_error());
    clconv_context_release(context);
    host_close(&h);
    return cache_dir_count(&other);
}

Test(clconv_tune_places, the_programs_of_the_winner_are_kept_and_no_others)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = dir.path;
    tune();
    int used = rig_count_stored(PROBLEM, &options);
    cr_assert_gt(used, 0);
    cr_assert_eq(cache_dir_count(&dir), used + count_own_programs());
}

Test(clconv_tune_places, programs_that_cannot_be_kept_are_told_of)
{
    cr_assert_eq(mkdir(dir.entries, 0700), 0);
    cr_assert_eq(chmod(dir.entries, 0777), 0);
    tune();
    assert_says("programs could not be kept: ");
    assert_says("everybody may write");
    cr_assert_eq(cache_dir_count(&dir), 0);
}

/* ---- A full disk --------------------------------------------------------- */

static void enter(void)
{
    if (!mounts_enter())
        cr_skip_test("nothing can be mounted here");
}

static void assert_exports(const char *file)
{
    tune_in(&dir, "export", file);
    assert_ran(0, "1 records, 1 programs");
}

/* The new bundle is not there, the old one is as it was. */
Test(clconv_tune_places, an_export_to_a_full_disk_keeps_the_old_bundle)
{
    char file[600];
    enter();
    fill();
    mounts_small(other.path, ROOM, 0);
    snprintf(file, sizeof file, "%s/all.clconv", other.path);
    assert_exports(file);
    mounts_fill(other.path);
    tune_in(&dir, "export", file);
    assert_ran(1, "");
    assert_says(file);
    assert_says(NO_SPACE);
    tune_in(&dir, "clean", NULL);
    tune_in(&dir, "import", file);
    assert_ran(0, "1 records, 1 programs");
    mounts_end(other.path);
}

Test(clconv_tune_places, an_import_to_a_full_disk_says_so)
{
    char file[600];
    enter();
    fill();
    snprintf(file, sizeof file, "%s/all.clconv", dir.path);
    assert_exports(file);
    mounts_small(other.path, ROOM, 0);
    mounts_fill(other.path);
    tune_in(&other, "import", file);
    assert_ran(1, "");
    assert_says(other.path);
    assert_says(NO_SPACE);
    tune_in(&other, "list", NULL);
    assert_ran(0, "there are no records");
    mounts_make_room(other.path, ROOM);
    tune_in(&other, "import", file);
    assert_ran(0, "1 records, 1 programs");
    mounts_end(other.path);
}

Test(clconv_tune_places, tuning_on_a_full_disk_says_so)
{
    enter();
    mounts_small(dir.path, ROOM, 0);
    mounts_fill(dir.path);
    tune_in(&dir, PROBLEM, "--budget=1s");
    assert_ran(1, "");
    assert_says(dir.path);
    assert_says(NO_SPACE);
    mounts_end(dir.path);
}

/* ---- A read-only directory ------------------------------------------------ */

Test(clconv_tune_places, a_read_only_directory_is_listed_and_exported)
{
    char file[600];
    enter();
    fill();
    mounts_read_only(dir.path);
    tune_in(&dir, "list", NULL);
    assert_ran(0, "\n" PROBLEM " ");
    snprintf(file, sizeof file, "%s/all.clconv", other.path);
    assert_exports(file);
    tune_in(&dir, PROBLEM, "--budget=1s");
    assert_ran(1, "");
    assert_says(dir.path);
    assert_says("Read-only file system");
    tune_in(&dir, "clean", NULL);
    assert_ran(0, "removed 0 records, 0 journals, 0 programs");
    mounts_end(dir.path);
}
