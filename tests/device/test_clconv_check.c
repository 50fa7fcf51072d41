/*
 * clconv-check on small problems: right gradients pass, and it must find what
 * a wrong exponent of the cast does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

#define PROBLEM "n2c3h7w9k4r3s3p1"

static program_result result;

/* Status and last line of one run on PROBLEM in both layouts and maths, with
 * two more arguments, which may say otherwise. */
static void check(const char *option, const char *value, int status,
                  const char *last_line)
{
    const char *argv[] = {CLCONV_CHECK, "--problem", PROBLEM, "--layout",
                          "both",       "--math",    "both",  option,
                          value,        NULL};
    size_t length, expected = strlen(last_line);

    program_run(argv, &result);
    length = strlen(result.out);
    cr_assert_eq(result.status, status, "status %d: %s%s", result.status,
                 result.out, result.err);
    cr_assert(length >= expected &&
                  strcmp(result.out + length - expected, last_line) == 0,
              "ends otherwise: %s", result.out);
}

static bool says(const char *text)
{
    return strstr(result.out, text) != NULL;
}

Test(clconv_check, passes_every_judgement_in_both_layouts_and_maths)
{
    check("--seed", "5", 0, "4 passed, 0 failed, 0 skipped\n");
}

Test(clconv_check, counts_one_layout_and_one_math)
{
    check("--layout", "nhwc", 0, "2 passed, 0 failed, 0 skipped\n");
    check("--math", "fp32", 0, "2 passed, 0 failed, 0 skipped\n");
}

/* So that the replay line of clconv_plan_explain() does what it says. */
Test(clconv_check, takes_layout_and_math_from_a_problem_string)
{
    const char *argv[] = {CLCONV_CHECK, "--problem", PROBLEM "_nhwc_fp32",
                          "--verbose", NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("passed " PROBLEM "_nhwc_fp32 "), "%s", result.out);
    cr_assert(says("\n1 passed, 0 failed, 0 skipped\n"), "%s", result.out);
}

Test(clconv_check, takes_the_scale_from_a_problem_string)
{
    const char *argv[] = {CLCONV_CHECK, "--problem", PROBLEM "_scale0", NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 1, "%s%s", result.out, result.err);
    cr_assert(says("tiny: dw"), "%s", result.out);
}

Test(clconv_check, says_what_it_does_not_take_from_a_problem_string)
{
    const char *argv[] = {CLCONV_CHECK, "--problem", PROBLEM "_x16", NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert_not_null(strstr(result.err, "fp16 tensors"), "%s", result.err);
}

Test(clconv_check, says_why_a_plan_is_skipped)
{
    const char *argv[] = {CLCONV_CHECK, "--problem",    PROBLEM "_fp32",
                          "--plan",     "bwd_data_mma", NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 1, "%s%s", result.out, result.err);
    cr_assert_not_null(strstr(result.err, "bwd_data_mma does not cover"), "%s",
                       result.err);
}

/* Tiny gradients are lost without a scale: dW and dX are found wrong in both
 * layouts; db, which is never rounded, and all of fp32 are not. */
Test(clconv_check, finds_that_tiny_gradients_are_lost_at_scale_0)
{
    check("--scale-log2", "0", 1, "2 passed, 2 failed, 0 skipped\n");
    cr_assert(says("tiny: dw"), "%s", result.out);
    cr_assert(says("tiny: dx"), "%s", result.out);
    cr_assert_not(says("db"), "%s", result.out);
    cr_assert_not(says("integers"), "%s", result.out);
    cr_assert_not(says("random"), "%s", result.out);
    cr_assert_not(says("edges"), "%s", result.out);
    cr_assert(says("problem: " PROBLEM), "%s", result.out);
    cr_assert(says("plan: "), "%s", result.out);
}

/* 2^14 takes whole numbers above 3 beyond 65504. */
Test(clconv_check, finds_that_a_large_scale_saturates)
{
    check("--scale-log2", "14", 1, "2 passed, 2 failed, 0 skipped\n");
    cr_assert(says("integers: dw"), "%s", result.out);
    cr_assert(says("integers: dx"), "%s", result.out);
}

Test(clconv_check, skips_by_cost_and_then_does_not_succeed)
{
    check("--max-gflop", "0", 1, "0 passed, 0 failed, 4 skipped\n");
}

Test(clconv_check, does_not_succeed_if_nothing_matches)
{
    check("--filter", "zebra", 1, "0 passed, 0 failed, 0 skipped\n");
}

/* A row that is no convolution is an error, not a row that does not match. */
Test(clconv_check, says_what_is_wrong_with_a_row)
{
    const char *path = "clconv_check_row.csv";
    const char *argv[] = {CLCONV_CHECK, "--cases", path, NULL};
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    fputs("name,N,C,H,W,K,R,S,stride_h,stride_w,pad_top,pad_bottom,pad_left,"
          "pad_right,dilation_h,dilation_w,groups\n"
          "wide,1,3,1,1,4,2,2,1,1,0,0,0,0,1,1,1\n"
          "odd,1,3,2,2,4,2,2,1,1,0,0,0,0,1,1,2\n",
          file);
    fclose(file);
    program_run(argv, &result);
    remove(path);
    cr_assert_eq(result.status, 1, "status %d", result.status);
    cr_assert(strstr(result.err, "wide: desc: the filter spans 2 of height"),
              "%s", result.err);
    cr_assert(strstr(result.err, "odd: desc.groups is 2; it must divide"), "%s",
              result.err);
    cr_assert(strstr(result.err, "not every row could be judged"), "%s",
              result.err);
    cr_assert_not(strstr(result.err, "filter\n"), "%s", result.err);
    cr_assert(says("\n0 passed, 0 failed, 0 skipped\n"), "%s", result.out);
}

Test(clconv_check, fails_if_its_result_cannot_be_written)
{
    const char *argv[] = {"/bin/sh", "-c",
                          CLCONV_CHECK " --judgements tiny --problem " PROBLEM
                                       " >/dev/full",
                          NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 1, "status %d", result.status);
    cr_assert(strstr(result.err, "cannot be written to stdout"), "%s",
              result.err);
}

static void refuse(const char *option, const char *value, const char *why)
{
    const char *argv[] = {CLCONV_CHECK, option, value, NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 2, "status %d", result.status);
    cr_assert(strstr(result.err, why), "%s", result.err);
}

Test(clconv_check, refuses_wrong_options)
{
    refuse("--batch", "0", "--batch");
    refuse("--layout", "chwn", "--layout");
    refuse("--judgements", "tiny,huge", "--judgements");
    refuse("--judgements", "", "--judgements");
    refuse("--judgements", "tiny,enormous-beyond-every-measure-of-it",
           "--judgements enormous-beyond");
    refuse("--problem", "n1c1", "--problem");
    refuse("--cases", "/does/not/exist.csv", "/does/not/exist.csv");
    refuse("--seed", "1", "--cases");
}
