/*
 * Compiled programs over contexts and processes. What becomes of damaged
 * files as such: see unit/test_cache.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amount.h"
#include "cache_dir.h"
#include "cl_build.h"
#include "cl_query.h"
#include "objects.h"
#include "rig.h"
#include "store.h"

static const char problem[] = "n2c3h6w5k4r3s2p1";

static cache_dir dir;
static cache_log warnings;

static void set_up(void)
{
    cache_dir_make(&dir);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(runtime_cache, .init = set_up, .fini = tear_down);

static clconv_context_options options_for(const char *path)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = path;
    options.cache_policy = CLCONV_CACHE_ALL;
    options.log = cache_log_write;
    options.log_user = &warnings;
    return options;
}

/* One life of a context with that directory: plan, call, right results.
 * Returns how many programs were compiled from source. */
static int live(const char *path)
{
    rig r;
    clconv_context_options options = options_for(path);
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    int builds = clconv_cache_builds(r.context->cache);
    rig_close(&r);
    return builds;
}

/* The same with a plan of one program, for dbias, and with something done
 * between the making of the context and the plan. */
static int live_with_one_program(void (*between)(void))
{
    rig r;
    clconv_context_options options = options_for("");
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    clconv_context *context;
    clconv_plan *plan;
    options = options_for(dir.path);
    cr_assert_eq(clconv_context_create(r.host.context, r.host.device, &options,
                                       &context),
                 CLCONV_OK);
    if (between)
        between();
    cr_assert_eq(clconv_plan_create(context, &r.desc, CLCONV_OP_DB, NULL, &plan),
                 CLCONV_OK, "%s", clconv_last_error());
    r.args.dw.mem = r.args.dx.mem = NULL;
    cr_assert_eq(
        clconv_enqueue_backward(plan, r.host.queue, &r.args, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&r.host);
    rig_expect(&r, CLCONV_OP_DB, 1);
    int builds = clconv_cache_builds(context->cache);
    clconv_plan_release(plan);
    clconv_context_release(context);
    rig_close(&r);
    return builds;
}

Test(runtime_cache, a_second_context_compiles_nothing)
{
    int first = live(dir.path);
    cr_assert_gt(first, 0);
    cr_assert_eq(cache_dir_count(&dir), first);
    cr_assert_eq(live(dir.path), 0);
    cr_assert_eq(cache_dir_count(&dir), first);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(runtime_cache, explain_tells_where_a_program_came_from)
{
    live(dir.path);
    rig r;
    clconv_context_options options = options_for(dir.path);
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    cr_assert_not_null(strstr(rig_explain(r.plan, "step 1"), "program disk"),
                       "%s", rig_explain(r.plan, "step 1"));
    rig_close(&r);
    options.cache_dir = "";
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    cr_assert_not_null(strstr(rig_explain(r.plan, "step 1"), "program built"),
                       "%s", rig_explain(r.plan, "step 1"));
    rig_close(&r);
}

/* Counts the messages that tell of a compiled program. */
static void count_built(clconv_log_level level, const char *message, void *user)
{
    int *built = user;
    *built += level == CLCONV_LOG_INFO && strstr(message, "program built");
}

Test(runtime_cache, the_log_tells_of_each_program_that_was_compiled)
{
    rig r;
    int built = 0;
    clconv_context_options options = options_for("");
    options.emulate_unit = "none"; /* no program but the plan's */
    options.log = count_built;
    options.log_user = &built;
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    cr_assert_gt(built, 0);
    cr_assert_eq(built, clconv_cache_builds(r.context->cache));
    rig_close(&r);
}

typedef struct life {
    int builds;  /* programs compiled from source */
    int marks;   /* entries without bytes, afterwards */
    int entries; /* all of them */
    bool late;
} life;

static bool count_mark(void *user, const clconv_program_file *entry)
{
    life *l = user;
    l->marks += entry->size == 0;
    l->entries++;
    return true;
}

static void count_entries(life *l)
{
    const clconv_log log = {cache_log_write, &warnings};
    clconv_store *s = clconv_store_new(dir.path, &log);
    cr_assert_not_null(s);
    cr_assert(clconv_store_each(s, "", count_mark, l));
    clconv_store_free(s);
}

/* One life of a context with the default policy. */
static life live_thriftily(bool call)
{
    rig r;
    clconv_context_options options = options_for(dir.path);
    options.cache_policy = CLCONV_CACHE_CHEAP;
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    if (call) {
        rig_run(&r);
        rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    }
    life l = {.builds = clconv_cache_builds(r.context->cache),
              .late = clconv_query_compiles_late(r.host.device)};
    rig_close(&r);
    count_entries(&l);
    return l;
}

/* Where a binary costs a second compilation it is not stored unasked until
 * the program comes back. */
Test(runtime_cache, by_default_costly_binaries_are_stored_at_their_second_use)
{
    life first = live_thriftily(true), second = live_thriftily(true);
    life third = live_thriftily(true);
    int programs = first.builds;
    cr_assert_gt(programs, 0);
    cr_assert_eq(first.entries, programs);
    cr_assert_eq(first.marks, first.late ? programs : 0);
    cr_assert_eq(second.builds, first.late ? programs : 0);
    cr_assert_eq(second.marks, 0);
    cr_assert_eq(third.builds, 0);
    cr_assert_eq(third.entries, programs);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(runtime_cache, a_program_that_is_not_launched_is_not_in_use)
{
    life first = live_thriftily(false);
    cr_assert_eq(first.marks, 0);
    cr_assert_eq(first.entries, first.late ? 0 : first.builds);
}

Test(runtime_cache, plans_of_one_context_are_one_use)
{
    rig r;
    clconv_context_options options = options_for(dir.path);
    options.cache_policy = CLCONV_CACHE_CHEAP;
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    for (int i = 0; i < 3; ++i) {
        rig_run(&r);
        clconv_plan_release(r.plan);
        cr_assert_eq(clconv_plan_create(r.context, &r.desc, CLCONV_OP_BACKWARD,
                                        NULL, &r.plan),
                     CLCONV_OK);
    }
    life l = {.builds = clconv_cache_builds(r.context->cache),
              .late = clconv_query_compiles_late(r.host.device)};
    rig_close(&r);
    count_entries(&l);
    cr_assert_eq(l.marks, l.late ? l.builds : 0);
    cr_assert_eq(l.entries, l.builds);
}

/* ---- Where ------------------------------------------------------------- */

Test(runtime_cache, a_cache_policy_that_is_none_is_refused)
{
    host h;
    clconv_context *context = NULL;
    clconv_context_options options = options_for(dir.path);
    options.cache_policy = (clconv_cache_policy)2;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    cr_assert_eq(clconv_context_create(h.context, h.device, &options, &context),
                 CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), "options.cache_policy"));
    cr_assert_null(context);
    host_close(&h);
}

Test(runtime_cache, an_empty_directory_name_keeps_programs_in_memory_only)
{
    setenv("CLCONV_CACHE_DIR", dir.path, 1);
    cr_assert_gt(live(""), 0);
    cr_assert_gt(live(""), 0);
    cr_assert_eq(cache_dir_count(&dir), 0);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(runtime_cache, the_environment_says_where)
{
    setenv("CLCONV_CACHE_DIR", dir.path, 1);
    int builds = live(NULL);
    cr_assert_gt(builds, 0);
    cr_assert_eq(cache_dir_count(&dir), builds);
}

Test(runtime_cache, a_directory_that_cannot_be_used_costs_one_warning)
{
    cr_assert_gt(live("/dev/null/clconv"), 0);
    cr_assert_eq(warnings.warnings, 1);
    cr_assert_not_null(strstr(warnings.last, "memory only"), "%s",
                       warnings.last);
}

Test(runtime_cache, a_directory_that_goes_away_costs_one_warning)
{
    cr_assert_eq(live_with_one_program(tear_down), 1);
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
}

Test(runtime_cache, a_damaged_entry_is_rebuilt_with_a_warning)
{
    cr_assert_eq(live_with_one_program(NULL), 1);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    cr_assert_eq(live_with_one_program(NULL), 0);

    file.data[file.size - 100] ^= 4;
    cache_file_write(&file);
    cr_assert_eq(live_with_one_program(NULL), 1);
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
    cr_assert_eq(live_with_one_program(NULL), 0, "the rebuilt one is kept");

    file.size /= 2;
    cache_file_write(&file);
    cr_assert_eq(live_with_one_program(NULL), 1);
    cr_assert_eq(warnings.warnings, 2, "%s", warnings.last);
    cache_file_free(&file);
}

/* The key of an entry, as store.c lays it out. */
static char *key_of(const cache_file *file)
{
    size_t size = (size_t)file->data[16] | (size_t)file->data[17] << 8 |
                  (size_t)file->data[18] << 16;
    char *key = calloc(1, size + 1);
    cr_assert_not_null(key);
    memcpy(key, file->data + 64, size);
    return key;
}

static void expect_in_key(const char *key, const char *name, const char *value)
{
    char line[600];
    snprintf(line, sizeof line, "%s: %s\n", name, value);
    cr_assert_not_null(strstr(key, line), "no %sin the key:\n%.1000s", line,
                       key);
}

static void expect_platform_in_key(const char *key, cl_device_id device)
{
    cl_platform_id platform = NULL;
    char text[512] = "";
    clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform,
                    NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text, text, NULL);
    expect_in_key(key, "platform", text);
    clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text, text, NULL);
    expect_in_key(key, "platform version", text);
}

/* Another driver, device or version of the library must not find it. */
Test(runtime_cache, a_key_holds_all_that_makes_another_binary)
{
    static const struct {
        const char *name;
        cl_device_info info;
    } facts[] = {
        {"device", CL_DEVICE_NAME},
        {"vendor", CL_DEVICE_VENDOR},
        {"device version", CL_DEVICE_VERSION},
        {"driver", CL_DRIVER_VERSION},
    };
    live_with_one_program(NULL);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    char *key = key_of(&file), text[512];
    host h;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; ++i) {
        clGetDeviceInfo(h.device, facts[i].info, sizeof text, text, NULL);
        expect_in_key(key, facts[i].name, text);
    }
    cl_uint units = 0;
    clGetDeviceInfo(h.device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units,
                    NULL);
    snprintf(text, sizeof text, "%u", (unsigned)units);
    expect_in_key(key, "compute units", text);
    expect_platform_in_key(key, h.device);
    expect_in_key(key, "libclconv", clconv_version());
    expect_in_key(key, "options", CLCONV_BUILD_OPTIONS);
    host_close(&h);
    free(key);
    cache_file_free(&file);
}

/* Mesa's rusticl ends the process when it is given such a binary. */
static bool survives_nonsense(void)
{
    host h;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    bool survives = strstr(h.platform_name, "rusticl") == NULL;
    host_close(&h);
    return survives;
}

Test(runtime_cache, a_binary_that_the_driver_refuses_is_rebuilt)
{
    if (!survives_nonsense())
        cr_skip_test("this driver does not refuse, it aborts");
    cr_assert_eq(live_with_one_program(NULL), 1);
    cache_file file;
    cache_dir_read_only_entry(&dir, &file);
    char *key = key_of(&file);
    cr_assert_not_null(strstr(key, "__kernel"));
    cr_assert_not_null(strstr(key, "-cl-std="));
    cr_assert_not_null(strstr(key, clconv_version()));

    const clconv_log log = {cache_log_write, &warnings};
    clconv_store *s = clconv_store_new(dir.path, &log);
    const unsigned char nonsense[] = "this is no program";
    cr_assert(clconv_store_write(s, key, nonsense, sizeof nonsense));
    clconv_store_free(s);
    cr_assert_eq(live_with_one_program(NULL), 1);
    cr_assert_eq(warnings.warnings, 1, "%s", warnings.last);
    cr_assert_not_null(strstr(warnings.last, "driver"), "%s", warnings.last);
    cr_assert_eq(live_with_one_program(NULL), 0);
    free(key);
    cache_file_free(&file);
}

Test(runtime_cache, processes_that_start_cold_together_all_succeed)
{
    enum { MOST = 64 };
    pid_t child[MOST];
    int processes = amount(8, MOST);
    for (int i = 0; i < processes; ++i) {
        child[i] = fork(); /* before this process has touched OpenCL */
        if (child[i] == 0) {
            live(dir.path);
            _exit(warnings.warnings);
        }
        cr_assert_gt(child[i], 0);
    }
    for (int i = 0; i < processes; ++i) {
        int status;
        cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "process %d: 0x%x", i, (unsigned)status);
    }
    cr_assert_eq(live(dir.path), 0);
}

typedef struct maker {
    const rig *shared;
    pthread_t thread;
    clconv_plan *plan;
    clconv_status status;
} maker;

static void *make_plan(void *argument)
{
    maker *m = argument;
    m->status = clconv_plan_create(m->shared->context, &m->shared->desc,
                                   CLCONV_OP_BACKWARD, NULL, &m->plan);
    return NULL;
}

Test(runtime_cache, threads_that_want_one_program_compile_it_once)
{
    enum { THREADS = 8 };
    rig r;
    clconv_context_options options = options_for("");
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    int builds = clconv_cache_builds(r.context->cache);
    clconv_context_release(r.context); /* a cold one; the plan keeps its own */
    cr_assert_eq(clconv_context_create(r.host.context, r.host.device, &options,
                                       &r.context),
                 CLCONV_OK);
    maker makers[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        makers[i] = (maker){.shared = &r};
        cr_assert_eq(
            pthread_create(&makers[i].thread, NULL, make_plan, &makers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(makers[i].thread, NULL);
        cr_assert_eq(makers[i].status, CLCONV_OK, "thread %d", i);
        clconv_plan_release(makers[i].plan);
    }
    cr_assert_eq(clconv_cache_builds(r.context->cache), builds);
    rig_close(&r);
}
