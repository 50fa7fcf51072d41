/*
 * Plans without a compiler: from the programs on disk alone, CLCONV_OFFLINE.
 * The linker sends two of OpenCL's functions through this file, which counts
 * compilations and plays devices that are not at hand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle.h"
#include "cache_dir.h"
#include "cl_query.h"
#include "mounts.h"
#include "objects.h"
#include "rig.h"

static const char problem[] = "n2c3h6w5k4r3s2p1";

static cache_dir dir, other_dir, driver_cache, empty_driver_cache;
static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

static void set_up(void)
{
    cache_dir_make(&dir);
    cache_dir_make(&other_dir);
    cache_dir_make(&driver_cache);
    cache_dir_make(&empty_driver_cache);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
    cache_dir_remove(&other_dir);
    cache_dir_remove(&driver_cache);
    cache_dir_remove(&empty_driver_cache);
}

TestSuite(offline, .init = set_up, .fini = tear_down);

/* ---- Between the library and the driver --------------------------------- */

static int sources; /* given to the compiler */

cl_program __real_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths,
                                            cl_int *error);
cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths,
                                            cl_int *error);

cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths, cl_int *error)
{
    ++sources;
    return __real_clCreateProgramWithSource(context, count, strings, lengths,
                                            error);
}

/* What the driver says in place of the truth; name 0: the truth. */
typedef struct pretence {
    cl_device_info name;
    const void *value;
    size_t size;
} pretence;

static pretence pretended;
static const cl_bool no = CL_FALSE;
static const pretence no_compiler = {CL_DEVICE_COMPILER_AVAILABLE, &no,
                                     sizeof no};
static const char driver[] = "a later one";
static const pretence later_driver = {CL_DRIVER_VERSION, driver, sizeof driver};
static const char version[] = "OpenCL 9.9 of tomorrow";
static const pretence later_version = {CL_DEVICE_VERSION, version,
                                       sizeof version};

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret);
cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret);

cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret)
{
    if (name != pretended.name)
        return __real_clGetDeviceInfo(device, name, size, value, size_ret);
    if (value && size < pretended.size)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, pretended.value, pretended.size);
    if (size_ret)
        *size_ret = pretended.size;
    return CL_SUCCESS;
}

/* ---- A life with a directory --------------------------------------------- */

static clconv_context_options options_for(const cache_dir *d)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = d->path;
    options.cache_policy = CLCONV_CACHE_ALL;
    options.emulate_unit = "none"; /* no programs but plans' */
    options.log = cache_log_write;
    options.log_user = &warnings;
    return options;
}

/* Plan, call, right results; how many programs were compiled. */
static int live(const cache_dir *d)
{
    rig r;
    clconv_context_options options = options_for(d);
    int before = sources;
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
    return sources - before;
}

/* A rig, and a context and perhaps a plan beside it that are made offline. */
typedef struct outing {
    rig rig;
    clconv_context *context;
    clconv_plan *plan;
} outing;

static clconv_status go(outing *o, clconv_log_fn log, void *user)
{
    clconv_context_options options = options_for(&dir);
    options.cache_dir = "";
    *o = (outing){.context = NULL};
    rig_open(&o->rig, HOST_IN_ORDER, problem, &options);
    options.cache_dir = dir.path;
    options.log = log;
    options.log_user = user;
    sources = 0;
    setenv("CLCONV_OFFLINE", "1", 1);
    cr_assert_eq(clconv_context_create(o->rig.host.context, o->rig.host.device,
                                       &options, &o->context),
                 CLCONV_OK, "%s", clconv_last_error());
    unsetenv("CLCONV_OFFLINE"); /* it is read once */
    return clconv_plan_create(o->context, &o->rig.desc, CLCONV_OP_BACKWARD,
                              NULL, &o->plan);
}

static void come_back(outing *o)
{
    clconv_plan_release(o->plan);
    clconv_context_release(o->context);
    rig_close(&o->rig);
}

/* ---- There or not there -------------------------------------------------- */

Test(offline, a_program_that_is_not_there_fails_with_what_to_do)
{
    static const char *const parts[] = {"kernel ", problem, "CLCONV_OFFLINE",
                                        "clconv-tune", "clconv-tune import"};
    outing o;
    cr_assert_eq(go(&o, cache_log_write, &warnings), CLCONV_BUILD_FAILED);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        cr_assert_not_null(strstr(clconv_last_error(), parts[i]),
                           "no %s in: %s", parts[i], clconv_last_error());
    cr_assert_null(o.plan);
    cr_assert_eq(sources, 0);
    come_back(&o);
}

/* Keeps the line that counts programs. */
static void keep_programs(clconv_log_level level, const char *message,
                          void *user)
{
    if (level == CLCONV_LOG_INFO && strncmp(message, "programs: ", 10) == 0)
        snprintf(user, 256, "%s", message);
}

Test(offline, programs_come_from_disk_and_are_counted)
{
    char logged[256] = "", want[256];
    int programs = live(&dir);
    outing o;
    cr_assert_eq(go(&o, keep_programs, logged), CLCONV_OK, "%s",
                 clconv_last_error());
    snprintf(want, sizeof want, "programs: %d from disk, 0 built from source",
             programs);
    cr_assert_str_eq(logged, want);
    cr_assert_str_eq(rig_explain(o.plan, "programs: "), want);
    cr_assert_eq(clconv_enqueue_backward(o.plan, o.rig.host.queue, &o.rig.args,
                                         0, NULL, NULL),
                 CLCONV_OK, "%s", clconv_last_error());
    host_finish(&o.rig.host);
    rig_expect(&o.rig, CLCONV_OP_BACKWARD, 1);
    cr_assert_eq(sources, 0);
    come_back(&o);
}

/* As of a cache that was made for a whole system. */
Test(offline, programs_come_from_a_directory_that_cannot_be_written)
{
    if (!mounts_enter())
        cr_skip_test("nothing can be mounted here");
    cr_assert_gt(live(&dir), 0);
    mounts_read_only(dir.path);
    cr_assert_eq(live(&dir), 0);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    mounts_end(dir.path);
}

/* ---- Other devices -------------------------------------------------------- */

static host_result open_without_compiler(const char *offline)
{
    host h = {.queue = NULL};
    pretended = no_compiler;
    setenv("CLCONV_OFFLINE", offline, 1);
    host_result result = host_open(NULL, HOST_IN_ORDER, &h);
    pretended.name = 0;
    host_close(&h);
    return result;
}

static clconv_status create_without_compiler(const char *offline)
{
    host h;
    clconv_context *context = NULL;
    clconv_context_options options = options_for(&dir);
    setenv("CLCONV_OFFLINE", "", 1);
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    pretended = no_compiler;
    setenv("CLCONV_OFFLINE", offline, 1);
    clconv_status status =
        clconv_context_create(h.context, h.device, &options, &context);
    clconv_context_release(context);
    pretended.name = 0;
    host_close(&h);
    return status;
}

Test(offline, a_device_without_a_compiler_is_taken_offline_alone)
{
    cr_assert_eq(create_without_compiler("1"), CLCONV_OK, "%s",
                 clconv_last_error());
    for (int i = 0; i < 2; ++i) { /* both count as not set */
        cr_assert_eq(create_without_compiler(i ? "0" : ""), CLCONV_UNSUPPORTED);
        cr_assert_not_null(strstr(clconv_last_error(), "has no compiler"), "%s",
                           clconv_last_error());
    }
}

/* By the programs, too, which must open it to import what was made elsewhere. */
Test(offline, a_host_without_a_compiler_is_opened_offline_alone)
{
    cr_assert_eq(open_without_compiler("1"), HOST_OK);
    cr_assert_eq(open_without_compiler("0"), HOST_NO_DEVICE);
    cr_assert_eq(open_without_compiler(""), HOST_NO_DEVICE);
}

Test(offline, programs_of_another_driver_or_device_are_not_used)
{
    static const pretence *const others[] = {&later_driver, &later_version};
    int programs = live(&dir);
    cr_assert_gt(programs, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        pretended = *others[i];
        cr_assert_eq(live(&dir), programs, "other %zu", i);
        cr_assert_eq(live(&dir), 0, "other %zu", i);
        pretended.name = 0;
        cr_assert_eq(live(&dir), 0, "the first's are gone, other %zu", i);
    }
    cr_assert_eq(cache_dir_count(&dir), 3 * programs);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

/* ---- Taken along ---------------------------------------------------------- */

/* A fresh process with that cache of the driver; what body returns. */
static int in_process(int (*body)(void), const cache_dir *cache)
{
    int status;
    pid_t child = fork(); /* this process never touches OpenCL itself */
    if (child == 0) {
        setenv("POCL_CACHE_DIR", cache->path, 1);
        setenv("CUDA_CACHE_PATH", cache->path, 1);
        setenv("MESA_SHADER_CACHE_DIR", cache->path, 1);
        int result = body();
        _exit(warnings.warnings ? 100 + warnings.warnings : result);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "0x%x", (unsigned)status);
    return WEXITSTATUS(status);
}

static int live_here(void)
{
    return live(&dir);
}

static int live_there_offline(void)
{
    setenv("CLCONV_OFFLINE", "1", 1);
    return live(&other_dir);
}

/* Through a file from one directory to the other: programs that arrived. */
static int carry_over(void)
{
    host h;
    clconv_device device;
    clconv_bundle_counts out, in;
    char file[600];
    snprintf(file, sizeof file, "%s/all.bundle", dir.path);
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    cr_assert_eq(clconv_query_device(h.context, h.device, false, &device),
                 CLCONV_OK);
    char *prefix = clconv_cache_prefix(h.device);
    clconv_bundle_place here = {dir.path, &device, prefix};
    clconv_bundle_place there = {other_dir.path, &device, prefix};
    cr_assert_eq(clconv_bundle_write(&here, &logger, file, &out), CLCONV_OK);
    cr_assert_eq(clconv_bundle_read(file, &there, &logger, &in), CLCONV_OK);
    cr_assert_eq(in.programs, out.programs);
    cr_assert_eq(in.foreign + out.foreign, 0);
    free(prefix);
    host_close(&h);
    return in.programs;
}

Test(offline, programs_that_were_exported_and_imported_run_elsewhere)
{
    int programs = in_process(live_here, &driver_cache);
    cr_assert_gt(programs, 0);
    cr_assert_eq(in_process(carry_over, &driver_cache), programs);
    cr_assert_eq(in_process(live_there_offline, &empty_driver_cache), 0);
}
