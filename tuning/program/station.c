/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "station.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cl_cache.h"
#include "cl_query.h"
#include "host.h"
#include "message.h"
#include "objects.h"

/* More processes than that gain little on a batch of candidates, and each
 * holds tensors on the device. */
#define JOBS_MAX_DEFAULT 16

/* A whole judgement is dozens of calls, each also in fp64. */
#define CHECK_LIMITS 10

/* ---- Records ----------------------------------------------------------- */

static void say_warning(clconv_log_level level, const char *message, void *user)
{
    (void)user;
    if (level == CLCONV_LOG_WARNING)
        message_warning("%s", message);
}

const clconv_log station_log = {say_warning, NULL};

int station_open(const tune_options *o, station *out)
{
    station s = {.options = o};
    if (!places_open(o->cache_dir, &s.places))
        return EXIT_FAILURE;
    s.records = clconv_tunedb_new(s.places.cache, &station_log);
    if (!s.records) {
        message_error("out of memory");
        places_close(&s.places);
        return EXIT_FAILURE;
    }
    *out = s;
    return EXIT_SUCCESS;
}

/* ---- The device -------------------------------------------------------- */

/* As the library has it: some facts are found by running a program. */
static bool ask_facts(const host *h, station *s)
{
    clconv_context *context = NULL;
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = s->places.cache;
    options.log = say_warning;
    if (clconv_context_create(h->context, h->device, &options, &context)) {
        message_error("%s", clconv_last_error());
        return false;
    }
    s->device = context->device;
    clconv_context_release(context);
    return true;
}

static bool ask_device(const host *h, station *s)
{
    if (!ask_facts(h, s))
        return false;
    snprintf(s->label, sizeof s->label, "%s / %s", h->platform_name,
             h->device_name);
    s->is_cpu = h->is_cpu;
    s->compiles_late = clconv_query_compiles_late(h->device);
    s->prefix = clconv_cache_prefix(h->device);
    if (!s->prefix)
        message_error("out of memory");
    return s->prefix != NULL;
}

int station_find_device(station *s)
{
    host h;
    switch (host_open(s->options->device, HOST_IN_ORDER, &h)) {
    case HOST_OK: break;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
    bool ok = ask_device(&h, s);
    host_close(&h);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- Processes that try candidates ------------------------------------- */

/* Where drivers (PoCL, NVIDIA's, Mesa) and the library keep programs. */
static const char *const cache_variables[] = {
    "POCL_CACHE_DIR", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR",
    "CLCONV_CACHE_DIR"};

enum { CACHES = sizeof cache_variables / sizeof cache_variables[0] };

static bool make_settings(station *s)
{
    int count = 0;
    for (int i = 0; i < CACHES; ++i) {
        clconv_text setting = CLCONV_TEXT_EMPTY;
        clconv_text_printf(&setting, "%s=%s", cache_variables[i],
                           s->places.programs);
        s->settings[count] = clconv_text_take(&setting);
        if (!s->settings[count++])
            return false;
    }
    if (s->is_cpu)
        s->settings[count] = strdup("POCL_AFFINITY=1");
    return !s->is_cpu || s->settings[count];
}

static int count_jobs(const tune_options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->jobs)
        return o->jobs;
    if (cores < 1)
        return 1;
    return cores < JOBS_MAX_DEFAULT ? (int)cores : JOBS_MAX_DEFAULT;
}

/*
 * A worker that times takes from the run's directory what others compiled. A
 * driver that compiles late has its own cache for that, and would compile again
 * to hand out a binary.
 */
static pool_rules make_rules(const station *s)
{
    return (pool_rules){
        .program = s->program,
        .device = s->label,
        .run_dir = s->places.run,
        .name = "worker",
        .cache_dir = s->compiles_late ? "" : s->places.programs,
        .inject = s->options->inject_text,
        .settings = (const char *const *)s->settings,
        .jobs = s->jobs,
        .limit = s->options->limit,
    };
}

static bool start_workers(station *s)
{
    pool_rules rules = make_rules(s);
    s->workers = pool_new(&rules);
    return s->workers != NULL;
}

static bool open_journal(station *s)
{
    char *path = journal_path(s->places.tune, &s->device);
    s->journal = path ? journal_open(path) : NULL;
    free(path);
    if (s->journal && journal_skipped(s->journal) > 0)
        message_warning("%d lines of the journal are damaged and were skipped",
                        journal_skipped(s->journal));
    return s->journal != NULL;
}

bool station_start(station *s, const char *argv0)
{
    if (!places_begin_run(&s->places) || !make_settings(s))
        return false;
    s->jobs = count_jobs(s->options);
    s->program = places_program(argv0);
    s->check_program =
        s->program ? places_beside(s->program, "clconv-check") : NULL;
    s->check_log = places_join(s->places.run, "check.log");
    if (!s->check_program || !s->check_log) {
        message_error("out of memory");
        return false;
    }
    return open_journal(s) && start_workers(s);
}

/* ---- Winners ----------------------------------------------------------- */

static void judge_by_worker(station *s, const clconv_problem *problem,
                            unsigned ops, const char *plan, clconv_trial *trial)
{
    clconv_trial judged = trial_failed(CLCONV_TRIAL_FAILED, "no memory");
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_problem_format(problem, &text);
    if (!text.failed)
        pool_judge(s->workers, text.data, ops, plan, &judged);
    clconv_text_free(&text);
    trial->outcome = judged.outcome;
    memcpy(trial->why, judged.why, sizeof trial->why);
}

void station_judge(station *s, const clconv_problem *problem, unsigned ops,
                   const char *plan, clconv_trial *trial)
{
    const check_rules rules = {
        .program = s->check_program,
        .device = s->label,
        .log = s->check_log,
        .settings = (const char *const *)s->settings,
        .limit = CHECK_LIMITS * s->options->limit,
    };
    if (check_run(&rules, problem, plan, trial))
        return;
    message_warning("%s; judged by this library's fp32 kernels instead",
                    trial->why);
    judge_by_worker(s, problem, ops, plan, trial);
}

/* Its workers have the user's caches. */
static pool *new_keeper(const station *s)
{
    static const char *const no_settings[] = {NULL};
    pool_rules rules = make_rules(s);
    rules.name = "keeper";
    rules.cache_dir = s->places.cache;
    rules.settings = no_settings;
    rules.inject = NULL;
    return pool_new(&rules);
}

bool station_keep_programs(const station *s, const pool_task *tasks, int count)
{
    clconv_trial *trials = calloc((size_t)count + 1, sizeof *trials);
    pool *keeper = trials ? new_keeper(s) : NULL;
    bool ok = keeper != NULL;
    if (keeper)
        pool_keep(keeper, tasks, count, trials);
    pool_free(keeper);
    for (int i = 0; keeper && i < count; ++i) {
        if (trials[i].outcome == CLCONV_TRIAL_OK)
            continue;
        message_warning("%s: its programs could not be kept: %s",
                        tasks[i].problem, trials[i].why);
        ok = false;
    }
    free(trials);
    return ok;
}

/* ---- The end ----------------------------------------------------------- */

void station_close(station *s)
{
    pool_free(s->workers);
    journal_close(s->journal);
    clconv_tunedb_free(s->records);
    for (int i = 0; i < STATION_MAX_SETTINGS; ++i)
        free(s->settings[i]);
    free(s->check_log);
    free(s->check_program);
    free(s->program);
    free(s->prefix);
    places_close(&s->places);
}
