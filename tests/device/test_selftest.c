/*
 * Whether wgmma is used, and tensor maps with it: a device that says it is an
 * sm_90 multiplies once when a context is made. The linker sends a few functions through this file,
 * which plays that device and gives it a program that any device can run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <CL/cl_ext.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "cuda_maps.h"
#include "host.h"
#include "objects.h"
#include "selftest.h"

/* ---- The device that is played ------------------------------------------ */

/* In the self-test's place: d = a * b, or not. */
#define PROGRAM(index)                                                         \
    "__kernel void wgmma_selftest(__global const ushort *a,\n"                 \
    "    __global const ushort *b, __global float *d)\n"                       \
    "{\n"                                                                      \
    "    for (int i = get_local_id(0); i < 64 * 64; i += 128) {\n"             \
    "        const int row = i / 64, column = i % 64;\n"                       \
    "        float sum = 0;\n"                                                 \
    "        for (int k = 0; k < 64; ++k)\n"                                   \
    "            sum += vload_half(64 * row + k, (__global const half *)a) "   \
    "*\n"                                                                      \
    "                   vload_half(" index ", (__global const half *)b);\n"    \
    "        d[i] = sum;\n"                                                    \
    "    }\n"                                                                  \
    "}\n"

static const char right[] = PROGRAM("64 * k + column");
static const char transposed[] = PROGRAM("64 * column + k");
static const char broken[] = "__kernel void wgmma_selftest() { no_such = 1; }";
static const char misnamed[] = "__kernel void another() {}";

/* In the other's: loads by the maps of cuda_maps.c of the places that
 * cl_selftest_maps.c asks for. */
#define MAPS_PROGRAM(body)                                                     \
    "typedef struct { ulong word[16]; } map_t;\n"                              \
    "ushort at(__global const ushort *x, int channels, int channel,\n"         \
    "    int column, int row, int image) {\n"                                  \
    "    int inside = column >= 0 && column < 14 && row >= 0 && row < 12\n"    \
    "        && image < 10;\n"                                                 \
    "    long pixel = (image * 12 + row) * 14 + column;\n"                     \
    "    return inside ? x[pixel * channels + channel] : 0;\n"                 \
    "}\n"                                                                      \
    "__kernel void maps_selftest(__global const ushort *x,\n"                  \
    "    __global ulong *memory, map_t tiled_map, map_t im2col_map,\n"         \
    "    __global ushort *out) {\n" body "}\n"
#define BOX                                                                    \
    "for (int i = get_local_id(0); i < 8192; i += 128)\n"                      \
    "    out[i] = at(x, 64, i % 64, i / 64 % 8 - 2, i / 512 % 8 + 7,\n"        \
    "        i / 4096 + 9);\n"
#define PIXELS(tap)                                                            \
    "for (int i = get_local_id(0); i < 2048; i += 128) {\n"                    \
    "    int column = 10 + i / 32, row = 4 + column / 14;\n"                   \
    "    out[8192 + i] = at(x, 32, i % 32, column % 14 - 1,\n"                 \
    "        2 * (row % 6) - 1 + " tap ", 8 + row / 6);\n"                     \
    "}\n"

static const char loading[] = MAPS_PROGRAM(BOX PIXELS("2"));
static const char loading_nothing[] = MAPS_PROGRAM("");
static const char loading_a_box[] = MAPS_PROGRAM(BOX);
static const char loading_another_tap[] = MAPS_PROGRAM(BOX PIXELS("1"));

static cl_uint compute_capability; /* 90; 0: no device is played */
static const char *program;        /* the self-test's; NULL: the library's */
static const char *large_program;  /* where it has more than the least memory */
static const char *maps_program = loading; /* in the self-test's place */
static int sources;                        /* that were compiled */
static bool maps_work;                     /* the driver's */
static int maps_asked;                     /* how often that was asked */

bool __wrap_clconv_cuda_maps_work(clconv_map_template out[CLCONV_CUDA_SAMPLES],
                                  const clconv_log *log);

bool __wrap_clconv_cuda_maps_work(clconv_map_template out[CLCONV_CUDA_SAMPLES],
                                  const clconv_log *log)
{
    (void)log;
    ++maps_asked;
    memset(out, 0, CLCONV_CUDA_SAMPLES * sizeof *out);
    return maps_work;
}

char *__real_clconv_wgmma_selftest_source(size_t local_memory);
char *__wrap_clconv_wgmma_selftest_source(size_t local_memory);

char *__wrap_clconv_wgmma_selftest_source(size_t local_memory)
{
    if (large_program && local_memory > CLCONV_WGMMA_LEAST_MEMORY)
        return strdup(large_program);
    return program ? strdup(program)
                   : __real_clconv_wgmma_selftest_source(local_memory);
}

char *__wrap_clconv_maps_selftest_source(const clconv_selftest_load loads[2]);

char *__wrap_clconv_maps_selftest_source(const clconv_selftest_load loads[2])
{
    (void)loads;
    return strdup(maps_program);
}

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

static cl_int answer(const void *what, size_t length, size_t size, void *value,
                     size_t *size_ret)
{
    if (value && size < length)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, what, length);
    if (size_ret)
        *size_ret = length;
    return CL_SUCCESS;
}

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret);
cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret);

cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info name,
                              size_t size, void *value, size_t *size_ret)
{
    static const char vendor[] = "NVIDIA Corporation";
    const cl_uint major = compute_capability / 10;
    const cl_uint minor = compute_capability % 10;
    if (compute_capability && name == CL_DEVICE_VENDOR)
        return answer(vendor, sizeof vendor, size, value, size_ret);
    if (compute_capability && name == CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV)
        return answer(&major, sizeof major, size, value, size_ret);
    if (compute_capability && name == CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV)
        return answer(&minor, sizeof minor, size, value, size_ret);
    return __real_clGetDeviceInfo(device, name, size, value, size_ret);
}

cl_int __real_clGetPlatformInfo(cl_platform_id platform, cl_platform_info name,
                                size_t size, void *value, size_t *size_ret);
cl_int __wrap_clGetPlatformInfo(cl_platform_id platform, cl_platform_info name,
                                size_t size, void *value, size_t *size_ret);

cl_int __wrap_clGetPlatformInfo(cl_platform_id platform, cl_platform_info name,
                                size_t size, void *value, size_t *size_ret)
{
    static const char nvidia[] = "NVIDIA CUDA";
    if (compute_capability && name == CL_PLATFORM_NAME)
        return answer(nvidia, sizeof nvidia, size, value, size_ret);
    return __real_clGetPlatformInfo(platform, name, size, value, size_ret);
}

/* ---- Contexts ------------------------------------------------------------ */

static cache_dir dir;

/* Every line of the log. */
static char logged[8192];

static void keep(clconv_log_level level, const char *message, void *user)
{
    (void)level;
    (void)user;
    strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

static void set_up(void)
{
    cache_dir_make(&dir);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(selftest, .init = set_up, .fini = tear_down);

/* What a new context finds out of its device; how many programs it took. */
static clconv_device find_facts(cl_uint capability, const char *emulate,
                                int *compiled)
{
    host h;
    clconv_context_options options;
    clconv_context *context = NULL;
    clconv_context_options_init(&options);
    options.cache_dir = dir.path;
    options.cache_policy = CLCONV_CACHE_ALL;
    options.emulate_unit = emulate;
    options.log = keep;
    logged[0] = '\0';
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    compute_capability = capability;
    sources = 0;
    cr_assert_eq(clconv_context_create(h.context, h.device, &options, &context),
                 CLCONV_OK, "%s", clconv_last_error());
    clconv_device facts = context->device;
    *compiled = sources;
    clconv_context_release(context);
    compute_capability = 0;
    host_close(&h);
    return facts;
}

static unsigned find_units(cl_uint capability, const char *emulate,
                           int *compiled)
{
    return find_facts(capability, emulate, compiled).units;
}

#define MMA CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16)
#define WGMMA CLCONV_BIT(CLCONV_UNIT_WGMMA)

Test(selftest, a_right_product_makes_it_a_unit_of_the_device)
{
    int compiled;
    program = right;
    cr_assert_eq(find_units(90, NULL, &compiled), MMA | WGMMA, "%s", logged);
    cr_assert_eq(compiled, 1);
    cr_assert_null(strstr(logged, "wgmma"), "%s", logged);
}

static void expect_unused(const char *what, const char *why)
{
    int compiled;
    program = what;
    cr_assert_eq(find_units(90, NULL, &compiled), MMA, "%s", why);
    cr_assert_not_null(strstr(logged, "the matrix unit wgmma is not used with "
                                      "114688 bytes of local memory: "),
                       "%s", logged);
    cr_assert_not_null(strstr(logged, why), "\"%s\" in \"%s\"", why, logged);
}

Test(selftest, anything_else_is_a_line_in_the_log)
{
    expect_unused(transposed, "its product is");
    expect_unused(broken, "no_such");
    expect_unused(misnamed, "clCreateKernel");
}

/* The library's own program is for an sm_90 alone. */
Test(selftest, a_device_that_only_claims_to_be_one_is_found_out)
{
    host h;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    bool is_cpu = h.is_cpu;
    host_close(&h);
    if (!is_cpu)
        cr_skip_test("the device may be an sm_90");
    expect_unused(NULL, "kernel wgmma_selftest did not build");
}

Test(selftest, other_devices_and_emulated_units_cost_nothing)
{
    int compiled;
    program = right;
    cr_assert_eq(find_units(80, NULL, &compiled), MMA);
    cr_assert_eq(compiled, 0);
    cr_assert_eq(find_units(100, NULL, &compiled), MMA);
    cr_assert_eq(compiled, 0);
    cr_assert_eq(find_units(90, "none", &compiled), 0);
    cr_assert_eq(compiled, 0);
    cr_assert_eq(find_units(90, "wgmma", &compiled), WGMMA);
    cr_assert_eq(compiled, 0);
}

Test(selftest, offline_it_takes_the_stored_program_or_does_without)
{
    int compiled;
    program = right;
    setenv("CLCONV_OFFLINE", "1", 1);
    cr_assert_eq(find_units(90, NULL, &compiled), MMA);
    cr_assert_not_null(strstr(logged, "CLCONV_OFFLINE"), "%s", logged);
    cr_assert_eq(compiled, 0);
    unsetenv("CLCONV_OFFLINE");
    cr_assert_eq(find_units(90, NULL, &compiled), MMA | WGMMA);
    cr_assert_eq(compiled, 1);
    setenv("CLCONV_OFFLINE", "1", 1);
    cr_assert_eq(find_units(90, NULL, &compiled), MMA | WGMMA, "%s", logged);
    cr_assert_eq(compiled, 0);
}

static bool finds_maps(cl_uint capability, const char *emulate)
{
    int compiled;
    return find_facts(capability, emulate, &compiled).tensor_maps;
}

Test(selftest, tensor_maps_are_tried_where_the_unit_is)
{
    program = right;
    maps_work = true;
    cr_assert(finds_maps(90, NULL), "%s", logged);
    maps_work = false;
    cr_assert_not(finds_maps(90, NULL));
    cr_assert_eq(maps_asked, 2);
}

Test(selftest, less_local_memory_does_where_a_driver_refuses_more)
{
    int compiled;
    program = right;
    cr_assert_eq(find_facts(90, NULL, &compiled).wgmma_memory, 229376);
    large_program = broken;
    clconv_device facts = find_facts(90, NULL, &compiled);
    cr_assert_eq(facts.wgmma_memory, 114688);
    cr_assert(clconv_device_has_unit(&facts, CLCONV_UNIT_WGMMA));
    cr_assert_not_null(strstr(logged, "not used with 229376 bytes"), "%s",
                       logged);
}

Test(selftest, a_copy_unit_that_brings_something_else_is_not_used)
{
    static const char *const programs[] = {loading_nothing, loading_a_box,
                                           loading_another_tap};
    program = right;
    maps_work = true;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i) {
        maps_program = programs[i];
        cr_assert_not(finds_maps(90, NULL), "%s", maps_program);
        cr_assert_not_null(
            strstr(logged, "tensor maps are not used: the copy unit brings "),
            "%s", logged);
    }
    maps_program = "__kernel void maps_selftest() { no_such = 1; }";
    cr_assert_not(finds_maps(90, NULL));
    cr_assert_not_null(strstr(logged, "no_such"), "%s", logged);
}

Test(selftest, tensor_maps_of_no_use_are_not_tried)
{
    maps_work = true;
    program = transposed;
    cr_assert_not(finds_maps(90, NULL), "without its unit");
    program = right;
    cr_assert_not(finds_maps(80, NULL), "another device");
    cr_assert_not(finds_maps(90, "none"));
    cr_assert(finds_maps(90, "wgmma"), "the emulation's");
    cr_assert_eq(maps_asked, 0);
}
