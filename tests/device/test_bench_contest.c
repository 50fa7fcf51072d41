/*
 * clconv-bench's judgement of contenders: the library's own, with something
 * changed. No test of a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "contest.h"

#define PROBLEM "n2c3h6w5k4r3s3p1"

static host device;
static case_list problems;

static void set_up(void)
{
    clconv_desc desc;

    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &device), HOST_OK);
    cr_assert_eq(clconv_desc_parse(PROBLEM, &desc), CLCONV_OK);
    cr_assert(cases_add(&problems, PROBLEM, &desc));
}

static void clean_up(void)
{
    cases_free(&problems);
    host_close(&device);
}

TestSuite(bench_contest, .init = set_up, .fini = clean_up);

/* One row of mixed and of another. */
static row run(const contender *other, unsigned ops)
{
    const contest_rules rules = {.host = &device,
                                 .cache_bytes = 1024,
                                 .ops = ops,
                                 .measure = {.seconds = 0, .repeats = 2}};
    const columns list = {{columns_find("mixed"), other}, 2, 0};
    row r;

    cr_assert(contest_run(&rules, &list, &problems.items[0], &r));
    return r;
}

static contender changed_fp32(void)
{
    return *columns_find("fp32");
}

/* The other has no time and a reason; mixed has a time. */
static void assert_status(const row *r, entry_status status, const char *why)
{
    cr_assert_eq(r->entries[1].status, status, "%s",
                 result_status_name(r->entries[1].status));
    cr_assert(strstr(r->entries[1].why, why), "%s", r->entries[1].why);
    cr_assert(isnan(result_gflops(r, 1)));
    cr_assert_eq(r->entries[0].status, ENTRY_TIMED, "%s", r->entries[0].why);
    cr_assert_gt(result_gflops(r, 0), 0);
}

Test(bench_contest, right_results_are_timed_and_their_error_told)
{
    row r = run(columns_find("fp32"), CLCONV_OP_BACKWARD);

    for (int i = 0; i < 2; ++i) {
        cr_assert_eq(r.entries[i].status, ENTRY_TIMED, "%s", r.entries[i].why);
        cr_assert_eq(r.entries[i].samples, 2);
        cr_assert_gt(r.entries[i].seconds.median, 0);
    }
    /* fp16 operands: a few units in the last of 11 bits, and not none. */
    cr_assert(r.entries[0].error > 1e-6 && r.entries[0].error < 5e-3, "%g",
              r.entries[0].error);
    cr_assert_lt(r.entries[1].error, 1e-4);
    cr_assert_str_eq(r.problem, PROBLEM);
    cr_assert_geq(r.sets, 2);
}

/* 2 for each product of dW and dX: 2 * 2 * (n k p q = 240) * (c r s = 27). */
Test(bench_contest, the_work_is_that_of_the_outputs)
{
    row all = run(columns_find("fp32"), CLCONV_OP_BACKWARD);
    row dw = run(columns_find("fp32"), CLCONV_OP_DW);

    cr_assert_eq(all.flop, 2 * 2 * 240 * 27);
    /* x and dx, w and dw, dy, db. */
    cr_assert_eq(all.entries[0].bytes, 4 * (2 * 180 + 2 * 108 + 240 + 4));
    cr_assert_eq(dw.flop, 2 * 240 * 27);
    cr_assert_eq(dw.entries[0].bytes, 4 * (180 + 108 + 240));
}

Test(bench_contest, fp16_tensors_are_half_the_bytes)
{
    row r = run(columns_find("fp16"), CLCONV_OP_BACKWARD);
    const entry *fp16 = &r.entries[1];

    cr_assert_eq(fp16->status, ENTRY_TIMED, "%s", fp16->why);
    cr_assert(fp16->error > 1e-6 && fp16->error < 5e-3, "%g", fp16->error);
    /* x and dx, w, dy; dw and db stay fp32. */
    cr_assert_eq(fp16->bytes, 2 * (2 * 180 + 108 + 240) + 4 * (108 + 4));
}

Test(bench_contest, an_error_beyond_the_bound_is_wrong_and_not_timed)
{
    contender other = *columns_find("mixed");
    row r;

    other.bound = 1e-7;
    r = run(&other, CLCONV_OP_BACKWARD);
    assert_status(&r, ENTRY_WRONG, "allowed is 1e-07");
}

static bool read_nothing(void *state, int set, const contender_results *out)
{
    (void)state;
    (void)set;
    (void)out;
    return true;
}

/* Results are NaN until they are read. */
Test(bench_contest, results_that_do_not_come_are_wrong)
{
    contender other = changed_fp32();
    row r;

    other.read = read_nothing;
    r = run(&other, CLCONV_OP_BACKWARD);
    assert_status(&r, ENTRY_WRONG, "relative error");
}

static contender_status refuse(const contender_setup *setup, void **state,
                               char why[256])
{
    (void)setup;
    (void)state;
    strcpy(why, "not on Mondays");
    return CONTENDER_UNSUPPORTED;
}

Test(bench_contest, one_that_cannot_is_asked_for_its_reason)
{
    contender other = changed_fp32();
    row r;

    other.open = refuse;
    r = run(&other, CLCONV_OP_BACKWARD);
    assert_status(&r, ENTRY_UNSUPPORTED, "not on Mondays");
}

static bool fail(void *state, int set)
{
    (void)state;
    (void)set;
    return false;
}

Test(bench_contest, a_call_that_fails_is_no_time)
{
    contender other = changed_fp32();
    row r;

    other.enqueue = fail;
    r = run(&other, CLCONV_OP_BACKWARD);
    assert_status(&r, ENTRY_FAILED, "a call failed");
}
