/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "probe.h"

#include "probe_parts.h"

size_t probe_compute_units(const host *h)
{
    cl_uint units = 1;

    if (clGetDeviceInfo(h->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units),
                        &units, NULL))
        return 1;
    return units;
}

bool probe_run(const host *h, probe_result *out)
{
    probe_result r;

    if (!probe_fma(h, &r.fma_flops) ||
        !probe_matrix(h, &r.matrix_flops, &r.matrix_instruction) ||
        !probe_copy(h, &r.copy_bytes))
        return false;
    *out = r;
    return true;
}
