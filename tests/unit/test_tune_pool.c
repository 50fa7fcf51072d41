/*
 * clconv-tune's workers, with a script in their place that misbehaves at plans
 * of some names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pool.h"
#include "program.h"

/* Answers plans a, b, ... by 1, 2, ... milliseconds; what a plan's name begins
 * with is what is done at it, once the command is the one it says. */
static const char script_text[] =
    "#!/bin/sh\n"
    "echo started >> \"$0.starts\"\n"
    "echo \"$*\" > \"$0.arguments\"\n"
    "echo a last line >&2\n"
    "while read -r line; do\n"
    "    case $line in\n"
    "    *'\"crash'*) kill -11 $$ ;;\n"
    "    *'\"hang'*) sleep 60 ;;\n"
    "    *'\"babble'*) echo what ;;\n"
    "    *'\"quit'*) exit 0 ;;\n"
    "    *'\"lost'*) exit 1 ;;\n"
    "    'do=\"time\"'*'\"timed'*) kill -6 $$ ;;\n"
    "    esac\n"
    "    for word in $line; do\n"
    "        case $word in\n"
    "        plan=*) echo \"outcome=\\\"ok\\\" seconds=0.5 why=$word\" |\n"
    "            sed 's/why=plan=/why=/' ;;\n"
    "        esac\n"
    "    done\n"
    "    case $line in *'\"after'*) exit 1 ;; esac\n"
    "done\n";

#define JOBS 3
#define LIMIT 4 /* seconds; a loaded machine is slow to start a shell */

static char directory[512], script[560];
static pool *workers;

static void set_up(void)
{
    static const char *const no_settings[] = {NULL};
    signal(SIGPIPE, SIG_IGN);
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    snprintf(script, sizeof script, "%s/worker", directory);
    FILE *file = fopen(script, "w");
    cr_assert_not_null(file);
    fputs(script_text, file);
    fclose(file);
    chmod(script, 0700);
    const pool_rules rules = {.program = script,
                              .device = "a device",
                              .run_dir = directory,
                              .name = "worker",
                              .cache_dir = "",
                              .settings = no_settings,
                              .jobs = JOBS,
                              .limit = LIMIT};
    workers = pool_new(&rules);
    cr_assert_not_null(workers);
}

static void clean_up(void)
{
    pool_free(workers);
    program_remove_directory(directory);
}

TestSuite(tune_pool, .init = set_up, .fini = clean_up);

static clconv_trial trials[8];

/* Every plan that is well has the answer that is its own. */
static void assert_answers(const char *const *plans, int count,
                           const clconv_outcome *outcomes)
{
    for (int i = 0; i < count; ++i) {
        cr_assert_eq(trials[i].outcome, outcomes[i], "%s: %s, %s", plans[i],
                     clconv_outcome_word(trials[i].outcome), trials[i].why);
        if (outcomes[i] == CLCONV_TRIAL_OK)
            cr_assert_str_eq(trials[i].why, plans[i]);
    }
}

static int count_starts(void)
{
    char path[600], line[64];
    int count = 0;
    snprintf(path, sizeof path, "%s.starts", script);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        ++count;
    if (file)
        fclose(file);
    return count;
}

#define OK CLCONV_TRIAL_OK
#define CRASHED CLCONV_TRIAL_CRASHED
#define HUNG CLCONV_TRIAL_HUNG

Test(tune_pool, tells_the_plans_of_a_batch_apart)
{
    static const char *const plans[] = {"a",    "crash", "b", "babble",
                                        "hang", "c",     "d", "quit"};
    static const clconv_outcome outcomes[] = {OK,   CRASHED, OK, CRASHED,
                                              HUNG, OK,      OK, CRASHED};
    pool_prepare(workers, "n1", 7, plans, 8, trials);
    assert_answers(plans, 8, outcomes);
    cr_assert_str_eq(trials[1].why, "signal 11; a last line");
    cr_assert_str_eq(trials[3].why, "answered nonsense; a last line");
    cr_assert_str_eq(trials[4].why, "time limit; a last line");
    cr_assert_str_eq(trials[7].why, "exit status 0; a last line");
    cr_assert_eq(pool_replaced(workers), 4);
}

/* It found no device, say: the plan did nothing. */
Test(tune_pool, does_not_blame_a_plan_for_a_worker_that_never_answered)
{
    static const char *const lost[] = {"lost"}, *const fine[] = {"a"};
    static const clconv_outcome ok[] = {OK};
    pool_prepare(workers, "n1", 7, lost, 1, trials);
    cr_assert_eq(trials[0].outcome, CLCONV_TRIAL_FAILED, "%s", trials[0].why);
    cr_assert_str_eq(trials[0].why, "exit status 1; a last line");
    pool_prepare(workers, "n1", 7, fine, 1, trials);
    assert_answers(fine, 1, ok);
    pool_prepare(workers, "n1", 7, lost, 1, trials);
    cr_assert_eq(trials[0].outcome, CLCONV_TRIAL_CRASHED, "%s", trials[0].why);
}

Test(tune_pool, starts_as_many_workers_as_are_needed)
{
    static const char *const plans[] = {"a", "b"};
    static const clconv_outcome outcomes[] = {OK, OK};
    for (int i = 0; i < 5; ++i) {
        pool_prepare(workers, "n1", 7, plans, 2, trials);
        assert_answers(plans, 2, outcomes);
    }
    cr_assert_eq(count_starts(), 2);
}

Test(tune_pool, times_in_one_worker)
{
    static const char *const plans[] = {"a", "b", "c"};
    static const clconv_outcome outcomes[] = {OK, OK, OK};
    pool_time(workers, "n1", 7, plans, 3, 0.1, trials);
    assert_answers(plans, 3, outcomes);
    cr_assert_eq(trials[2].seconds, 0.5);
    cr_assert_eq(count_starts(), 1);
}

/* All die with one, so they are tried one by one. */
Test(tune_pool, finds_the_plan_that_crashes_when_timed)
{
    static const char *const plans[] = {"a", "timed", "b", "hang"};
    static const clconv_outcome outcomes[] = {OK, CRASHED, OK, HUNG};
    pool_time(workers, "n1", 7, plans, 4, 0.01, trials);
    assert_answers(plans, 4, outcomes);
    cr_assert_str_eq(trials[1].why, "signal 6; a last line");
}

/* Nobody is blamed for what a worker did after its answer. */
Test(tune_pool, replaces_a_worker_that_ended_while_idle)
{
    static const char *const plans[] = {"a", "b", "c"};
    static const clconv_outcome outcomes[] = {OK, OK, OK};
    pool_judge(workers, "n1", 7, "after", trials);
    cr_assert_eq(trials[0].outcome, OK);
    nanosleep(&(struct timespec){1, 0}, NULL);
    pool_time(workers, "n1", 7, plans, 3, 0.1, trials);
    assert_answers(plans, 3, outcomes);
    cr_assert_eq(pool_replaced(workers), 1);
}

Test(tune_pool, judges)
{
    pool_judge(workers, "n1", 7, "a", trials);
    cr_assert_eq(trials[0].outcome, OK);
    pool_judge(workers, "n1", 7, "crash", trials);
    cr_assert_eq(trials[0].outcome, CRASHED);
    pool_judge(workers, "n1", 7, "b", trials);
    cr_assert_eq(trials[0].outcome, OK);
}

/* The others do the rest meanwhile; nobody else is replaced. */
Test(tune_pool, goes_on_while_one_hangs)
{
    static const char *const plans[] = {"hang", "a", "b", "c", "d", "e"};
    static const clconv_outcome outcomes[] = {HUNG, OK, OK, OK, OK, OK};
    pool_prepare(workers, "n1", 7, plans, 6, trials);
    assert_answers(plans, 6, outcomes);
    cr_assert_eq(pool_replaced(workers), 1);
    cr_assert_eq(count_starts(), JOBS);
}

Test(tune_pool, says_that_no_worker_can_be_started)
{
    static const char *const plans[] = {"a", "b", "c", "d"};
    remove(script);
    pool_prepare(workers, "n1", 7, plans, 4, trials);
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(trials[i].outcome, CLCONV_TRIAL_FAILED);
    pool_time(workers, "n1", 7, plans, 4, 0.1, trials);
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(trials[i].outcome, CLCONV_TRIAL_FAILED);
}

Test(tune_pool, hands_on_device_and_cache)
{
    char path[600], line[256] = "";
    pool_judge(workers, "n1", 7, "a", trials);
    snprintf(path, sizeof path, "%s.arguments", script);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_assert_not_null(fgets(line, sizeof line, file));
    fclose(file);
    cr_assert_str_eq(line, "--worker --device a device --cache-dir \n");
}
