/*
 * The store of compiled programs: whatever becomes of its files, a reader
 * gets the bytes that were written under that key, or none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache_dir.h"
#include "faults.h"
#include "os.h"
#include "store.h"

static const char key[] = "device: any\nsource:\n__kernel void f() {}\n";
static const unsigned char bytes[] = {0, 1, 2, 255, 0, 'x', 0};

/* Another user's and group's number. */
enum { STRANGER = 12345 };

static cache_dir dir;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

static clconv_store *open_store(void)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    cr_assert_not_null(s, "%s", warnings.last);
    return s;
}

static bool reads_back(clconv_store *s, const char *which)
{
    unsigned char *data;
    size_t size;
    if (!clconv_store_read(s, which, &data, &size))
        return false;
    cr_assert_eq(size, sizeof bytes);
    cr_assert_arr_eq(data, bytes, sizeof bytes);
    free(data);
    return true;
}

static void set_up(void)
{
    cache_dir_make(&dir);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(cache, .init = set_up, .fini = tear_down);

/* ---- Where ------------------------------------------------------------- */

static void expect_dir(const char *option, const char *want)
{
    char *found = clconv_store_find_dir(option, &logger);
    if (want)
        cr_assert_str_eq(found, want);
    else
        cr_assert_null(found);
    free(found);
}

Test(cache, the_option_then_our_variable_then_the_usual_places)
{
    setenv("CLCONV_CACHE_DIR", "/ours", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("HOME", "/home", 1);
    expect_dir("/option", "/option");
    expect_dir("", NULL);
    expect_dir(NULL, "/ours");
    setenv("CLCONV_CACHE_DIR", "", 1); /* empty counts as not set */
    expect_dir(NULL, "/xdg/clconv");
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says XDG */
    expect_dir(NULL, "/home/.cache/clconv");
    unsetenv("XDG_CACHE_HOME");
    expect_dir(NULL, "/home/.cache/clconv");
    cr_assert_eq(warnings.warnings, 0);
    unsetenv("HOME");
    expect_dir(NULL, NULL);
    cr_assert_eq(warnings.warnings, 1);
}

/* ---- What -------------------------------------------------------------- */

Test(cache, what_was_written_is_read_back_by_another)
{
    clconv_store *s = open_store();
    cr_assert_not(reads_back(s, key));
    cr_assert(clconv_store_write(s, key, bytes, sizeof bytes));
    clconv_store_free(s);
    s = open_store();
    cr_assert(reads_back(s, key));
    cr_assert_not(reads_back(s, "another key"));
    clconv_store_free(s);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    cr_assert_eq(cache_dir_count(&dir), 1);
}

/* Bytes there are under key; -1: no entry. */
static long stored_bytes(clconv_store *s, const char *which)
{
    unsigned char *data;
    size_t size;
    if (!clconv_store_read(s, which, &data, &size))
        return -1;
    free(data);
    return (long)size;
}

Test(cache, a_mark_has_no_bytes_and_replaces_none)
{
    clconv_store *s = open_store();
    cr_assert_eq(stored_bytes(s, key), -1);
    cr_assert(clconv_store_mark(s, key));
    cr_assert_eq(stored_bytes(s, key), 0);
    cr_assert(clconv_store_write(s, key, bytes, sizeof bytes));
    cr_assert(clconv_store_mark(s, key));
    cr_assert_eq(stored_bytes(s, key), sizeof bytes);
    clconv_store_free(s);
    cr_assert_eq(cache_dir_count(&dir), 1);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

/* Counts, and stops after as many as it holds. */
static bool count_down(void *user, const clconv_program_file *entry)
{
    int *left = user;
    cr_assert_eq(entry->size, sizeof bytes);
    return --*left > 0;
}

Test(cache, a_visit_sees_the_entries_of_a_prefix)
{
    static const char *const keys[] = {"a: 1", "a: 2", "a: 3", "b: 1"};
    clconv_store *s = open_store();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
        cr_assert(clconv_store_write(s, keys[i], bytes, sizeof bytes));
    int left = 10;
    cr_assert(clconv_store_each(s, "a: ", count_down, &left));
    cr_assert_eq(left, 7);
    cr_assert(clconv_store_each(s, "a: longer than a key", count_down, &left));
    cr_assert_eq(left, 7);
    left = 2;
    cr_assert_not(clconv_store_each(s, "", count_down, &left));
    cr_assert_eq(left, 0);
    clconv_store_free(s);
}

Test(cache, files_are_for_their_owner_alone)
{
    clconv_store *s = open_store();
    clconv_store_write(s, key, bytes, sizeof bytes);
    clconv_store_free(s);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    struct stat info;
    cr_assert_eq(stat(dir.entries, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0700);
    cr_assert_eq(stat(file.path, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    cache_file_free(&file);
}

Test(cache, every_flipped_bit_is_found_and_the_entry_dropped)
{
    clconv_store *s = open_store();
    clconv_store_write(s, key, bytes, sizeof bytes);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    for (size_t bit = 0; bit < 8 * file.size; ++bit) {
        warnings.warnings = 0;
        file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        cache_file_write(&file);
        file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        cr_assert_not(reads_back(s, key), "bit %zu", bit);
        cr_assert_eq(warnings.warnings, 1, "bit %zu", bit);
        cr_assert_eq(cache_dir_count(&dir), 0, "bit %zu", bit);
    }
    cache_file_write(&file);
    cr_assert(reads_back(s, key));
    cache_file_free(&file);
    clconv_store_free(s);
}

Test(cache, every_truncation_is_found_and_the_entry_dropped)
{
    clconv_store *s = open_store();
    clconv_store_write(s, key, bytes, sizeof bytes);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    for (size_t size = file.size; size-- > 0;) {
        warnings.warnings = 0;
        file.size = size;
        cache_file_write(&file);
        cr_assert_not(reads_back(s, key), "%zu bytes", size);
        cr_assert_eq(warnings.warnings, 1, "%zu bytes", size);
        cr_assert_eq(cache_dir_count(&dir), 0, "%zu bytes", size);
    }
    cache_file_free(&file);
    clconv_store_free(s);
}

Test(cache, an_entry_of_another_key_under_this_name_is_dropped)
{
    clconv_store *s = open_store();
    cache_file mine, other;
    clconv_store_write(s, key, bytes, sizeof bytes);
    cache_dir_read_only_entry(&dir, &mine);
    remove(mine.path);
    clconv_store_write(s, "other", bytes, sizeof bytes);
    cache_dir_read_only_entry(&dir, &other);
    cr_assert_eq(rename(other.path, mine.path), 0); /* as if hashes collided */
    cr_assert_not(reads_back(s, key));
    cr_assert_not_null(strstr(warnings.last, "another program"), "%s",
                       warnings.last);
    cr_assert_eq(cache_dir_count(&dir), 0);
    cache_file_free(&mine);
    cache_file_free(&other);
    clconv_store_free(s);
}

Test(cache, a_directory_that_cannot_be_made_is_not_used)
{
    const char *const paths[] = {"/dev/null/clconv", "/dev/null", ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) {
        warnings.warnings = 0;
        cr_assert_null(clconv_store_new(paths[i], &logger), "%s", paths[i]);
        cr_assert_eq(warnings.warnings, 1, "%s", paths[i]);
    }
}

Test(cache, a_directory_that_everybody_may_write_is_not_used)
{
    cr_assert_eq(chmod(dir.path, 0777), 0);
    cr_assert_null(clconv_store_new(dir.path, &logger));
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "everybody"), "%s", warnings.last);
}

Test(cache, a_directory_of_another_user_is_not_used)
{
    if (geteuid() != 0)
        cr_skip_test("root alone can give a directory away");
    cr_assert_eq(chown(dir.path, STRANGER, STRANGER), 0);
    cr_assert_null(clconv_store_new(dir.path, &logger));
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "another user"), "%s",
                       warnings.last);
}

/* A binary that a stranger could put there, by whatever way. */
Test(cache, a_file_of_another_user_is_not_read_and_stays)
{
    if (geteuid() != 0)
        cr_skip_test("root alone can give a file away");
    clconv_store *s = open_store();
    clconv_store_write(s, key, bytes, sizeof bytes);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    cr_assert_eq(chown(file.path, STRANGER, STRANGER), 0);
    cr_assert_not(reads_back(s, key));
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "another user"), "%s",
                       warnings.last);
    cr_assert_eq(chown(file.path, 0, 0), 0);
    cr_assert_eq(chmod(file.path, 0666), 0);
    cr_assert_not(reads_back(s, key));
    cr_assert_not_null(strstr(warnings.last, "everybody"), "%s", warnings.last);
    cr_assert_eq(chmod(file.path, 0600), 0);
    cr_assert(reads_back(s, key));
    cache_file_free(&file);
    clconv_store_free(s);
}

/* By somebody else, as what follows. */
static int read_roots_entry(void)
{
    int faults = setgid(STRANGER) != 0 || setuid(STRANGER) != 0;
    clconv_store *s = clconv_store_new(dir.path, &logger);
    faults += !s || !reads_back(s, key) || warnings.warnings != 0;
    faults += !s || clconv_store_write(s, "another", bytes, sizeof bytes);
    faults += warnings.warnings != 1;
    clconv_store_free(s);
    return faults;
}

static int refuse_roots_directory(void)
{
    int faults = setgid(STRANGER) != 0 || setuid(STRANGER) != 0;
    faults += clconv_store_new(dir.path, &logger) != NULL;
    return faults + (strstr(warnings.last, "its group may write") == NULL);
}

Test(cache, a_directory_of_roots_is_read_if_nobody_else_may_write_to_it)
{
    if (geteuid() != 0)
        cr_skip_test("root alone can become somebody else");
    clconv_store *s = open_store();
    clconv_store_write(s, key, bytes, sizeof bytes);
    clconv_store_free(s);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    cr_assert_eq(chmod(dir.path, 0755), 0);
    cr_assert_eq(chmod(dir.entries, 0755), 0);
    cr_assert_eq(chmod(file.path, 0644), 0);
    cr_assert_eq(faults_of(read_roots_entry), 0);
    cr_assert_eq(chmod(dir.entries, 0775), 0);
    cr_assert_eq(faults_of(refuse_roots_directory), 0);
    cache_file_free(&file);
}

Test(cache, after_a_failed_write_there_is_one_warning_and_no_more_writes)
{
    clconv_store *s = open_store();
    cr_assert_eq(rmdir(dir.entries), 0);
    cr_assert_not(clconv_store_write(s, key, bytes, sizeof bytes));
    cr_assert_not(clconv_store_write(s, "other", bytes, sizeof bytes));
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
    clconv_store_free(s);
}

/* Makes the file if there is none, and says that it is so old. */
static void make_old(const char *path, time_t age)
{
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_geq(file, 0, "%s", path);
    struct timespec times[2] = {{time(NULL) - age, 0}, {time(NULL) - age, 0}};
    cr_assert_eq(futimens(file, times), 0);
    close(file);
}

static void leave_unfinished(const char *name, time_t age)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/" CLCONV_OS_UNFINISHED "%s", dir.entries,
             name);
    make_old(path, age);
}

Test(cache, an_entry_does_not_age)
{
    clconv_store *s = open_store();
    cr_assert(clconv_store_write(s, key, bytes, sizeof bytes));
    clconv_store_free(s);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    make_old(file.path, 1000 * 24 * 60 * 60);
    s = open_store();
    cr_assert(reads_back(s, key));
    clconv_store_free(s);
    cache_file_free(&file);
}

Test(cache, what_a_killed_writer_left_goes_after_a_day)
{
    clconv_store_free(open_store());
    leave_unfinished("old", 2 * 24 * 60 * 60);
    leave_unfinished("new", 60);
    clconv_store *s = open_store();
    cr_assert_eq(cache_dir_count(&dir), 1);
    cr_assert_not(reads_back(s, key));
    clconv_store_free(s);
    leave_unfinished("new", 2 * 24 * 60 * 60);
    clconv_store_free(open_store());
    cr_assert_eq(warnings.warnings, 0);
}

/* Fills a buffer that only this writer writes, with its number throughout. */
enum { RACERS = 4, ROUNDS = 40, LARGE = 300000 };

static int race(int racer)
{
    clconv_store *s = clconv_store_new(dir.path, &logger);
    unsigned char *mine = malloc(LARGE), *data;
    size_t size;
    int faults = !s || !mine;
    for (int i = 0; i < ROUNDS && !faults; ++i) {
        memset(mine, racer, LARGE);
        faults += !clconv_store_write(s, key, mine, LARGE);
        if (!clconv_store_read(s, key, &data, &size)) {
            ++faults;
            break;
        }
        faults += size != LARGE || memcmp(data, data + 1, LARGE - 1) != 0;
        free(data);
    }
    free(mine);
    clconv_store_free(s);
    return faults + warnings.warnings;
}

Test(cache, racing_processes_always_read_a_whole_entry)
{
    pid_t child[RACERS];
    for (int i = 0; i < RACERS; ++i) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(race(i) ? 1 : 0);
        cr_assert_gt(child[i], 0);
    }
    for (int i = 0; i < RACERS; ++i) {
        int status;
        cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "racer %d", i);
    }
    cr_assert_eq(cache_dir_count(&dir), 1);
}
