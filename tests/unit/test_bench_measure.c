/*
 * What clconv-bench makes of times, and how it walks through contenders: with
 * contenders that only count.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "agree.h"
#include "contest.h"
#include "measure.h"
#include "result.h"

static void assert_near(double value, double expected)
{
    cr_assert(fabs(value - expected) <= 1e-12 * fabs(expected), "%g is not %g",
              value, expected);
}

/* ---- Statistics --------------------------------------------------------- */

Test(bench_statistics, quartiles_lie_between_sorted_values)
{
    double five[] = {5, 1, 4, 2, 3}, four[] = {4, 3, 2, 1}, one[] = {7};
    spread s = spread_of(five, 5);

    assert_near(s.lower, 2);
    assert_near(s.median, 3);
    assert_near(s.upper, 4);
    s = spread_of(four, 4);
    assert_near(s.lower, 1.75);
    assert_near(s.median, 2.5);
    assert_near(s.upper, 3.25);
    s = spread_of(one, 1);
    assert_near(s.lower, 7);
    assert_near(s.upper, 7);
}

Test(bench_statistics, one_slow_call_does_not_move_the_median)
{
    double values[] = {1, 1, 1, 1000, 1};

    assert_near(spread_of(values, 5).median, 1);
}

Test(bench_statistics, errors_are_relative_frobenius_norms)
{
    const float expected[] = {3, 4}, off[] = {3, 4.5F}, nan[] = {3, NAN};
    const float zeros[] = {0, 0};

    assert_near(agree_error(expected, expected, 2), 0);
    assert_near(agree_error(off, expected, 2), 0.1);
    assert_near(agree_error(zeros, zeros, 2), 0);
    cr_assert(isinf(agree_error(expected, zeros, 2)));
    cr_assert(isnan(agree_error(nan, expected, 2)));
}

/* ---- Roofline and sets -------------------------------------------------- */

Test(bench_roofline, the_floor_is_the_slower_of_both)
{
    const work w = {.flop = 100, .bytes = 30};

    assert_near(roofline_floor(&w, 10, 10), 10);
    assert_near(roofline_floor(&w, 100, 10), 3);
    cr_assert(isnan(roofline_floor(&w, NAN, 10)));
}

Test(bench_roofline, mixed_is_held_against_the_matrix_unit_where_there_is_one)
{
    probe_result peaks = {.fma_flops = 1, .matrix_flops = 10, .copy_bytes = 1};

    assert_near(roofline_peak(&peaks, "mixed"), 10);
    assert_near(roofline_peak(&peaks, "fp16"), 10);
    assert_near(roofline_peak(&peaks, "fp32"), 1);
    peaks.matrix_flops = 0;
    assert_near(roofline_peak(&peaks, "mixed"), 1);
    cr_assert(isnan(roofline_peak(&peaks, "onednn-bf16")));
}

Test(bench_sets_of_tensors, exceed_twice_the_cache_within_the_memory)
{
    /* 2 * 32 / 10, and one more. */
    cr_assert_eq(contest_sets(10, 32, 1e6, 3), 7);
    cr_assert_eq(contest_sets(1000, 32, 1e6, 3), 2);
    /* Half of the memory is for 4 contenders' 3 sets. */
    cr_assert_eq(contest_sets(10, 320, 240, 4), 3);
    cr_assert_eq(contest_sets(10, 320, 10, 4), 2);
    cr_assert_eq(contest_sets(1, 1e9, 1e12, 1), 256);
}

/* ---- Ratios ------------------------------------------------------------- */

static entry timed(double seconds)
{
    return (entry){.status = ENTRY_TIMED,
                   .seconds = {seconds, seconds, seconds}};
}

static entry wrong(void)
{
    return (entry){.status = ENTRY_WRONG};
}

/* The base and another on three problems; the other is wrong on the last. */
static bench_result example(row rows[3])
{
    const contender *any = contenders[0];
    bench_result b = {.columns = {{any, any}, 2, 0}, .rows = rows, .count = 3};

    rows[0] = (row){.name = "a", .entries = {timed(2), timed(1)}};
    rows[1] = (row){.name = "b", .entries = {timed(1), timed(8)}};
    rows[2] = (row){.name = "c", .entries = {timed(1), wrong()}};
    for (int i = 0; i < 3; ++i)
        rows[i].flop = 4e9;
    return b;
}

Test(bench_result, ratios_above_1_mean_that_the_base_is_faster)
{
    row rows[3];
    bench_result b = example(rows);

    assert_near(result_ratio(&b, &rows[0], 1), 0.5);
    assert_near(result_ratio(&b, &rows[1], 1), 8);
    cr_assert(isnan(result_ratio(&b, &rows[2], 1)));
    assert_near(result_gflops(&rows[0], 0), 2);
    cr_assert(isnan(result_gflops(&rows[2], 1)));
}

Test(bench_result, the_summary_names_extremes_and_leaves_out_what_is_wrong)
{
    row rows[3];
    bench_result b = example(rows);
    ratio_summary s = result_summarize(&b, 1);

    cr_assert_eq(s.count, 2);
    assert_near(s.mean, 2);
    assert_near(s.least, 0.5);
    cr_assert_str_eq(s.least_row->name, "a");
    assert_near(s.largest, 8);
    cr_assert_str_eq(s.largest_row->name, "b");
}

Test(bench_result, one_wrong_contender_makes_the_run_a_failure)
{
    row rows[3];
    bench_result b = example(rows);

    cr_assert_not(result_is_good(&b));
    b.count = 2;
    cr_assert(result_is_good(&b));
    rows[1].entries[1].status = ENTRY_UNSUPPORTED;
    cr_assert(result_is_good(&b));
    rows[1].entries[1].status = ENTRY_FAILED;
    cr_assert_not(result_is_good(&b));
}

/* ---- Turns -------------------------------------------------------------- */

enum { SETS = 3 };

typedef struct counter {
    int calls[SETS];
    int waits;
    int fail_at; /* this call fails; 0: none */
    long nanoseconds;
    int total;
    const int *other; /* the other's total */
    int largest_lead; /* of calls before the other's */
} counter;

static bool count_call(void *state, int set)
{
    counter *c = state;

    cr_assert(set >= 0 && set < SETS, "set %d", set);
    ++c->calls[set];
    ++c->total;
    if (c->other && c->total - *c->other > c->largest_lead)
        c->largest_lead = c->total - *c->other;
    return c->total != c->fail_at;
}

static bool count_wait(void *state)
{
    counter *c = state;
    struct timespec time = {0, c->nanoseconds};

    nanosleep(&time, NULL);
    ++c->waits;
    return true;
}

static const contender counting = {
    .name = "counting", .enqueue = count_call, .wait = count_wait};

static racer racer_of(counter *c)
{
    return (racer){.contender = &counting, .state = c, .sets = SETS};
}

Test(bench_measure, warming_up_runs_every_set)
{
    const measure_rules rules = {.seconds = 0, .repeats = 1};
    counter c = {.waits = 0};
    racer r = racer_of(&c);

    cr_assert(measure_warm_up(&r, &rules));
    for (int i = 0; i < SETS; ++i)
        cr_assert_eq(c.calls[i], 1, "set %d", i);
    cr_assert_eq(r.count, 0);
    cr_assert_eq(r.burst, 1);
}

Test(bench_measure, every_call_is_waited_for_and_goes_to_the_next_set)
{
    const measure_rules rules = {.seconds = 0, .repeats = 7};
    counter c = {.waits = 0};
    racer r = racer_of(&c);

    r.burst = 1;
    measure_in_turns(&r, 1, &rules);
    cr_assert_eq(r.count, 7);
    cr_assert_eq(c.waits, 7);
    cr_assert_eq(c.calls[0], 3);
    cr_assert_eq(c.calls[1], 2);
    cr_assert_eq(c.calls[2], 2);
    measure_free(&r);
}

Test(bench_measure, a_burst_has_one_wait_and_its_sample_is_the_mean)
{
    const measure_rules rules = {.seconds = 0, .repeats = 2, .in_bursts = true};
    counter c = {.nanoseconds = 300000};
    racer r = racer_of(&c);

    cr_assert(measure_warm_up(&r, &rules));
    /* One call takes a third of the wait, so a burst has 20 or fewer. */
    cr_assert(r.burst >= 1 && r.burst <= 20, "%d", r.burst);
    r.burst = 6;
    c.waits = c.total = 0;
    measure_in_turns(&r, 1, &rules);
    cr_assert_eq(c.waits, 2);
    cr_assert_eq(c.total, 12);
    cr_assert_eq(r.count, 2);
    cr_assert_geq(r.samples[0], 300e-6 / 6);
    cr_assert_geq(r.spent, 600e-6);
    measure_free(&r);
}

/* 20 ms a call: each call is a turn. */
Test(bench_measure, equal_contenders_take_turns)
{
    const measure_rules rules = {.seconds = 0, .repeats = 6};
    counter a = {.nanoseconds = 20000000}, b = a;
    racer racers[2];

    a.other = &b.total;
    b.other = &a.total;
    racers[0] = racer_of(&a);
    racers[1] = racer_of(&b);
    racers[0].burst = racers[1].burst = 1;
    measure_in_turns(racers, 2, &rules);
    cr_assert_eq(a.total, 6);
    cr_assert_eq(b.total, 6);
    cr_assert_eq(a.largest_lead, 1);
    cr_assert_leq(b.largest_lead, 1);
    measure_free(&racers[0]);
    measure_free(&racers[1]);
}

Test(bench_measure, a_slow_contender_has_its_least_calls)
{
    const measure_rules rules = {.seconds = 0.001, .repeats = 3};
    counter c = {.nanoseconds = 2000000};
    racer r = racer_of(&c);

    r.burst = 1;
    measure_in_turns(&r, 1, &rules);
    cr_assert_eq(r.count, 3);
    measure_free(&r);
}

Test(bench_measure, one_that_fails_is_left_out)
{
    const measure_rules rules = {.seconds = 0, .repeats = 4};
    counter bad = {.fail_at = 2}, good = {.waits = 0};
    racer racers[] = {racer_of(&bad), racer_of(&good)};

    racers[0].burst = racers[1].burst = 1;
    measure_in_turns(racers, 2, &rules);
    cr_assert(racers[0].failed);
    cr_assert_eq(bad.total, 2);
    cr_assert_not(racers[1].failed);
    cr_assert_eq(racers[1].count, 4);
    measure_free(&racers[0]);
    measure_free(&racers[1]);
}
