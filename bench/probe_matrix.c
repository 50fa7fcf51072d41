/*
 * NVIDIA's matrix units through mma.sync in OpenCL C: 8 independent tiles of
 * 16 x 8 sums a warp, each += a[16][16] * b[16][8]. That a text builds proves
 * little, so the sums are checked before any time is taken; a device that
 * fails either has no unit for this purpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "probe_kernel.h"
#include "probe_parts.h"

enum {
    WARP = 32,
    LOCAL = 256,
    GROUPS_PER_UNIT = 8,
    TILES = 8,
    CHECKED_ROUNDS = 64,
    ROUNDS_ARG = 2
};

#define FLOP_PER_TILE (2.0 * 16 * 8 * 16)

/* Two fp16 of 2^-4: an element of a tile grows by 16 * 2^-8 a round. */
#define OPERAND 0x2C002C00U
#define GROWTH 0x1p-4F

static const char text[] =
    "void multiply(float *c, uint a, uint b)\n"
    "{\n"
    "    asm volatile(\n"
    "        \"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \"\n"
    "        \"{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, \"\n"
    "        \"{%0, %1, %2, %3};\"\n"
    "        : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
    "        : \"r\"(a), \"r\"(b));\n"
    "}\n"
    "\n"
    "__kernel __attribute__((reqd_work_group_size(256, 1, 1)))\n"
    "void peak(__global float *out, uint operand, int rounds)\n"
    "{\n"
    "    float c[8][4] = {{0}};\n"
    "    float sum = 0;\n"
    "    for (int i = 0; i < rounds; ++i) {\n"
    "        multiply(c[0], operand, operand);\n"
    "        multiply(c[1], operand, operand);\n"
    "        multiply(c[2], operand, operand);\n"
    "        multiply(c[3], operand, operand);\n"
    "        multiply(c[4], operand, operand);\n"
    "        multiply(c[5], operand, operand);\n"
    "        multiply(c[6], operand, operand);\n"
    "        multiply(c[7], operand, operand);\n"
    "    }\n"
    "    #pragma unroll\n"
    "    for (int t = 0; t < 8; ++t)\n"
    "        sum += c[t][0] + c[t][1] + c[t][2] + c[t][3];\n"
    "    out[get_global_id(0)] = sum;\n"
    "}\n";

static bool is_nvidia_gpu(const host *h)
{
    char vendor[256] = "";

    return !h->is_cpu &&
           !clGetDeviceInfo(h->device, CL_DEVICE_VENDOR, sizeof(vendor), vendor,
                            NULL) &&
           strstr(vendor, "NVIDIA") != NULL;
}

static bool set_args(const probe_kernel *k, cl_mem out)
{
    const cl_uint operand = OPERAND;
    const cl_int rounds = CHECKED_ROUNDS;

    return !clSetKernelArg(k->kernel, 0, sizeof(out), &out) &&
           !clSetKernelArg(k->kernel, 1, sizeof(operand), &operand) &&
           !clSetKernelArg(k->kernel, ROUNDS_ARG, sizeof(rounds), &rounds);
}

/* Is every work-item's sum what CHECKED_ROUNDS rounds give? */
static bool sums_are_right(const host *h, cl_mem out, size_t items)
{
    const float expected = GROWTH * CHECKED_ROUNDS * TILES * 4;
    float *sums = malloc(items * sizeof(*sums));
    bool right = sums && host_read(h, out, 0, items * sizeof(*sums), sums);

    for (size_t i = 0; right && i < items; ++i)
        right = sums[i] == expected;
    free(sums);
    return right;
}

static bool time_unit(const probe_kernel *k, size_t items, double *flops)
{
    cl_int rounds = 0;
    double seconds;

    if (!probe_kernel_calibrate(k, ROUNDS_ARG, items, LOCAL, &rounds) ||
        !probe_kernel_seconds(k, items, LOCAL, &seconds))
        return false;
    *flops = FLOP_PER_TILE * TILES * rounds * (double)(items / WARP) / seconds;
    return true;
}

bool probe_matrix(const host *h, double *flops)
{
    size_t items = GROUPS_PER_UNIT * LOCAL * probe_compute_units(h);
    probe_kernel k;
    cl_mem out;
    bool ok = true;

    *flops = 0;
    if (!is_nvidia_gpu(h) || !probe_kernel_open(h, text, "peak", &k))
        return true;
    out = host_buffer(h, items * sizeof(float), NULL);
    if (out && set_args(&k, out) && probe_kernel_launch(&k, items, LOCAL) &&
        sums_are_right(h, out, items))
        ok = time_unit(&k, items, flops);
    if (out)
        clReleaseMemObject(out);
    probe_kernel_close(&k);
    return ok;
}
