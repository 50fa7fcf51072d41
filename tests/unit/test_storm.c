/*
 * The store of compiled programs in bad weather: killed writers, damage by
 * chance, a full disk, a clock that goes back. A reader gets what was written
 * or nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amount.h"
#include "cache_dir.h"
#include "damage.h"
#include "faults.h"
#include "os.h"
#include "store.h"

static cache_dir dir;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

static void set_up(void)
{
    cache_dir_make(&dir);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(storm, .init = set_up, .fini = tear_down);

/* ---- What is written ---------------------------------------------------- */

enum { KEYS = 8, VERSIONS = 200, STEP = 1500 };

static void make_key(int index, char out[32])
{
    snprintf(out, 32, "key: %d\n", index);
}

/* A version has its number throughout and its own length. */
static size_t size_of(int version)
{
    return (size_t)(version + 1) * STEP;
}

static bool is_version(const unsigned char *data, size_t size)
{
    return size >= STEP && size == size_of(data[0]) &&
           memcmp(data, data + 1, size - 1) == 0;
}

static bool write_version(clconv_store *s, int index, int version)
{
    static unsigned char bytes[VERSIONS * STEP];
    char key[32];
    make_key(index, key);
    memset(bytes, version, size_of(version));
    return clconv_store_write(s, key, bytes, size_of(version));
}

/* How many keys have an entry; each must be a whole version. */
static int count_versions(void)
{
    int found = 0;
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert_not_null(s, "%s", warnings.last);
    for (int i = 0; i < KEYS; ++i) {
        char key[32];
        unsigned char *data;
        size_t size;
        make_key(i, key);
        if (!clconv_store_read(s, key, &data, &size))
            continue;
        cr_assert(is_version(data, size), "key %d: %zu bytes", i, size);
        free(data);
        ++found;
    }
    clconv_store_free(s);
    return found;
}

/* ---- Killed ------------------------------------------------------------- */

/* Begins with another key each time: slow disks get to one or two. */
static void write_for_ever(int first)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    for (int i = first;; ++i)
        write_version(s, i % KEYS, i % VERSIONS);
}

static void kill_after(long microseconds, int first)
{
    struct timespec wait = {0, 1000 * microseconds};
    int status;
    pid_t child = fork();
    if (child == 0)
        write_for_ever(first);
    cr_assert_gt(child, 0);
    nanosleep(&wait, NULL);
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status), "the writer ended by itself");
}

Test(storm, a_writer_killed_at_any_moment_leaves_whole_entries)
{
    enum { LONGEST = 20000 }; /* microseconds: a few rounds of all keys */
    damage_random random = {1};
    int rounds = amount(20, 200), least = 0;
    for (int i = 0; i < rounds; ++i) {
        kill_after((long)damage_below(&random, LONGEST), i);
        int found = count_versions();
        cr_assert_geq(found, least, "round %d: an entry is gone", i);
        least = found;
    }
    cr_assert_gt(least, 0);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    cr_assert_leq(cache_dir_count(&dir), KEYS + rounds);
}

/* ---- Damaged ------------------------------------------------------------ */

static const char key_text[] = "device: any\nsource:\n__kernel void f() {}\n";

/* A file of several pages, in a buffer with room to grow. */
enum { DATA = 20000, ROOM = DATA + 1000 };

static size_t make_file(unsigned char out[ROOM])
{
    unsigned char data[DATA];
    for (int i = 0; i < DATA; ++i)
        data[i] = (unsigned char)(i * i >> 3);
    clconv_program_file p = {key_text, strlen(key_text), data, DATA};
    size_t total;
    unsigned char *file = clconv_program_file_pack(&p, &total);
    cr_assert(file && total <= ROOM);
    memcpy(out, file, total);
    free(file);
    return total;
}

Test(storm, thousands_of_damaged_files_are_refused)
{
    static unsigned char whole[ROOM], bytes[ROOM];
    size_t total = make_file(whole);
    damage_random random = {2};
    int refused = 0, rounds = amount(20000, 2000000);
    for (int i = 0; i < rounds; ++i) {
        clconv_program_file p;
        memcpy(bytes, whole, total);
        size_t size = damage(&random, bytes, total, sizeof bytes);
        bool same = size == total && memcmp(bytes, whole, total) == 0;
        bool taken = clconv_program_file_parse(bytes, size, &p) == NULL;
        cr_assert_eq(taken, same, "round %d", i);
        refused += !taken;
    }
    cr_assert_gt(refused, rounds / 2);
}

/* Puts these bytes where the only entry is. */
static bool read_damaged(clconv_store *s, cache_file *file)
{
    unsigned char *data;
    size_t size;
    cache_file_write(file);
    if (!clconv_store_read(s, key_text, &data, &size))
        return false;
    free(data);
    return true;
}

Test(storm, a_directory_of_damaged_files_is_as_good_as_empty)
{
    static unsigned char whole[ROOM], bytes[ROOM];
    size_t total = make_file(whole);
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert(clconv_store_mark(s, key_text));
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    cache_file damaged = {.data = bytes};
    memcpy(damaged.path, file.path, sizeof damaged.path);
    damage_random random = {3};
    for (int i = 0, rounds = amount(500, 20000); i < rounds; ++i) {
        memcpy(bytes, whole, total);
        damaged.size = damage(&random, bytes, total, sizeof bytes);
        bool same = damaged.size == total && memcmp(bytes, whole, total) == 0;
        warnings.warnings = 0;
        cr_assert_eq(read_damaged(s, &damaged), same, "round %d", i);
        cr_assert_eq(warnings.warnings, !same, "round %d", i);
        cr_assert_eq(cache_dir_count(&dir), same, "round %d", i);
    }
    cache_file_free(&file);
    clconv_store_free(s);
}

/* ---- No room, no right -------------------------------------------------- */

/* A file may have no more bytes than a version's half: write() says so midway,
 * as it does on a full disk. */
static int write_without_room(void)
{
    enum { LARGE = 100 };
    struct rlimit limit = {size_of(LARGE) / 2, size_of(LARGE) / 2};
    signal(SIGXFSZ, SIG_IGN);
    clconv_store *s = clconv_store_new(dir.path, &logger);
    int faults = !write_version(s, 0, 1) || setrlimit(RLIMIT_FSIZE, &limit) != 0;
    faults += write_version(s, 0, LARGE); /* in place of the small one */
    faults += write_version(s, 1, LARGE);
    faults += warnings.warnings != 1;
    clconv_store_free(s);
    return faults;
}

Test(storm, a_full_disk_costs_one_warning_and_no_entry)
{
    cr_assert_eq(faults_of(write_without_room), 0);
    cr_assert_eq(count_versions(), 1);
    cr_assert_eq(cache_dir_count(&dir), 1, "an unfinished file is left");
}

/* The superuser may write anywhere: be somebody else. */
static int write_without_right(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() == 0 &&
        (chown(dir.path, NOBODY, NOBODY) || setuid(NOBODY) != 0))
        return 1;
    clconv_store *s = clconv_store_new(dir.path, &logger);
    int faults = !s || !write_version(s, 0, 1) || chmod(dir.entries, 0500) != 0;
    faults += write_version(s, 1, 1);
    faults += write_version(s, 2, 1);
    faults += warnings.warnings != 1;
    clconv_store_free(s);
    faults += count_versions() != 1; /* a new one reads what there is ... */
    faults += warnings.warnings != 1;
    s = clconv_store_new(dir.path, &logger);
    faults += !s || write_version(s, 1, 1); /* ... and cannot write either */
    faults += warnings.warnings != 2;
    clconv_store_free(s);
    return faults + chmod(dir.entries, 0700);
}

Test(storm, a_directory_that_becomes_read_only_costs_a_warning_each)
{
    cr_assert_eq(faults_of(write_without_right), 0);
}

Test(storm, an_entry_that_cannot_be_opened_just_now_stays)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert(write_version(s, 0, 7));
    struct rlimit limit, none;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    unsigned char *data;
    size_t size;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool read = clconv_store_read(s, "key: 0\n", &data, &size);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_not(read);
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_eq(count_versions(), 1, "%s", warnings.last);
    clconv_store_free(s);
}

/* ---- Time --------------------------------------------------------------- */

static void set_age(const char *path, long days)
{
    time_t then = time(NULL) - days * 24 * 60 * 60;
    struct timespec times[2] = {{then, 0}, {then, 0}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0, "%s", path);
}

Test(storm, a_clock_that_goes_back_takes_nothing_away)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert(clconv_store_mark(s, key_text));
    cache_file entry;
    cache_dir_read_only_entry(&dir, &entry);
    cr_assert(write_version(s, 0, 7));
    clconv_store_free(s);
    set_age(entry.path, -4000);
    set_age(dir.entries, -4000);
    cr_assert_eq(count_versions(), 1);
    cr_assert_eq(cache_dir_count(&dir), 2);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    cache_file_free(&entry);
}
