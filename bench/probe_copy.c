/*
 * A copy between two buffers that no cache holds. On a CPU a work-item copies
 * one long slice; on a GPU neighbours copy neighbours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cache.h"
#include "message.h"
#include "probe_kernel.h"
#include "probe_parts.h"

/* Slices for each compute unit of a CPU: one that is disturbed does fewer. */
enum { SLICES = 8 };

/* A GPU's copy is so short that waiting for it would count. */
enum { GPU_BURST = 16 };

#define TIMES_CACHE 4
#define MIN_BYTES ((size_t)64 << 20)
#define MAX_BYTES ((size_t)1 << 30)

static const char cpu_text[] =
    "__kernel void copy(__global const float16 *from, __global float16 *to,\n"
    "                   ulong count)\n"
    "{\n"
    "    ulong first = get_global_id(0) * count;\n"
    "    for (ulong i = first; i < first + count; ++i)\n"
    "        to[i] = from[i];\n"
    "}\n";

static const char gpu_text[] =
    "__kernel void copy(__global const float4 *from, __global float4 *to,\n"
    "                   ulong count)\n"
    "{\n"
    "    ulong first = get_global_id(0) * count;\n"
    "    for (ulong i = first; i < first + count; ++i)\n"
    "        to[i] = from[i];\n"
    "}\n";

typedef struct copy {
    const char *text;
    size_t items, local; /* work-items, and in a group */
    cl_ulong count;      /* vectors of an item */
    size_t bytes;        /* copied by all items */
} copy;

static size_t buffer_limit(const host *h)
{
    size_t wanted = TIMES_CACHE * cache_bytes(h);
    cl_ulong largest = MIN_BYTES;

    if (wanted < MIN_BYTES)
        wanted = MIN_BYTES;
    if (wanted > MAX_BYTES)
        wanted = MAX_BYTES;
    if (!clGetDeviceInfo(h->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                         sizeof(largest), &largest, NULL) &&
        wanted > largest)
        wanted = (size_t)largest;
    return wanted;
}

static copy plan_copy(const host *h)
{
    size_t limit = buffer_limit(h);
    copy c = {.text = gpu_text, .local = 256, .count = 1};
    size_t vector = sizeof(cl_float4);

    if (h->is_cpu) {
        vector = sizeof(cl_float16);
        c.text = cpu_text;
        c.local = 1;
        c.items = SLICES * probe_compute_units(h);
        c.count = limit / (c.items * vector);
    } else {
        c.items = limit / (c.local * vector) * c.local;
    }
    c.bytes = c.items * (size_t)c.count * vector;
    return c;
}

static bool time_copy(const probe_kernel *k, const copy *c, cl_mem from,
                      cl_mem to, double *seconds)
{
    cl_int error = clSetKernelArg(k->kernel, 0, sizeof(from), &from);

    if (!error)
        error = clSetKernelArg(k->kernel, 1, sizeof(to), &to);
    if (!error)
        error = clSetKernelArg(k->kernel, 2, sizeof(c->count), &c->count);
    if (error) {
        message_error("clSetKernelArg failed with OpenCL error %d", (int)error);
        return false;
    }
    /* The first launch compiles on some devices. */
    return probe_kernel_launch(k, c->items, c->local) &&
           probe_kernel_seconds(k, c->items, c->local, seconds);
}

bool probe_copy(const host *h, double *bytes)
{
    copy c = plan_copy(h);
    cl_mem from = host_buffer(h, c.bytes, NULL);
    cl_mem to = from ? host_buffer(h, c.bytes, NULL) : NULL;
    probe_kernel k = {0};
    double seconds;
    bool ok = to && probe_kernel_open(h, c.text, "copy", &k);

    if (to && !ok)
        message_error("the device's compiler refuses the copy probe");
    if (!h->is_cpu)
        k.burst = GPU_BURST;
    ok = ok && time_copy(&k, &c, from, to, &seconds);
    if (ok)
        *bytes = 2.0 * (double)c.bytes / seconds;
    probe_kernel_close(&k);
    if (from)
        clReleaseMemObject(from);
    if (to)
        clReleaseMemObject(to);
    return ok;
}
