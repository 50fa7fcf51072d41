/*
 * What clconv-tune makes of clconv-check, with a script in its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "program.h"
#include "trial_fields.h"

static char directory[512], script[600];
static clconv_trial trial;

static void set_up(void)
{
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    snprintf(script, sizeof script, "%s/check", directory);
}

static void clean_up(void)
{
    program_remove_directory(directory);
}

TestSuite(tune_check, .init = set_up, .fini = clean_up);

static clconv_problem problem_of(const char *text)
{
    clconv_desc desc;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &desc), CLCONV_OK, "%s", text);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK, "%s", text);
    return p;
}

/* Judges by a shell script of these lines. */
static bool judge(const char *lines)
{
    static const char *const no_settings[] = {NULL};
    const check_rules rules = {script, "device", "/dev/null", no_settings, 2};
    clconv_problem p = problem_of("n2c4h8w8k8r3s3p1");
    FILE *file = fopen(script, "w");
    cr_assert_not_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    fclose(file);
    chmod(script, 0700);
    trial = trial_failed(CLCONV_TRIAL_OK, "");
    return check_run(&rules, &p, "the plan", &trial);
}

static void assert_trial(clconv_outcome outcome, const char *why)
{
    cr_assert_eq(trial.outcome, outcome, "%s: %s",
                 clconv_outcome_word(trial.outcome), trial.why);
    cr_assert_not_null(strstr(trial.why, why), "%s", trial.why);
}

Test(tune_check, passes)
{
    cr_assert(judge("echo device: x; echo '1 passed, 0 failed, 0 skipped'"));
    assert_trial(CLCONV_TRIAL_OK, "");
}

Test(tune_check, is_asked_for_the_problem_its_images_and_the_plan)
{
    cr_assert(judge("[ \"$*\" = \"--problem n2c4h8w8k8r3s3p1 --batch 2 --plan "
                    "the plan --device device --watch-stdin\" ] || exit 1\n"
                    "echo '1 passed, 0 failed, 0 skipped'"));
}

Test(tune_check, finds_what_is_wrong)
{
    cr_assert(judge("echo device: x; echo 'FAILED n2'\n"
                    "echo '    problem: n2'; echo '    tiny: dw[3]: got 0'\n"
                    "echo '    plan: p'; echo '0 passed, 1 failed, 0 skipped'\n"
                    "exit 1"));
    assert_trial(CLCONV_TRIAL_WRONG, "tiny: dw[3]: got 0");
}

Test(tune_check, crashes_and_hangs)
{
    cr_assert(judge("kill -11 $$"));
    assert_trial(CLCONV_TRIAL_CRASHED, "signal 11");
    cr_assert(judge("sleep 60"));
    assert_trial(CLCONV_TRIAL_HUNG, "time limit");
}

Test(tune_check, gives_no_judgement)
{
    cr_assert_not(judge("echo '0 passed, 0 failed, 1 skipped'; exit 1"));
    assert_trial(CLCONV_TRIAL_OK, "batch");
    cr_assert_not(judge("exit 2"));
    assert_trial(CLCONV_TRIAL_OK, "exit status 2");
    cr_assert_not(judge("true"));
    remove(script);
    snprintf(script, sizeof script, "%s/none", directory);
    clconv_problem p = problem_of("n2c4h8w8k8r3s3p1");
    static const char *const no_settings[] = {NULL};
    const check_rules rules = {script, "device", "/dev/null", no_settings, 2};
    cr_assert_not(check_run(&rules, &p, "plan", &trial));
}

Test(tune_check, takes_as_many_images_as_operations_and_elements_allow)
{
    clconv_problem p = problem_of("n2c4h8w8k8r3s3p1");
    cr_assert_eq(check_batch(&p), 2);
    p = problem_of("n256c512h64w64k512r3s3p1");
    cr_assert_eq(check_batch(&p), 1);
    p = problem_of("n256c128h16w16k256r5s5p2");
    long batch = check_batch(&p);
    cr_assert(batch > 1 && batch < 256, "%ld", batch);
    double one = clconv_problem_flops(&p) / 256;
    cr_assert_leq(one * (double)batch, CHECK_MAX_FLOPS);
    cr_assert_gt(one * (double)(batch + 1), CHECK_MAX_FLOPS);
    p = problem_of("n256c64h32w32k16r1s1");
    cr_assert_eq(check_batch(&p), (long)(CHECK_MAX_ELEMENTS / 65536));
    p = problem_of("n256c16h32w32k64r1s1");
    cr_assert_eq(check_batch(&p), (long)(CHECK_MAX_ELEMENTS / 65536));
}
