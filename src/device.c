/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "device.h"

#include <string.h>

static const char *const unit_names[CLCONV_UNITS] = {
    [CLCONV_UNIT_NONE] = "none",
    [CLCONV_UNIT_MMA_M16N8K16] = "mma_m16n8k16",
};

/* Local memory of the NVIDIA presets is what static __local arrays may use
 * without asking for more than every part of that generation has. */
static const clconv_device presets[] = {
    {
        .name = "cpu",
        .is_cpu = true,
        .compute_units = 2,
        .vector_registers = CLCONV_MANY_REGISTERS,
        .max_work_group = 4096,
        .local_memory = 512 * 1024,
        .max_allocation = (size_t)4 << 30,
        .has_fp64 = true,
    },
    {
        .name = "cpu_avx2",
        .is_cpu = true,
        .compute_units = 2,
        .vector_registers = CLCONV_FEW_REGISTERS,
        .max_work_group = 4096,
        .local_memory = 512 * 1024,
        .max_allocation = (size_t)4 << 30,
        .has_fp64 = true,
    },
    {
        .name = "gpu",
        .compute_units = 32,
        .max_work_group = 256,
        .local_memory = 32 * 1024,
        .max_allocation = (size_t)4 << 30,
    },
    {
        .name = "sm_80",
        .compute_units = 108,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)16 << 30,
        .has_fp64 = true,
        .nv_sm = 80,
        .unit = CLCONV_UNIT_MMA_M16N8K16,
    },
    {
        .name = "sm_90",
        .compute_units = 132,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)32 << 30,
        .has_fp64 = true,
        .nv_sm = 90,
        .unit = CLCONV_UNIT_MMA_M16N8K16,
    },
};

bool clconv_device_preset(const char *name, clconv_device *out)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i)
        if (strcmp(presets[i].name, name) == 0) {
            *out = presets[i];
            return true;
        }
    return false;
}

clconv_unit_id clconv_unit_find(const char *name)
{
    for (int unit = 0; unit < CLCONV_UNITS; ++unit)
        if (strcmp(unit_names[unit], name) == 0)
            return (clconv_unit_id)unit;
    return CLCONV_UNITS;
}

const char *clconv_unit_name(clconv_unit_id unit)
{
    return unit >= 0 && unit < CLCONV_UNITS ? unit_names[unit] : "unknown";
}
