/*
 * After clconv-tune --set seed-cifar a process that finds neither a compiler
 * nor a driver's cache runs the set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "program.h"
#include "rig.h"
#include "sets.h"

#define SET "seed-cifar"
#define BUDGET "3m" /* all problems together: no good search, but one */

static cache_dir ours, driver;

static void set_up(void)
{
    cache_dir_make(&ours);
    cache_dir_make(&driver);
}

static void tear_down(void)
{
    cache_dir_remove(&driver);
    cache_dir_remove(&ours);
}

TestSuite(tuned_set, .init = set_up, .fini = tear_down);

static const problem_set *find_set(const char *name)
{
    for (size_t i = 0; i < problem_set_count; ++i)
        if (strcmp(problem_sets[i].name, name) == 0)
            return &problem_sets[i];
    cr_assert_fail("no set %s", name);
    return NULL;
}

static void tune(void)
{
    static program_result result;
    const char *argv[] = {CLCONV_TUNE, "--set",       SET,       "--budget",
                          BUDGET,      "--cache-dir", ours.path, NULL};
    program_run(argv, &result);
    cr_assert_eq(result.status, 0, "status %d: %s%s", result.status, result.out,
                 result.err);
}

/* The plan is a tuned one, of programs from disk alone, and it runs. */
static void expect_no_compilation(const char *problem)
{
    rig r;
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = ours.path;
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    const char *programs = rig_explain(r.plan, "programs: ");
    cr_assert_not_null(strstr(programs, "from disk, 0 built from source"),
                       "%s: %s", problem, programs);
    const char *record = rig_explain(r.plan, "record: ");
    cr_assert_not_null(strstr(record, "record: tuned:"), "%s: %s", problem,
                       record);
    rig_run(&r);
    rig_close(&r);
}

Test(tuned_set, runs_without_a_compiler)
{
    const problem_set *set = find_set(SET);
    tune();
    /* This process has not used OpenCL so far. */
    cr_assert_eq(setenv("CLCONV_OFFLINE", "1", 1), 0);
    cr_assert_eq(setenv("POCL_CACHE_DIR", driver.path, 1), 0);
    for (size_t i = 0; i < set->count; ++i)
        expect_no_compilation(set->rows[i].problem);
}
