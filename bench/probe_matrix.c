/*
 * That a program builds proves little, so an instruction's sums are checked
 * before any time is taken; a device that fails either does not have it for
 * this purpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "probe_parts.h"
#include "probe_product.h"

enum { CHECKED_ROUNDS = 64, ROUNDS_ARG = 2 };

/* Two fp16 of 2^-4. */
#define OPERAND 0x2C002C00U

/* Of equals the first is named. */
static const probe_product *const products[] = {&probe_mma, &probe_wgmma};

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
static bool sums_are_right(const host *h, const probe_product *p, cl_mem out,
                           size_t items)
{
    const float expected = p->growth * CHECKED_ROUNDS;
    float *sums = malloc(items * sizeof(*sums));
    bool right = sums && host_read(h, out, 0, items * sizeof(*sums), sums);

    for (size_t i = 0; right && i < items; ++i)
        right = sums[i] == expected;
    free(sums);
    return right;
}

static bool time_product(const probe_product *p, const probe_kernel *k,
                         size_t groups, double *flops)
{
    size_t items = groups * p->local;
    cl_int rounds = 0;
    double seconds;

    if (!probe_kernel_calibrate(k, ROUNDS_ARG, items, p->local, &rounds) ||
        !probe_kernel_seconds(k, items, p->local, &seconds))
        return false;
    *flops = p->flop * rounds * (double)groups / seconds;
    return true;
}

/* *flops is 0 if the device does not have it. */
static bool measure(const host *h, const probe_product *p, double *flops)
{
    size_t groups = p->groups_per_unit * probe_compute_units(h);
    size_t items = groups * p->local;
    probe_kernel k;
    cl_mem out;
    bool ok = true;

    *flops = 0;
    if (!p->open(h, &k))
        return true;
    out = host_buffer(h, items * sizeof(float), NULL);
    if (out && set_args(&k, out) && probe_kernel_launch(&k, items, p->local) &&
        sums_are_right(h, p, out, items))
        ok = time_product(p, &k, groups, flops);
    if (out)
        clReleaseMemObject(out);
    probe_kernel_close(&k);
    return ok;
}

bool probe_matrix(const host *h, double *flops, const char **instruction)
{
    *flops = 0;
    *instruction = NULL;
    for (size_t i = 0; i < sizeof(products) / sizeof(*products); ++i) {
        double its = 0;

        if (is_nvidia_gpu(h) && !measure(h, products[i], &its))
            return false;
        if (its > *flops) {
            *flops = its;
            *instruction = products[i]->name;
        }
    }
    return true;
}
