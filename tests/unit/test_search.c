/*
 * Made-up landscapes of times over the spaces of real problems. What the search
 * finds with a tenth of a space's evaluations is held against the best there is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "landscape.h"

/* ---- Set up ------------------------------------------------------------ */

typedef struct setting {
    const char *text, *preset;
    clconv_role role;
    clconv_problem problem;
    clconv_device device;
    const char *within;
} setting;

static setting make(const char *text, const char *preset, clconv_role role)
{
    setting s = {.text = text, .preset = preset, .role = role};
    clconv_desc d;
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s", text);
    cr_assert_eq(clconv_problem_init(&d, &s.problem), CLCONV_OK, "%s", text);
    cr_assert(clconv_device_preset(preset, &s.device), "%s", preset);
    return s;
}

static clconv_search *start(const setting *s, uint64_t seed)
{
    const clconv_scope scope = {&s->problem, &s->device, s->role, s->within,
                                seed};
    clconv_search *search = clconv_search_new(&scope);
    cr_assert_not_null(search);
    return search;
}

static bool bakes(const clconv_candidate *c)
{
    return clconv_kernel_bakes(c->kernel, c->values);
}

static bool same(const clconv_candidate *a, const clconv_candidate *b)
{
    return a->kernel == b->kernel &&
           memcmp(a->values, b->values,
                  sizeof *a->values * (size_t)a->kernel->param_count) == 0;
}

#define DENSE "n4c32h28w28k64r3s3p1"
#define DEPTHWISE "n4c128h56w56k128r3s3p1g128"

/* ---- What is asked for ------------------------------------------------- */

static bool is_promising(const setting *s, const clconv_kernel *k,
                         const int *values)
{
    const clconv_task task = {
        .problem = &s->problem, .device = &s->device, .values = values};
    return !k->promising || k->promising(&task);
}

Test(search, the_space_is_what_the_planner_takes)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    int size = clconv_search_size(search), legal = 0;
    for (int i = 0; i < clconv_kernel_count; ++i) {
        const clconv_kernel *k = clconv_kernels[i];
        int values[CLCONV_MAX_PARAMS];
        clconv_step step;
        double cost;
        clconv_param_first(k->params, k->param_count, values);
        do
            legal += k->role == s.role && is_promising(&s, k, values) &&
                     clconv_planner_step(&s.problem, &s.device, k, values,
                                         &step, &cost);
        while (clconv_param_next(k->params, k->param_count, values));
    }
    cr_assert_eq(size, legal, "%d, not %d", size, legal);
    clconv_search_free(search);
}

/* What stands in for copies that the device does not make is legal, for tests,
 * but no candidate. */
Test(search, asks_for_asynchronous_copies_where_the_device_makes_them)
{
    static const char within[] = "bwd_data_local:copy=async";
    setting with = make(DENSE "_fp32", "sm_80", CLCONV_ROLE_BWD_DATA);
    setting without = make(DENSE "_fp32", "cpu", CLCONV_ROLE_BWD_DATA);
    with.within = without.within = within;
    clconv_search *some = start(&with, 1), *none = start(&without, 1);
    cr_assert_gt(clconv_search_size(some), 0);
    cr_assert_eq(clconv_search_size(none), 0);
    clconv_search_free(some);
    clconv_search_free(none);
}

/* Kernel and values that a plan string names are all that is searched. */
Test(search, stays_within_a_plan_string)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    s.within = "bwd_data_panel:span=8,tile_p=6;bwd_weight_tile:tile_c=2";
    clconv_search *search = start(&s, 1);
    clconv_candidate c;
    int asked = 0;
    for (; clconv_search_next(search, &c); ++asked) {
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_candidate_format(&c, &text);
        cr_assert_not_null(strstr(text.data, "bwd_data_panel:tile_p=6,"), "%s",
                           text.data);
        cr_assert_not_null(strstr(text.data, ",span=8,"), "%s", text.data);
        clconv_text_free(&text);
        clconv_search_tell(search, &c, c.cost * 1e-9);
    }
    cr_assert_eq(asked, clconv_search_size(search));
    cr_assert_eq(asked, 8, "%d: panel, cast, shape", asked);
    clconv_search_free(search);
}

/* The first is what the planner would take. */
Test(search, asks_for_the_default_plan_first)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    clconv_request request = {.ops = CLCONV_OP_DX, .max_workspace = SIZE_MAX};
    clconv_steps steps;
    clconv_candidate c, expected;
    cr_assert_eq(clconv_planner_choose(&s.problem, &s.device, &request, &steps),
                 CLCONV_OK);
    clconv_text plan = CLCONV_TEXT_EMPTY;
    clconv_steps_format(&steps, &plan);
    cr_assert(clconv_candidate_parse(search, plan.data, &expected));
    cr_assert(clconv_search_next(search, &c));
    cr_assert(same(&c, &expected));
    clconv_text_free(&plan);
    clconv_search_free(search);
}

/* Programs for this problem alone come after all others. */
Test(search, asks_for_all_of_the_space_and_none_twice)
{
    setting s = make("n4c64h8w8k64r3s3p1_fp32", "gpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    int size = clconv_search_size(search), asked = 0;
    clconv_candidate *all = calloc((size_t)size, sizeof *all), c;
    bool baked = false;
    while (clconv_search_next(search, &c)) {
        for (int i = 0; i < asked; ++i)
            cr_assert_not(same(&all[i], &c), "%d and %d", i, asked);
        cr_assert(bakes(&c) || !baked, "%d", asked);
        baked = bakes(&c);
        all[asked++] = c;
        clconv_search_tell(search, &c, 1e-3 * asked);
    }
    cr_assert_eq(asked, size, "%d of %d", asked, size);
    cr_assert_eq(clconv_search_told(search), size);
    free(all);
    clconv_search_free(search);
}

static bool is_twin(const clconv_candidate *baked, const clconv_candidate *c)
{
    clconv_text a = CLCONV_TEXT_EMPTY, b = CLCONV_TEXT_EMPTY;
    clconv_candidate_format(baked, &a);
    clconv_candidate_format(c, &b);
    size_t head = (size_t)(strstr(b.data, "shape=") - b.data);
    bool twin = strncmp(a.data, b.data, head) == 0;
    clconv_text_free(&a);
    clconv_text_free(&b);
    return twin;
}

Test(search, finishes_with_programs_for_the_fastest_alone)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    clconv_candidate c, best[3];
    for (int i = 0; i < 40 && clconv_search_next(search, &c); ++i)
        clconv_search_tell(search, &c, c.cost);
    cr_assert_eq(clconv_search_best(search, 3, best), 3);
    clconv_search_finish(search);
    for (int i = 0; i < 3; ++i) {
        cr_assert(clconv_search_next(search, &c));
        cr_assert(bakes(&c));
        cr_assert(is_twin(&c, &best[i]), "%d", i);
    }
    cr_assert(clconv_search_next(search, &c));
    cr_assert(bakes(&c));
    clconv_search_free(search);
}

static void ask(const setting *s, uint64_t seed, clconv_candidate *out,
                int count)
{
    clconv_search *search = start(s, seed);
    for (int i = 0; i < count; ++i) {
        cr_assert(clconv_search_next(search, &out[i]));
        clconv_search_tell(search, &out[i], 1.0 / (1 + i % 7));
    }
    clconv_search_free(search);
}

Test(search, same_answers_get_the_same_questions)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_WEIGHT);
    clconv_candidate first[50], second[50];
    ask(&s, 7, first, 50);
    ask(&s, 7, second, 50);
    for (int i = 0; i < 50; ++i)
        cr_assert(same(&first[i], &second[i]), "%d", i);
}

/* ---- What is told ------------------------------------------------------ */

Test(search, what_it_is_told_unasked_counts_and_is_not_asked_for)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    clconv_candidate told, c, best;
    clconv_search_item(search, clconv_search_size(search) / 2, &told);
    clconv_search_tell(search, &told, 1e-9);
    clconv_search_tell(search, &told, 1e-12); /* the first word stands */
    cr_assert_eq(clconv_search_told(search), 1);
    while (clconv_search_next(search, &c)) {
        cr_assert_not(same(&c, &told));
        clconv_search_tell(search, &c, 1);
    }
    cr_assert_eq(clconv_search_best(search, 1, &best), 1);
    cr_assert(same(&best, &told));
    clconv_search_free(search);
}

Test(search, what_fails_is_never_among_the_best)
{
    setting s = make(DENSE, "cpu", CLCONV_ROLE_BWD_DATA);
    clconv_search *search = start(&s, 1);
    clconv_candidate c, best[8];
    for (int i = 0; i < 30; ++i) {
        cr_assert(clconv_search_next(search, &c));
        clconv_search_tell(search, &c, INFINITY);
    }
    cr_assert_eq(clconv_search_best(search, 8, best), 0);
    cr_assert(clconv_search_next(search, &c));
    clconv_search_tell(search, &c, 1e-3);
    cr_assert_eq(clconv_search_best(search, 8, best), 1);
    cr_assert(same(&best[0], &c));
    clconv_search_free(search);
}

Test(search, a_candidate_reads_what_it_printed)
{
    setting s = make(DEPTHWISE, "gpu", CLCONV_ROLE_BWD_WEIGHT);
    clconv_search *search = start(&s, 1);
    for (int i = 0; i < clconv_search_size(search); i += 97) {
        clconv_candidate c, again;
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_search_item(search, i, &c);
        clconv_candidate_format(&c, &text);
        cr_assert(clconv_candidate_parse(search, text.data, &again), "%s",
                  text.data);
        cr_assert(same(&c, &again), "%s", text.data);
        clconv_text_free(&text);
    }
    static const char *const others[] = {"", "cast:vec=16", "bwd_data_generic",
                                         "bwd_weight_nothing"};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        clconv_candidate c;
        cr_assert_not(clconv_candidate_parse(search, others[i], &c), "%s",
                      others[i]);
    }
    clconv_search_free(search);
}

/* ---- What is found ----------------------------------------------------- */

/* Timings repeat within 3 %. */
#define NOISE 0.03
#define BATCH 8

static const landscape landscapes[] = {
    {"cost() is right", .cost = 1},
    {"cost() is good", .cost = 1, .kernel = 0.2, .value = 0.1, .pair = 0.02},
    {"cost() is half right", .cost = 0.5, .kernel = 0.3, .value = 0.2,
     .pair = 0.05, .rough = 0.02},
    {"a third fails", .cost = 0.5, .kernel = 0.3, .value = 0.2, .pair = 0.05,
     .rough = 0.02, .failing = 0.3},
    {"whole values fail", .cost = 0.5, .kernel = 0.3, .value = 0.2,
     .pair = 0.05, .rough = 0.02, .failing_value = 0.08},
    {"cost() says nothing, values add up", .kernel = 0.3, .value = 0.3},
    {"cost() says nothing, values interact", .kernel = 0.3, .value = 0.2,
     .pair = 0.1, .rough = 0.02},
};

/* 1000 to 2200 candidates, then hundreds. */
static const struct {
    const char *text, *preset;
    clconv_role role;
} spaces[] = {
    {DENSE, "cpu", CLCONV_ROLE_BWD_DATA},
    {DENSE "_nhwc", "cpu", CLCONV_ROLE_BWD_DATA},
    {DEPTHWISE, "gpu", CLCONV_ROLE_BWD_DATA},
    {"n256c64h32w32k64r3s3p1_fp32", "gpu", CLCONV_ROLE_BWD_DATA},
};

static double least_of(const landscape *l, uint64_t seed,
                       const clconv_search *search)
{
    double least = INFINITY;
    for (int i = 0; i < clconv_search_size(search); ++i) {
        clconv_candidate c;
        clconv_search_item(search, i, &c);
        least = fmin(least, landscape_seconds(l, seed, &c));
    }
    return least;
}

/* Asks and tells so many, in batches, the last quarter to finish. */
static void run(const landscape *l, uint64_t seed, clconv_search *search,
                int budget)
{
    uint64_t noise = seed;
    for (int told = 0; told < budget;) {
        clconv_candidate batch[BATCH];
        int count = 0;
        if (told >= budget * 3 / 4)
            clconv_search_finish(search);
        while (count < BATCH && told + count < budget &&
               clconv_search_next(search, &batch[count]))
            ++count;
        for (int i = 0; i < count; ++i, ++told)
            clconv_search_tell(search, &batch[i],
                               landscape_seconds(l, seed, &batch[i]) *
                                   exp(NOISE * landscape_normal(&noise)));
        if (count == 0)
            return;
    }
}

/* The best there is by the best of the few that would be timed again. */
static double quality(const setting *s, const landscape *l, uint64_t seed,
                      int tenths)
{
    clconv_search *search = start(s, seed);
    run(l, seed, search, clconv_search_size(search) * tenths / 10);
    clconv_candidate few[3];
    double found = INFINITY;
    for (int i = clconv_search_best(search, 3, few); i-- > 0;)
        found = fmin(found, landscape_seconds(l, seed, &few[i]));
    double least = least_of(l, seed, search);
    clconv_search_free(search);
    return least / found;
}

#define SEEDS 4

Test(search, a_tenth_of_the_evaluations_finds_95_percent_of_the_best)
{
    int good = 0, runs = 0;
    double sum = 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; ++i) {
        setting s = make(spaces[i].text, spaces[i].preset, spaces[i].role);
        for (size_t l = 0; l < sizeof landscapes / sizeof *landscapes; ++l)
            for (uint64_t seed = 1; seed <= SEEDS; ++seed, ++runs) {
                double q = quality(&s, &landscapes[l], seed, 1);
                cr_assert_gt(q, 0.5, "%s on %s, %s, seed %d: %.3f", s.text,
                             s.preset, landscapes[l].name, (int)seed, q);
                good += q >= 0.95;
                sum += q;
            }
    }
    cr_assert_geq(good, runs * 95 / 100, "%d of %d", good, runs);
    cr_assert_geq(sum / runs, 0.985, "%.4f", sum / runs);
}

Test(search, all_evaluations_find_the_best)
{
    setting s = make("n4c64h8w8k64r3s3p1_fp32", "gpu", CLCONV_ROLE_BWD_DATA);
    for (size_t l = 0; l < sizeof landscapes / sizeof *landscapes; ++l)
        cr_assert_gt(quality(&s, &landscapes[l], 1, 10), 0.97, "%s",
                     landscapes[l].name);
}
