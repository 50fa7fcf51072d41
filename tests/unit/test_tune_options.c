/*
 * clconv-tune without a device: help, sets, wrong options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define PROBLEM "n1c2h5w5k3r3s3p1"

static program_result result;
static char directory[512];

static void set_up(void)
{
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    cr_assert_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
    cr_assert_eq(setenv("CLCONV_CACHE_DIR", directory, 1), 0);
}

static void clean_up(void)
{
    char tune[600];
    snprintf(tune, sizeof tune, "%s/tune-1", directory);
    program_remove_directory(tune);
    program_remove_directory(directory);
}

TestSuite(tune_options, .init = set_up, .fini = clean_up);

static void run(const char *a, const char *b, const char *c)
{
    program_run((const char *[]){CLCONV_TUNE, a, b, c, NULL}, &result);
}

/* One line on stderr, nothing on stdout. */
static void assert_refused(const char *part)
{
    cr_assert_eq(result.status, 2, "status %d: %s", result.status, result.err);
    cr_assert_not_null(strstr(result.err, part), "%s\nlacks \"%s\"", result.err,
                       part);
    cr_assert_eq(strchr(result.err, '\n'), strrchr(result.err, '\n'),
                 "more than one line:\n%s", result.err);
    cr_assert_str_empty(result.out);
}

static void assert_wrong(const char *option, const char *value, const char *part)
{
    run(option, value, PROBLEM);
    assert_refused(part);
}

Test(tune_options, help_version_and_sets_go_to_stdout)
{
    run("--help", NULL, NULL);
    cr_assert_eq(result.status, 0);
    cr_assert_not_null(strstr(result.out, "--budget TIME"));
    cr_assert_not_null(strstr(result.out, "POCL_AFFINITY=1"));
    run("--version", NULL, NULL);
    cr_assert_eq(result.status, 0);
    cr_assert_not_null(strstr(result.out, "clconv-tune 0."));
    run("--list-sets", NULL, NULL);
    cr_assert_eq(result.status, 0);
    cr_assert_not_null(strstr(result.out, "seed-cifar: "));
    cr_assert_str_empty(result.err);
}

Test(tune_options, wrong_values_name_option_and_range)
{
    assert_wrong("--budget", "0s", "--budget 0s: must be a time such as");
    assert_wrong("--budget", "5x", "--budget 5x");
    assert_wrong("--budget", "-5", "--budget -5");
    assert_wrong("--budget", "5ss", "--budget 5ss");
    assert_wrong("--budget", "nan", "--budget nan");
    assert_wrong("--budget", "31d", "--budget 31d");
    assert_wrong("--time-limit", "", "--time-limit ");
    assert_wrong("--jobs", "0", "--jobs 0: must be a whole number from 1");
    assert_wrong("--jobs", "65", "--jobs 65");
    assert_wrong("--seed", "-1", "--seed -1");
    assert_wrong("--trials", "0", "--trials 0: must be a whole number from 1");
    assert_wrong("--plan", "bwd_date", "--plan: plan: no kernel \"bwd_date\"");
    assert_wrong("--inject", "explode:x", "--inject explode:x: must be DEED");
    assert_wrong("--inject", "crash", "--inject crash");
    assert_wrong("--set", "vgg", "--set vgg: no such set; there are");
    assert_wrong("--file", "/does/not/exist", "--file /does/not/exist");
    assert_wrong("--speed", "1", "--speed: unknown");
}

Test(tune_options, problems_and_commands_are_checked)
{
    run(NULL, NULL, NULL);
    assert_refused("give a PROBLEM, --set NAME, --file FILE or a command");
    run("n1c2", NULL, NULL);
    assert_refused("n1c2");
    run("verify", PROBLEM, NULL);
    assert_refused("verify: \"" PROBLEM "\" is too much");
    run("merge", NULL, NULL);
    assert_refused("merge needs a FILE");
    run("export", "a", "b");
    assert_refused("export: \"b\" is too much");
    run("list", "--set", "cpu");
    assert_refused("list works on records");
}

Test(tune_options, records_must_go_somewhere)
{
    run("--cache-dir", "/proc/nowhere", PROBLEM);
    cr_assert_eq(result.status, 1, "status %d", result.status);
    cr_assert_not_null(strstr(result.err, "/proc/nowhere cannot be used"), "%s",
                       result.err);
    run("--cache-dir", "", PROBLEM);
    cr_assert_eq(result.status, 1, "status %d", result.status);
    cr_assert_not_null(strstr(result.err, "--cache-dir DIR"), "%s", result.err);
}

Test(tune_options, without_a_device_the_run_is_skipped)
{
    run(PROBLEM, NULL, NULL);
    cr_assert_eq(result.status, 77, "status %d: %s", result.status, result.err);
}

Test(tune_options, list_and_merge_need_no_device)
{
    run("list", NULL, NULL);
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.out, "there are no records"));
    run("merge", "/does/not/exist", NULL);
    cr_assert_eq(result.status, 1);
    cr_assert_not_null(strstr(result.err, "merge /does/not/exist"), "%s",
                       result.err);
}
