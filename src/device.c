/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "device.h"

#include <string.h>

static const char *const unit_names[CLCONV_UNITS] = {
    [CLCONV_UNIT_NONE] = "none",
    [CLCONV_UNIT_MMA_M16N8K8] = "mma_m16n8k8",
    [CLCONV_UNIT_MMA_M16N8K16] = "mma_m16n8k16",
    [CLCONV_UNIT_WGMMA] = "wgmma",
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
        .name = "sm_75",
        .compute_units = 40,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)4 << 30,
        .has_fp64 = true,
        .nv_sm = 75,
        .units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K8),
    },
    {
        .name = "sm_80",
        .compute_units = 108,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)16 << 30,
        .has_fp64 = true,
        .nv_sm = 80,
        .units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16),
    },
    {
        .name = "sm_86",
        .compute_units = 72,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)6 << 30,
        .has_fp64 = true,
        .nv_sm = 86,
        .units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16),
    },
    {
        .name = "sm_89",
        .compute_units = 58,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)6 << 30,
        .has_fp64 = true,
        .nv_sm = 89,
        .units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16),
    },
    {
        .name = "sm_90",
        .compute_units = 132,
        .max_work_group = 1024,
        .local_memory = 48 * 1024,
        .max_allocation = (size_t)32 << 30,
        .has_fp64 = true,
        .nv_sm = 90,
        .units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16) |
                 CLCONV_BIT(CLCONV_UNIT_WGMMA),
        .wgmma_memory = CLCONV_WGMMA_MEMORY,
        .tensor_maps = true,
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

/* ---- One unit ---------------------------------------------------------- */

static clconv_unit_id find_unit(const char *name, size_t length)
{
    for (int unit = 0; unit < CLCONV_UNITS; ++unit)
        if (strlen(unit_names[unit]) == length &&
            memcmp(unit_names[unit], name, length) == 0)
            return (clconv_unit_id)unit;
    return CLCONV_UNITS;
}

clconv_unit_id clconv_unit_find(const char *name)
{
    return find_unit(name, strlen(name));
}

const char *clconv_unit_name(clconv_unit_id unit)
{
    return unit >= 0 && unit < CLCONV_UNITS ? unit_names[unit] : "unknown";
}

/* ---- A device's -------------------------------------------------------- */

bool clconv_device_has_unit(const clconv_device *device, clconv_unit_id unit)
{
    return (device->units & CLCONV_BIT(unit)) != 0;
}

void clconv_device_emulate(clconv_device *device, clconv_unit_id unit)
{
    device->units = unit != CLCONV_UNIT_NONE ? CLCONV_BIT(unit) : 0;
    device->unit_emulated = device->units != 0;
    device->tensor_maps = unit == CLCONV_UNIT_WGMMA;
}

void clconv_units_format(unsigned units, clconv_text *out)
{
    const char *separator = "";
    for (int unit = CLCONV_UNIT_NONE + 1; unit < CLCONV_UNITS; ++unit)
        if (units & CLCONV_BIT(unit)) {
            clconv_text_printf(out, "%s%s", separator, unit_names[unit]);
            separator = "+";
        }
    if (units == 0)
        clconv_text_puts(out, unit_names[CLCONV_UNIT_NONE]);
}

bool clconv_units_parse(const char *text, unsigned *out)
{
    unsigned units = 0;
    clconv_unit_id last = CLCONV_UNIT_NONE;
    bool more = clconv_unit_find(text) != CLCONV_UNIT_NONE;
    while (more) {
        size_t length = strcspn(text, "+");
        clconv_unit_id unit = find_unit(text, length);
        if (unit == CLCONV_UNITS || unit <= last)
            return false;
        units |= CLCONV_BIT(unit);
        last = unit;
        more = text[length] == '+';
        text += length + 1;
    }
    *out = units;
    return true;
}
