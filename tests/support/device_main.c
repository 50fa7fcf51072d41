/*
 * main() of every test program labelled "device": where there is no OpenCL
 * device it says so and returns 77, which ctest reads as "skipped".
 *
 * Criterion runs each test in a process of its own, so nothing of OpenCL that
 * this question sets up reaches a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdbool.h>
#include <stdio.h>

#include "host.h"
#include "run_tests.h"

enum { MAX_PLATFORMS = 16 };

static bool device_present(void)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS)
        return false;
    if (count > MAX_PLATFORMS)
        count = MAX_PLATFORMS;
    for (cl_uint i = 0; i < count; ++i) {
        cl_uint devices = 0;
        cl_int error =
            clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &devices);
        if (error == CL_SUCCESS && devices > 0)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    if (!device_present()) {
        fprintf(stderr, "skipped: there is no OpenCL device\n");
        return HOST_EXIT_SKIP;
    }
    return run_tests(argc, argv);
}
