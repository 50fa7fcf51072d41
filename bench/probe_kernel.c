/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "probe_kernel.h"

#include <string.h>

#include "clock.h"
#include "message.h"
#include "statistics.h"

enum { SERIES = 5, BURSTS = 5 };

/* So long that the launch itself does not count. */
#define BURST_SECONDS 0.01

#define MAX_ROUNDS (1 << 24)

static bool failed(cl_int error, const char *call)
{
    if (error)
        message_error("%s failed with OpenCL error %d", call, (int)error);
    return error != CL_SUCCESS;
}

/* Takes the program, NULL if the device refused to make it. */
static bool open_program(const host *h, cl_program program, const char *name,
                         probe_kernel *out)
{
    probe_kernel k = {.queue = h->queue, .program = program, .burst = 1};
    cl_int error;

    if (program && !clBuildProgram(program, 1, &h->device, "", NULL, NULL))
        k.kernel = clCreateKernel(program, name, &error);
    if (!k.kernel) {
        probe_kernel_close(&k);
        return false;
    }
    *out = k;
    return true;
}

bool probe_kernel_open(const host *h, const char *text, const char *name,
                       probe_kernel *out)
{
    cl_int error;

    return open_program(
        h, clCreateProgramWithSource(h->context, 1, &text, NULL, &error), name,
        out);
}

/* NVIDIA's binaries count their terminator. */
bool probe_kernel_open_binary(const host *h, const char *text, const char *name,
                              probe_kernel *out)
{
    const unsigned char *data = (const unsigned char *)text;
    const size_t size = strlen(text) + 1;
    cl_int error;

    return open_program(h,
                        clCreateProgramWithBinary(h->context, 1, &h->device,
                                                  &size, &data, NULL, &error),
                        name, out);
}

void probe_kernel_close(probe_kernel *k)
{
    if (k->kernel)
        clReleaseKernel(k->kernel);
    if (k->program)
        clReleaseProgram(k->program);
    *k = (probe_kernel){0};
}

bool probe_kernel_launch(const probe_kernel *k, size_t global, size_t local)
{
    for (int i = 0; i < k->burst; ++i) {
        if (failed(clEnqueueNDRangeKernel(k->queue, k->kernel, 1, NULL, &global,
                                          &local, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel"))
            return false;
    }
    return !failed(clFinish(k->queue), "clFinish");
}

/* Seconds of a burst. */
static bool median_burst(const probe_kernel *k, size_t global, size_t local,
                         double *out)
{
    double seconds[BURSTS];

    for (int i = 0; i < BURSTS; ++i) {
        double start = clock_seconds();

        if (!probe_kernel_launch(k, global, local))
            return false;
        seconds[i] = clock_seconds() - start;
    }
    *out = spread_of(seconds, BURSTS).median;
    return true;
}

bool probe_kernel_seconds(const probe_kernel *k, size_t global, size_t local,
                          double *out)
{
    double best = 0;

    for (int i = 0; i < SERIES; ++i) {
        double median;

        if (!median_burst(k, global, local, &median))
            return false;
        if (i == 0 || median < best)
            best = median;
    }
    *out = best / k->burst;
    return true;
}

bool probe_kernel_calibrate(const probe_kernel *k, cl_uint rounds_arg,
                            size_t global, size_t local, cl_int *rounds)
{
    /* The first launch compiles on some devices. */
    bool ok = probe_kernel_launch(k, global, local);
    double seconds = 0;

    for (cl_int n = 64; ok && seconds < BURST_SECONDS && n <= MAX_ROUNDS;
         n *= 2) {
        ok = !failed(clSetKernelArg(k->kernel, rounds_arg, sizeof(n), &n),
                     "clSetKernelArg") &&
             median_burst(k, global, local, &seconds);
        *rounds = n;
    }
    return ok;
}
