/*
 * Which instruction the peak of a matrix unit is measured with. The linker sends
 * two of OpenCL's functions through this file, which plays an NVIDIA GPU whose
 * compiler refuses mma.sync, and whose programs from PTX are its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "probe_parts.h"

/* In the place of wgmma's kernel: per is what a round adds to each sum. */
#define PROGRAM(per)                                                           \
    "__kernel void peak(__global float *out, uint operand, int rounds)\n"      \
    "{\n"                                                                      \
    "    volatile float sum = 0;\n"                                            \
    "    for (int i = 0; i < rounds; ++i)\n"                                   \
    "        sum += " per ";\n"                                                \
    "    out[get_global_id(0)] = sum;\n"                                       \
    "}\n"

/* 128 sums, of each 64 products of 2^-8. */
static const char right[] = PROGRAM("32.0f");
static const char wrong[] = PROGRAM("31.0f");

static const char *program; /* NULL: no device is played */
static int binaries;        /* that were taken */

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                              size_t size, void *value, size_t *size_ret);
cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                              size_t size, void *value, size_t *size_ret);

cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                              size_t size, void *value, size_t *size_ret)
{
    static const char vendor[] = "NVIDIA Corporation";
    if (!program || what != CL_DEVICE_VENDOR || size < sizeof vendor)
        return __real_clGetDeviceInfo(device, what, size, value, size_ret);
    memcpy(value, vendor, sizeof vendor);
    return CL_SUCCESS;
}

cl_program __wrap_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                            const cl_device_id *devices,
                                            const size_t *sizes,
                                            const unsigned char **binary,
                                            cl_int *status, cl_int *error);

cl_program __wrap_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                            const cl_device_id *devices,
                                            const size_t *sizes,
                                            const unsigned char **binary,
                                            cl_int *status, cl_int *error)
{
    (void)count;
    (void)devices;
    (void)status;
    ++binaries;
    cr_assert_eq(sizes[0], strlen((const char *)binary[0]) + 1);
    return clCreateProgramWithSource(context, 1, &program, NULL, error);
}

/* NULL: none. */
static const char *named(const char *played)
{
    host h;
    double flops = -1;
    const char *instruction = "unset";
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    if (!h.is_cpu)
        cr_skip_test("a CPU plays the device");
    program = played;
    h.is_cpu = !played;
    cr_assert(probe_matrix(&h, &flops, &instruction));
    program = NULL;
    host_close(&h);
    cr_assert_eq(flops > 0, instruction != NULL);
    return instruction;
}

Test(probe_matrix, the_instruction_that_was_timed_is_named)
{
    cr_assert_str_eq(named(right), "wgmma");
    cr_assert_eq(binaries, 1);
}

Test(probe_matrix, one_whose_sums_are_wrong_does_not_count)
{
    cr_assert_null(named(wrong));
    cr_assert_eq(binaries, 1);
}

Test(probe_matrix, one_that_does_not_build_does_not_count)
{
    cr_assert_null(named("__kernel void peak() { no_such = 1; }"));
    cr_assert_eq(binaries, 1);
}

Test(probe_matrix, other_devices_are_not_asked)
{
    cr_assert_null(named(NULL));
    cr_assert_eq(binaries, 0);
}
