/*
 * Bundles: what one directory has arrives in another, all of it or nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amount.h"
#include "bundle.h"
#include "bundle_format.h"
#include "cache_dir.h"
#include "damage.h"
#include "records.h"
#include "store.h"
#include "tunedb.h"

static const char prefix[] = "libclconv: 0\ndevice: any\ndriver: 1\n";
static const char other_prefix[] = "libclconv: 0\ndevice: any\ndriver: 2\n";

enum { RECORDS = 3, PROGRAMS = 5 };
static const char *const problems[RECORDS] = {
    "n2c3h6w5k4r3s2p1", "n4c8h9w9k8r1s1", "n1c16h7w7k16r3s3g16_nhwc"};

static cache_dir from, to;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};
static clconv_device device, other_device;
static char file[600];

static void set_up(void)
{
    cache_dir_make(&from);
    cache_dir_make(&to);
    snprintf(file, sizeof file, "%s/all.bundle", from.path);
    clconv_device_preset("cpu", &device);
    strcpy(device.driver, "1");
    other_device = device;
    strcpy(other_device.driver, "2");
}

static void tear_down(void)
{
    cache_dir_remove(&from);
    cache_dir_remove(&to);
}

TestSuite(bundle, .init = set_up, .fini = tear_down);

static clconv_bundle_place place_of(const cache_dir *dir)
{
    return (clconv_bundle_place){dir->path, &device, prefix};
}

/* ---- What goes in ------------------------------------------------------- */

static void program_key(const char *of, int index, char out[128])
{
    snprintf(out, 128, "%ssource:\n__kernel void f%d() {}\n", of, index);
}

/* Its bytes are as many as its number has it, never 0. */
static void put_program(clconv_store *s, const char *of, int index)
{
    char key[128];
    unsigned char data[PROGRAMS + 1];
    program_key(of, index, key);
    memset(data, 'a' + index, sizeof data);
    cr_assert(clconv_store_write(s, key, data, (size_t)index + 1));
}

/* The share of the device, a mark, and a share of another driver's. */
static void fill_from(void)
{
    clconv_tunedb *db = clconv_tunedb_new(from.path, &logger);
    clconv_store *s = clconv_store_new(from.path, &logger);
    cr_assert(db && s);
    for (int i = 0; i < RECORDS; ++i) {
        clconv_record r = record_of(problems[i], &device);
        cr_assert(clconv_tunedb_save(db, &r));
    }
    clconv_record other = record_of(problems[0], &other_device);
    cr_assert(clconv_tunedb_save(db, &other));
    for (int i = 0; i < PROGRAMS; ++i)
        put_program(s, prefix, i);
    put_program(s, other_prefix, 0);
    cr_assert(clconv_store_mark(s, "libclconv: 0\nmarked"));
    clconv_tunedb_free(db);
    clconv_store_free(s);
}

static clconv_bundle_counts write_bundle(void)
{
    clconv_bundle_place here = place_of(&from);
    clconv_bundle_counts counts = {0};
    fill_from();
    cr_assert_eq(clconv_bundle_write(&here, &logger, file, &counts), CLCONV_OK,
                 "%s", clconv_last_error());
    return counts;
}

/* ---- What comes out ----------------------------------------------------- */

static void expect_program(clconv_store *s, int index)
{
    char key[128];
    unsigned char *data;
    size_t size;
    program_key(prefix, index, key);
    cr_assert(clconv_store_read(s, key, &data, &size), "%s", key);
    cr_assert_eq(size, (size_t)index + 1);
    cr_assert_eq(data[0], 'a' + index);
    free(data);
}

static void expect_record(clconv_tunedb *db, const char *problem)
{
    clconv_match match[CLCONV_MAX_MATCHES];
    clconv_record want = record_of(problem, &device);
    cr_assert_gt(clconv_tunedb_find(db, &want.problem, &device, want.ops, match),
                 0, "%s", problem);
    cr_assert_eq(match[0].distance, 0, "%s", problem);
    cr_assert_eq(match[0].nearness, CLCONV_NEAR_DRIVER, "%s", problem);
    cr_assert_str_eq(match[0].record->plan, want.plan, "%s", problem);
}

static void expect_all(void)
{
    clconv_tunedb *db = clconv_tunedb_new(to.path, &logger);
    clconv_store *s = clconv_store_new(to.path, &logger);
    for (int i = 0; i < RECORDS; ++i)
        expect_record(db, problems[i]);
    cr_assert_null(clconv_tunedb_user_record(db, RECORDS));
    for (int i = 0; i < PROGRAMS; ++i)
        expect_program(s, i);
    cr_assert_eq(cache_dir_count(&to), PROGRAMS);
    clconv_tunedb_free(db);
    clconv_store_free(s);
}

static void expect_nothing(void)
{
    clconv_tunedb *db = clconv_tunedb_new(to.path, &logger);
    cr_assert_null(clconv_tunedb_user_record(db, 0));
    cr_assert_eq(cache_dir_count(&to), 0);
    clconv_tunedb_free(db);
}

/* Reads the bundle into the directory `to`. */
static clconv_status read_bundle(clconv_bundle_counts *counts)
{
    clconv_bundle_place there = place_of(&to);
    return clconv_bundle_read(file, &there, &logger, counts);
}

/* ---- All of it ---------------------------------------------------------- */

Test(bundle, an_empty_directory_gets_what_the_device_has_in_another)
{
    clconv_bundle_counts out = write_bundle(), in;
    cr_assert_eq(out.records, RECORDS);
    cr_assert_eq(out.programs, PROGRAMS);
    cr_assert_eq(out.foreign, 2, "%s", out.why);
    cr_assert_eq(read_bundle(&in), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(in.records, RECORDS);
    cr_assert_eq(in.programs, PROGRAMS);
    cr_assert_eq(in.foreign, 0, "%s", in.why);
    expect_all();
    cr_assert_eq(read_bundle(&in), CLCONV_OK, "once more");
    expect_all();
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(bundle, what_is_of_another_device_is_left_out_and_counted)
{
    write_bundle();
    clconv_bundle_place there = {to.path, &other_device, other_prefix};
    clconv_bundle_counts counts;
    cr_assert_eq(clconv_bundle_read(file, &there, &logger, &counts), CLCONV_OK);
    cr_assert_eq(counts.foreign, RECORDS + PROGRAMS);
    cr_assert_eq(counts.records + counts.programs, 0);
    cr_assert_not_null(strstr(counts.why, "driver 1"), "%s", counts.why);
    expect_nothing();
}

Test(bundle, a_program_that_is_left_out_says_what_differs)
{
    clconv_bundle_place there = {to.path, &device, other_prefix};
    clconv_bundle_counts counts;
    write_bundle();
    cr_assert_eq(clconv_bundle_read(file, &there, &logger, &counts), CLCONV_OK);
    cr_assert_eq(counts.records, RECORDS);
    cr_assert_eq(counts.foreign, PROGRAMS);
    cr_assert_str_eq(counts.why,
                     "a program of \"driver: 1\", here it is \"driver: 2\"");
}

Test(bundle, a_directory_with_nothing_makes_a_bundle_of_nothing)
{
    clconv_bundle_place here = place_of(&from);
    clconv_bundle_counts counts;
    cr_assert_eq(clconv_bundle_write(&here, &logger, file, &counts), CLCONV_OK);
    cr_assert_eq(read_bundle(&counts), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(counts.records + counts.programs + counts.foreign, 0);
}

/* ---- Or nothing --------------------------------------------------------- */

static unsigned char *read_file(size_t *size)
{
    FILE *stream = fopen(file, "rb");
    cr_assert_not_null(stream);
    cr_assert_eq(fseek(stream, 0, SEEK_END), 0);
    *size = (size_t)ftell(stream);
    rewind(stream);
    unsigned char *bytes = malloc(*size);
    cr_assert_eq(fread(bytes, 1, *size, stream), *size);
    fclose(stream);
    return bytes;
}

static void write_file(const void *bytes, size_t size)
{
    FILE *stream = fopen(file, "wb");
    cr_assert_not_null(stream);
    cr_assert_eq(fwrite(bytes, 1, size, stream), size);
    cr_assert_eq(fclose(stream), 0);
}

Test(bundle, thousands_of_damaged_files_are_refused)
{
    enum { ROOM = 100 };
    write_bundle();
    size_t size;
    unsigned char *whole = read_file(&size), *bytes = malloc(size + ROOM);
    damage_random random = {4};
    int rounds = amount(20000, 1000000), refused = 0;
    for (int i = 0; i < rounds; ++i) {
        clconv_bundle_reader reader;
        memcpy(bytes, whole, size);
        size_t now = damage(&random, bytes, size, size + ROOM);
        bool same = now == size && memcmp(bytes, whole, size) == 0;
        bool taken = clconv_bundle_open(bytes, now, &reader) == NULL;
        cr_assert_eq(taken, same, "round %d", i);
        refused += !taken;
    }
    cr_assert_gt(refused, rounds / 2);
    free(whole);
    free(bytes);
}

static void expect_refused(const char *why)
{
    clconv_bundle_counts counts = {.records = -1};
    cr_assert_eq(read_bundle(&counts), CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), file), "%s",
                       clconv_last_error());
    cr_assert_not_null(strstr(clconv_last_error(), why), "%s",
                       clconv_last_error());
    cr_assert_eq(counts.records, -1, "the counts were touched");
    expect_nothing();
}

Test(bundle, a_file_cut_off_is_refused_whole)
{
    write_bundle();
    size_t size;
    unsigned char *bytes = read_file(&size);
    write_file(bytes, size - 1);
    expect_refused("its length is wrong");
    write_file(bytes, 0);
    expect_refused("it is no bundle");
    bytes[size / 2] ^= 1;
    write_file(bytes, size);
    expect_refused("its checksum is wrong");
    free(bytes);
}

/* A bundle that is whole, of a good program and a last part that is not. */
static void write_with_bad_part(clconv_part_kind kind, const char *data)
{
    char key[128];
    program_key(prefix, 0, key);
    clconv_program_file program = {key, strlen(key), (const unsigned char *)"x",
                                   1};
    size_t size;
    unsigned char *good = clconv_program_file_pack(&program, &size);
    clconv_part parts[] = {{CLCONV_PART_PROGRAM, good, size},
                           {kind, data, strlen(data)}};
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_bundle_begin(&t);
    clconv_bundle_append(&t, &parts[0]);
    clconv_bundle_append(&t, &parts[1]);
    clconv_bundle_end(&t, 2);
    cr_assert_not(t.failed);
    write_file(t.data, t.length);
    clconv_text_free(&t);
    free(good);
}

Test(bundle, one_bad_part_keeps_all_others_out)
{
    write_with_bad_part(CLCONV_PART_RECORD, "problem=n1c1h1w1k1r1s1");
    expect_refused("one of its records is damaged");
    write_with_bad_part(CLCONV_PART_PROGRAM, "clconvPB");
    expect_refused("it is not an entry");
    write_with_bad_part((clconv_part_kind)3, "of a later version");
    expect_refused("one of its parts is damaged");
}

Test(bundle, files_and_directories_that_cannot_be_used_are_named)
{
    clconv_bundle_counts counts;
    clconv_bundle_place here = place_of(&from);
    static const char *const files[] = {"/dev/null/x", "/", ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        cr_assert_eq(clconv_bundle_write(&here, &logger, files[i], &counts),
                     CLCONV_INVALID_ARGUMENT, "%s", files[i]);
        cr_assert_not_null(strstr(clconv_last_error(), "cannot be written"),
                           "%s", clconv_last_error());
    }
    snprintf(file, sizeof file, "%s/missing", from.path);
    expect_refused("there is none");
    here.dir = "/dev/null";
    cr_assert_eq(clconv_bundle_write(&here, &logger, file, &counts),
                 CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), "/dev/null"), "%s",
                       clconv_last_error());
}
