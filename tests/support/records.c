/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "records.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "planner.h"

int record_pick(unsigned *seed, int below)
{
    *seed = *seed * 1664525u + 1013904223u; /* Numerical Recipes */
    return (int)((uint64_t)*seed * (unsigned)below >> 32);
}

static void set_plan(clconv_record *r, const clconv_device *device)
{
    clconv_request request = {.ops = r->ops, .max_workspace = SIZE_MAX};
    clconv_steps steps;
    cr_assert_eq(clconv_planner_choose(&r->problem, device, &request, &steps),
                 CLCONV_OK, "%s", clconv_last_error());
    clconv_text plan = CLCONV_TEXT_EMPTY;
    clconv_steps_format(&steps, &plan);
    cr_assert_lt(plan.length, sizeof r->plan);
    strcpy(r->plan, plan.data);
    clconv_text_free(&plan);
}

/* The device's facts that a line holds. */
static clconv_device keep_facts(const clconv_device *device)
{
    clconv_device kept = {
        .is_cpu = device->is_cpu,
        .compute_units = device->compute_units,
        .vector_registers = device->vector_registers,
        .nv_sm = device->nv_sm,
        .units = device->units,
        .unit_emulated = device->unit_emulated,
    };
    strcpy(kept.name, device->name);
    strcpy(kept.vendor, device->vendor);
    strcpy(kept.platform, device->platform);
    strcpy(kept.driver, device->driver);
    return kept;
}

clconv_record record_of(const char *problem, const clconv_device *device)
{
    clconv_record r = {
        .ops = CLCONV_OP_BACKWARD,
        .microseconds = 812.4,
        .default_microseconds = 1043,
        .error = 3.1e-4,
        .date = "2026-11-30",
        .device = keep_facts(device),
    };
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    cr_assert_eq(clconv_problem_init(&desc, &r.problem), CLCONV_OK, "%s",
                 problem);
    set_plan(&r, device);
    return r;
}

/* ---- At random --------------------------------------------------------- */

static void random_text(unsigned *seed, char *out, int size)
{
    int length = record_pick(seed, size);
    for (int i = 0; i < length; ++i)
        out[i] = (char)(1 + record_pick(seed, 255));
    out[length] = '\0';
}

static void random_problem(unsigned *seed, char *out, size_t size)
{
    static const char *const tails[] = {
        "",         "_nhwc",   "_fp32",        "_nhwc_fp32",
        "_x16_w16", "_scale3", "_dxlog2_dx16", "_inf_align4",
    };
    int groups = 1 << record_pick(seed, 3);
    int filter = 1 + 2 * record_pick(seed, 3);
    snprintf(out, size, "n%dc%dh%dw%dk%dr%ds%du%dp%dx%dg%d%s",
             record_pick(seed, 300), groups * (1 + record_pick(seed, 64)),
             filter + record_pick(seed, 64), filter + record_pick(seed, 64),
             groups * (1 + record_pick(seed, 64)), filter, filter,
             1 + record_pick(seed, 2), record_pick(seed, 3),
             record_pick(seed, 3), groups, tails[record_pick(seed, 8)]);
}

clconv_record record_random(unsigned *seed)
{
    static const char *const presets[] = {"cpu", "cpu_avx2", "gpu", "sm_80",
                                          "sm_90"};
    clconv_device device;
    cr_assert(clconv_device_preset(presets[record_pick(seed, 5)], &device));
    random_text(seed, device.name, sizeof device.name);
    random_text(seed, device.vendor, sizeof device.vendor);
    random_text(seed, device.platform, sizeof device.platform);
    random_text(seed, device.driver, sizeof device.driver);
    device.compute_units = 1 + record_pick(seed, 1000);
    device.unit_emulated = device.units && record_pick(seed, 2);
    char problem[128];
    random_problem(seed, problem, sizeof problem);
    clconv_record r = record_of(problem, &device);
    r.ops = 1u + (unsigned)record_pick(seed, CLCONV_OP_BACKWARD);
    r.microseconds = (1 + record_pick(seed, 1 << 30)) / 1e3;
    r.default_microseconds = record_pick(seed, 1 << 30) / 1e3;
    r.error = (10 + record_pick(seed, 90)) / 1e6;
    set_plan(&r, &device);
    return r;
}
