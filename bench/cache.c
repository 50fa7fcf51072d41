/*
 * CL_DEVICE_GLOBAL_MEM_CACHE_SIZE alone is not to be trusted: NVIDIA answers
 * with the L1 caches, some CPU drivers with nothing. Nor is sysconf(): glibc
 * answers with the caches of a whole socket that one process may not reach.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* No GPU's L2 was larger in 2026. */
#define GPU_CACHE_BYTES ((size_t)128 << 20)

#define MAX_CACHES 16

static size_t reported_bytes(const host *h)
{
    cl_ulong bytes = 0;

    if (clGetDeviceInfo(h->device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE,
                        sizeof(bytes), &bytes, NULL))
        return 0;
    return (size_t)bytes;
}

/* "32768K" or "32M" in Linux's description of a processor; 0 if there is no
 * such cache. */
static size_t described_bytes(int index)
{
    char path[96];
    unsigned long size = 0;
    char unit = '\0';
    FILE *file;

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lu%c", &size, &unit) < 1)
        size = 0;
    fclose(file);
    return (size_t)size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
}

static size_t largest_described(void)
{
    size_t largest = 0;

    for (int i = 0; i < MAX_CACHES; ++i) {
        size_t bytes = described_bytes(i);

        if (bytes > largest)
            largest = bytes;
    }
    return largest;
}

static size_t cpu_bytes(void)
{
    size_t bytes = largest_described();

#ifdef _SC_LEVEL3_CACHE_SIZE
    if (bytes == 0) {
        long size = sysconf(_SC_LEVEL3_CACHE_SIZE);

        bytes = size > 0 ? (size_t)size : 0;
    }
#endif
    return bytes;
}

size_t cache_bytes(const host *h)
{
    size_t reported = reported_bytes(h);
    size_t known = h->is_cpu ? cpu_bytes() : GPU_CACHE_BYTES;

    return reported > known ? reported : known;
}
