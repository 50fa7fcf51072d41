/*
 * The modes of a plan that measure, and those that do not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "objects.h"
#include "rig.h"

static const char problem[] = "n2c6h6w5k4r3s3p1";

/* Enough for a trial; for tests that end by count, more than they need. */
#define SECONDS 1.0
#define MANY_SECONDS 600.0

static cache_dir dir;

static void make_dir(void)
{
    cache_dir_make(&dir);
}

static void remove_dir(void)
{
    cache_dir_remove(&dir);
}

TestSuite(find, .init = make_dir, .fini = remove_dir);

/* What a progress callback was told. */
typedef struct listener {
    int calls;
    int stop_after; /* 0: never */
    clconv_find_progress last;
} listener;

static bool listen(const clconv_find_progress *progress, void *user)
{
    listener *l = user;
    cr_assert_geq(progress->seconds, l->last.seconds);
    cr_assert_geq(progress->trials, l->last.trials);
    cr_assert_eq(progress->budget, l->stop_after ? MANY_SECONDS : SECONDS);
    cr_assert_not_null(progress->stage);
    cr_assert_gt(progress->best_microseconds, 0);
    l->last = *progress;
    ++l->calls;
    return l->stop_after == 0 || l->calls < l->stop_after;
}

static clconv_plan_options options_of(clconv_plan_mode mode, listener *l)
{
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.mode = mode;
    options.find_seconds = l && l->stop_after ? MANY_SECONDS : SECONDS;
    options.find_progress = l ? listen : NULL;
    options.find_user = l;
    return options;
}

static void open_rig(rig *r)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = dir.path;
    rig_open(r, HOST_IN_ORDER, problem, &options);
}

static clconv_status create(const rig *r, const clconv_plan_options *options,
                            clconv_plan **out)
{
    return clconv_plan_create(r->context, &r->desc, CLCONV_OP_BACKWARD, options,
                              out);
}

/* Puts such a plan in place of the rig's, runs it and looks at its results. */
static void replace_plan(rig *r, const clconv_plan_options *options)
{
    clconv_plan *plan;
    cr_assert_eq(create(r, options, &plan), CLCONV_OK, "%s: %s", problem,
                 clconv_last_error());
    clconv_plan_release(r->plan);
    r->plan = plan;
    rig_fill_outputs(r, NAN);
    rig_run(r);
    rig_expect(r, CLCONV_OP_BACKWARD, 1);
}

/* ---- Finding ----------------------------------------------------------- */

Test(find, a_plan_is_measured_once_and_then_known)
{
    char found[1024];
    rig r;
    listener first = {0}, second = {0};
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, &first);
    open_rig(&r);
    replace_plan(&r, &options);
    cr_assert_gt(first.calls, 0);
    cr_assert_gt(first.last.trials, 0);
    snprintf(found, sizeof found, "%s", rig_explain(r.plan, "plan: "));
    cr_assert_neq(rig_explain(r.plan, "record: ")[0], '\0');
    rig_close(&r);

    options = options_of(CLCONV_PLAN_FIND, &second);
    open_rig(&r);
    replace_plan(&r, &options);
    cr_assert_eq(second.calls, 0);
    cr_assert_str_eq(rig_explain(r.plan, "plan: "), found);
    /* The default as well, without being asked to. */
    options = options_of(CLCONV_PLAN_DEFAULT, &second);
    replace_plan(&r, &options);
    cr_assert_str_eq(rig_explain(r.plan, "plan: "), found);
    rig_close(&r);
}

Test(find, candidates_stay_out_of_the_cache)
{
    rig r;
    listener l = {.stop_after = 3 * CLCONV_MAX_STEPS};
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, &l);
    open_rig(&r);
    replace_plan(&r, &options);
    cr_assert_eq(l.last.trials, l.stop_after);
    rig_close(&r);
    /* Of two plans: the one that every rig makes, and the one found. */
    cr_assert_leq(cache_dir_count(&dir), 2 * CLCONV_MAX_STEPS);
}

Test(find, the_callback_stops_it)
{
    rig r;
    open_rig(&r);
    for (int calls = 1; calls <= 3; ++calls) {
        listener l = {.stop_after = calls};
        clconv_plan_options options = options_of(CLCONV_PLAN_FIND, &l);
        replace_plan(&r, &options);
        cr_assert_eq(l.calls, calls, "%d, not %d", l.calls, calls);
        clconv_tunedb_remove(r.context->tunedb,
                             clconv_tunedb_user_record(r.context->tunedb, 0));
    }
    rig_close(&r);
}

Test(find, the_workspace_is_honoured)
{
    rig r;
    listener l = {0};
    open_rig(&r);
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, &l);
    options.max_workspace = SIZE_MAX;
    replace_plan(&r, &options);
    size_t whole = 0, part = 0;
    clconv_plan_workspace_size(r.plan, &whole);
    cr_assert_gt(whole, 0, "%s", rig_explain(r.plan, "plan: "));
    l = (listener){0};
    options.max_workspace = whole - 1;
    replace_plan(&r, &options);
    cr_assert_gt(l.calls, 0);
    clconv_plan_workspace_size(r.plan, &part);
    cr_assert_lt(part, whole);
    /* Its record fits both. */
    l = (listener){0};
    options.max_workspace = SIZE_MAX;
    replace_plan(&r, &options);
    cr_assert_eq(l.calls, 0);
    options.max_workspace = 0;
    clconv_plan *plan = NULL;
    cr_assert_eq(create(&r, &options, &plan), CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "max_workspace is 0"), "%s",
                       clconv_last_error());
    cr_assert_null(plan);
    rig_close(&r);
}

Test(find, part_of_the_outputs_is_found_by_itself)
{
    rig r;
    open_rig(&r);
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, NULL);
    for (unsigned ops = 1; ops <= CLCONV_OP_BACKWARD; ++ops) {
        clconv_plan_release(r.plan);
        cr_assert_eq(
            clconv_plan_create(r.context, &r.desc, ops, &options, &r.plan),
            CLCONV_OK, "ops %u: %s", ops, clconv_last_error());
        rig_fill_outputs(&r, NAN);
        r.args.dw.mem = ops & CLCONV_OP_DW ? r.mem[RIG_DW] : NULL;
        r.args.db.mem = ops & CLCONV_OP_DB ? r.mem[RIG_DB] : NULL;
        r.args.dx.mem = ops & CLCONV_OP_DX ? r.mem[RIG_DX] : NULL;
        rig_run(&r);
        rig_expect(&r, ops, 1);
    }
    rig_close(&r);
}

/* ---- Threads ----------------------------------------------------------- */

typedef struct job {
    const rig *rig;
    clconv_plan *plan;
    clconv_status status;
} job;

static void *find_in_thread(void *user)
{
    job *j = user;
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, NULL);
    j->status = create(j->rig, &options, &j->plan);
    return NULL;
}

Test(find, two_threads_find_the_same_at_once)
{
    rig r;
    pthread_t threads[2];
    job jobs[2] = {{&r, NULL, CLCONV_OK}, {&r, NULL, CLCONV_OK}};
    open_rig(&r);
    for (int i = 0; i < 2; ++i)
        cr_assert_eq(
            pthread_create(&threads[i], NULL, find_in_thread, &jobs[i]), 0);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; ++i) {
        cr_assert_eq(jobs[i].status, CLCONV_OK, "%d", i);
        clconv_plan_release(r.plan);
        r.plan = jobs[i].plan;
        rig_fill_outputs(&r, NAN);
        rig_run(&r);
        rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    }
    cr_assert_not_null(clconv_tunedb_user_record(r.context->tunedb, 0));
    cr_assert_null(clconv_tunedb_user_record(r.context->tunedb, 1));
    rig_close(&r);
}

/* ---- The other modes --------------------------------------------------- */

Test(find, tuned_takes_what_find_has_left)
{
    rig r;
    clconv_plan *plan = NULL;
    clconv_plan_options tuned = options_of(CLCONV_PLAN_TUNED, NULL);
    clconv_plan_options find = options_of(CLCONV_PLAN_FIND, NULL);
    open_rig(&r);
    cr_assert_eq(create(&r, &tuned, &plan), CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "clconv-tune"), "%s",
                       clconv_last_error());
    cr_assert_not_null(strstr(clconv_last_error(), problem), "%s",
                       clconv_last_error());
    cr_assert_null(plan);
    replace_plan(&r, &find);
    replace_plan(&r, &tuned);
    rig_close(&r);
}

Test(find, instant_plans_are_generic_whatever_is_known)
{
    rig r;
    clconv_plan_options instant = options_of(CLCONV_PLAN_INSTANT, NULL);
    clconv_plan_options find = options_of(CLCONV_PLAN_FIND, NULL);
    open_rig(&r);
    for (int known = 0; known < 2; ++known) {
        replace_plan(&r, &instant);
        const char *text = rig_explain(r.plan, "plan: ");
        cr_assert_not_null(strstr(text, "bwd_data_generic"), "%s", text);
        cr_assert_not_null(strstr(text, "bwd_weight_generic"), "%s", text);
        text = rig_explain(r.plan, "step 2");
        cr_assert_not_null(strstr(text, "compiles fastest"), "%s", text);
        replace_plan(&r, &find);
    }
    rig_close(&r);
}

Test(find, offline_nothing_is_measured)
{
    rig r;
    clconv_plan *plan = NULL;
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, NULL);
    open_rig(&r);
    r.context->offline = true;
    cr_assert_eq(create(&r, &options, &plan), CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "CLCONV_OFFLINE"), "%s",
                       clconv_last_error());
    cr_assert_null(plan);
    rig_close(&r);
}

/* ---- Options ----------------------------------------------------------- */

Test(find, options_are_checked)
{
    static const double seconds[] = {0, -1, NAN, INFINITY, 86401};
    rig r;
    clconv_plan *plan = NULL;
    open_rig(&r);
    clconv_plan_options options = options_of(CLCONV_PLAN_FIND, NULL);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; ++i) {
        options.find_seconds = seconds[i];
        cr_assert_eq(create(&r, &options, &plan), CLCONV_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(clconv_last_error(), "(0, 86400]"), "%s",
                           clconv_last_error());
    }
    options = options_of(CLCONV_PLAN_FIND, NULL);
    options.plan = "bwd_data_generic";
    cr_assert_eq(create(&r, &options, &plan), CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), "must be NULL"), "%s",
                       clconv_last_error());
    options.plan = NULL;
    r.desc.n = 0;
    cr_assert_eq(create(&r, &options, &plan), CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "desc.n is 0"), "%s",
                       clconv_last_error());
    cr_assert_null(plan);
    rig_close(&r);
}

Test(find, an_older_struct_has_the_defaults)
{
    rig r;
    open_rig(&r);
    clconv_plan_options options;
    memset(&options, 0xFF, sizeof options);
    options.struct_size = offsetof(clconv_plan_options, find_seconds);
    options.mode = CLCONV_PLAN_DEFAULT;
    options.plan = NULL;
    replace_plan(&r, &options);
    clconv_plan_options_init(&options);
    cr_assert_eq(options.find_seconds, 10);
    cr_assert(!options.find_progress && !options.find_user);
    rig_close(&r);
}
