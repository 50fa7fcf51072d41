/*
 * Source with instructions for sm_90a: compiled, retargeted, and built again.
 * The linker sends two of OpenCL's functions through this file, which plays a
 * compiler to PTX.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cache_dir.h"
#include "cl_build.h"
#include "cl_cache.h"
#include "host.h"

static const char source[] = "// //@@\n__kernel void compiled() {}\n";
static const char ptx[] = ".version 9.0\n.target sm_90\n//@@wgmma.fence;\n";
static const char ptx_90a[] = ".version 9.0\n.target sm_90a\nwgmma.fence;\n";

static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

/* ---- The driver that is played ------------------------------------------ */

/* Its binaries are PTX, and it makes a program of this source from such a
 * binary; NULL: it refuses it. */
typedef struct driver {
    bool is_played;
    const char *retargeted_source;
    cl_program retargeted; /* the latest */
    char taken[256];       /* the latest binary */
    size_t taken_size;
    int shown; /* binaries */
} driver;

static driver played;

cl_int __real_clGetProgramInfo(cl_program program, cl_program_info name,
                               size_t size, void *value, size_t *size_ret);
cl_int __wrap_clGetProgramInfo(cl_program program, cl_program_info name,
                               size_t size, void *value, size_t *size_ret);

cl_int __wrap_clGetProgramInfo(cl_program program, cl_program_info name,
                               size_t size, void *value, size_t *size_ret)
{
    const char *text = program == played.retargeted ? ptx_90a : ptx;
    size_t bytes = strlen(text) + 1;
    if (!played.is_played ||
        (name != CL_PROGRAM_BINARY_SIZES && name != CL_PROGRAM_BINARIES))
        return __real_clGetProgramInfo(program, name, size, value, size_ret);
    if (name == CL_PROGRAM_BINARY_SIZES)
        memcpy(value, &bytes, sizeof bytes);
    else
        memcpy(*(char **)value, text, bytes);
    played.shown += name == CL_PROGRAM_BINARIES;
    return CL_SUCCESS;
}

cl_program __real_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                            const cl_device_id *devices,
                                            const size_t *sizes,
                                            const unsigned char **binaries,
                                            cl_int *status, cl_int *error);
cl_program __wrap_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                            const cl_device_id *devices,
                                            const size_t *sizes,
                                            const unsigned char **binaries,
                                            cl_int *status, cl_int *error);

cl_program __wrap_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                            const cl_device_id *devices,
                                            const size_t *sizes,
                                            const unsigned char **binaries,
                                            cl_int *status, cl_int *error)
{
    if (!played.is_played)
        return __real_clCreateProgramWithBinary(context, count, devices, sizes,
                                                binaries, status, error);
    played.taken_size = sizes[0];
    snprintf(played.taken, sizeof played.taken, "%s", (const char *)binaries[0]);
    *error = CL_INVALID_BINARY;
    if (!played.retargeted_source)
        return NULL;
    played.retargeted = clCreateProgramWithSource(
        context, 1, &played.retargeted_source, NULL, error);
    return played.retargeted;
}

static void play(const char *retargeted_source)
{
    played = (driver){.is_played = true, .retargeted_source = retargeted_source};
}

/* ---- Building ----------------------------------------------------------- */

static void expect_kernel(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    cr_assert_not_null(kernel, "%s: %d", name, error);
    clReleaseKernel(kernel);
}

static host open_host(void)
{
    host h;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    return h;
}

static clconv_status build(const host *h, const char *text, cl_program *out)
{
    return clconv_build_source(h->context, h->device, "marked", text, &logger,
                               out);
}

Test(retarget, the_retargeted_program_is_the_one_to_get)
{
    host h = open_host();
    cl_program program = NULL;
    play("__kernel void retargeted() {}");
    cr_assert_eq(build(&h, source, &program), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_eq(program, played.retargeted);
    expect_kernel(program, "retargeted");
    cr_assert_str_eq(played.taken, ptx_90a);
    cr_assert_eq(played.taken_size, sizeof ptx_90a);
    clReleaseProgram(program);
    host_close(&h);
}

Test(retarget, source_without_marks_is_compiled_once)
{
    host h = open_host();
    cl_program program = NULL;
    play(NULL);
    cr_assert_eq(build(&h, "__kernel void compiled() {}", &program), CLCONV_OK,
                 "%s", clconv_last_error());
    cr_assert_eq(played.shown, 0);
    expect_kernel(program, "compiled");
    clReleaseProgram(program);
    host_close(&h);
}

static void expect_failure(const char *why)
{
    host h = open_host();
    cl_program program = NULL;
    cr_assert_eq(build(&h, source, &program), CLCONV_BUILD_FAILED);
    cr_assert_null(program);
    cr_assert_eq(strncmp(clconv_last_error(), "kernel marked", 13), 0, "%s",
                 clconv_last_error());
    cr_assert_not_null(strstr(clconv_last_error(), why), "\"%s\" in \"%s\"",
                       why, clconv_last_error());
    host_close(&h);
}

Test(retarget, a_second_build_that_fails_shows_what_the_compiler_said)
{
    play("__kernel void retargeted() { no_such_name = 1; }");
    expect_failure("no_such_name");
    cr_assert_not_null(strstr(warnings.last, "no_such_name"), "%s",
                       warnings.last);
}

Test(retarget, a_driver_may_refuse_ptx)
{
    play(NULL);
    expect_failure("CL_INVALID_BINARY");
}

/* Elsewhere than on an sm_90, or of a comment alone. */
Test(retarget, other_binaries_are_refused)
{
    expect_failure("what the compiler made for sm_90");
}

/* ---- The cache ---------------------------------------------------------- */

static clconv_cache *open_cache(const host *h, const cache_dir *dir)
{
    const clconv_cache_options options = {dir->path, CLCONV_CACHE_ALL, false};
    clconv_cache *cache = NULL;
    cr_assert_eq(
        clconv_cache_new(h->context, h->device, &options, &logger, &cache),
        CLCONV_OK, "%s", clconv_last_error());
    return cache;
}

/* The program, from where it should come, and left on disk. */
static void use_program(const host *h, const cache_dir *dir, clconv_origin want)
{
    const clconv_source marked = {"marked", "any problem", source};
    clconv_cache *cache = open_cache(h, dir);
    clconv_origin origin;
    cl_program program = NULL;
    cr_assert_eq(clconv_cache_program(cache, &marked, &origin, &program),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(origin, want, "from %s", clconv_origin_name(origin));
    cr_assert_str_eq(played.taken, ptx_90a);
    expect_kernel(program, "retargeted");
    clconv_cache_refresh(cache, program);
    clReleaseProgram(program);
    clconv_cache_free(cache);
}

Test(retarget, what_is_stored_is_not_retargeted_again)
{
    cache_dir dir;
    cache_dir_make(&dir);
    host h = open_host();
    play("__kernel void retargeted() {}");
    use_program(&h, &dir, CLCONV_ORIGIN_BUILT);
    cr_assert_eq(cache_dir_count(&dir), 1);
    play("__kernel void retargeted() {}");
    use_program(&h, &dir, CLCONV_ORIGIN_DISK);
    cr_assert_eq(played.shown, 0);
    host_close(&h);
    cache_dir_remove(&dir);
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}
