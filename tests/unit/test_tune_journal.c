/*
 * clconv-tune's journal: what was written is there again, what was torn is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "program.h"
#include "trial_fields.h"

#define PROBLEM "n2c4h8w8k8r3s3p1"

static char directory[512], path[600];

static void set_up(void)
{
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    snprintf(path, sizeof path, "%s/journal.txt", directory);
}

static void clean_up(void)
{
    program_remove_directory(directory);
}

TestSuite(tune_journal, .init = set_up, .fini = clean_up);

static clconv_trial timed(double seconds)
{
    clconv_trial t = trial_failed(CLCONV_TRIAL_OK, "");
    t.seconds = seconds;
    return t;
}

static journal *open_journal(void)
{
    journal *j = journal_open(path);
    cr_assert_not_null(j);
    return j;
}

static void write_three(void)
{
    clconv_trial crashed = trial_failed(CLCONV_TRIAL_CRASHED, "signal 11");
    clconv_trial fast = timed(1e-3), slow = timed(2e-3);
    journal *j = open_journal();
    journal_add(j, PROBLEM, 7, "a", &slow);
    journal_add(j, PROBLEM, 7, "b", &crashed);
    journal_add(j, PROBLEM, 7, "a", &fast);
    journal_close(j);
}

static long file_size(void)
{
    struct stat info;
    cr_assert_eq(stat(path, &info), 0);
    return (long)info.st_size;
}

Test(tune_journal, has_what_was_written_and_the_later_of_two)
{
    write_three();
    journal *j = open_journal();
    cr_assert_eq(journal_count(j), 3);
    cr_assert_eq(journal_skipped(j), 0);
    const clconv_trial *a = journal_find(j, PROBLEM, 7, "a");
    cr_assert_not_null(a);
    cr_assert_eq(a->seconds, 1e-3);
    const clconv_trial *b = journal_find(j, PROBLEM, 7, "b");
    cr_assert_not_null(b);
    cr_assert_eq(b->outcome, CLCONV_TRIAL_CRASHED);
    cr_assert_str_eq(b->why, "signal 11");
    cr_assert_null(journal_find(j, PROBLEM, 4, "a"));
    cr_assert_null(journal_find(j, PROBLEM "_nhwc", 7, "a"));
    cr_assert_null(journal_find(j, PROBLEM, 7, "c"));
    journal_close(j);
}

/* Killed at any byte: what was whole is kept, and what comes next is whole. */
Test(tune_journal, survives_a_torn_last_line)
{
    write_three();
    long size = file_size();
    clconv_trial next = timed(5);
    for (long cut = 1; cut < size; cut += 37) {
        remove(path);
        write_three();
        cr_assert_eq(truncate(path, size - cut), 0);
        journal *j = open_journal();
        int whole = journal_count(j);
        cr_assert_leq(journal_skipped(j), 1, "cut %ld", cut);
        journal_add(j, PROBLEM, 1, "next", &next);
        journal_close(j);
        j = open_journal();
        cr_assert_eq(journal_count(j), whole + 1, "cut %ld", cut);
        cr_assert_not_null(journal_find(j, PROBLEM, 1, "next"), "cut %ld", cut);
        journal_close(j);
    }
}

static void change_byte(long at, int mask)
{
    FILE *file = fopen(path, "r+");
    cr_assert_not_null(file);
    fseek(file, at, SEEK_SET);
    int c = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(c ^ mask, file);
    fclose(file);
}

/* One bit of any byte: at most the lines that it touches are lost, and none
 * says anything else. */
Test(tune_journal, skips_a_damaged_line)
{
    write_three();
    long size = file_size();
    for (long at = 0; at < size; at += 5) {
        change_byte(at, 4);
        journal *j = open_journal();
        const clconv_trial *a = journal_find(j, PROBLEM, 7, "a");
        cr_assert_lt(journal_count(j), 3, "byte %ld", at);
        cr_assert_geq(journal_count(j), 1, "byte %ld", at);
        cr_assert(!a || a->seconds == 1e-3 || a->seconds == 2e-3, "byte %ld",
                  at);
        journal_close(j);
        change_byte(at, 4);
        cr_assert_eq(truncate(path, size), 0);
    }
}

Test(tune_journal, is_one_file_a_device_and_driver)
{
    clconv_device device, other;
    cr_assert(clconv_device_preset("cpu", &device));
    char *a = journal_path("dir", &device);
    other = device;
    char *same = journal_path("dir", &other);
    strcpy(other.driver, "another");
    char *b = journal_path("dir", &other);
    cr_assert_str_eq(a, same);
    cr_assert_str_neq(a, b);
    cr_assert_eq(strncmp(a, "dir/journal-", 12), 0, "%s", a);
    free(a);
    free(same);
    free(b);
}

Test(tune_journal, says_what_cannot_be_opened)
{
    cr_assert_null(journal_open("/nonexistent/journal.txt"));
}
