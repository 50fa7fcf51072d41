/*
 * Which records serve a problem on a device, and which first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "match.h"
#include "records.h"

#define ASKED "n32c64h16w16k64r3s3p1"

/* A device whose names are given. */
static clconv_device named(const char *preset, const char *name,
                           const char *vendor, const char *platform,
                           const char *driver)
{
    clconv_device d;
    cr_assert(clconv_device_preset(preset, &d), "%s", preset);
    strcpy(d.name, name);
    strcpy(d.vendor, vendor);
    strcpy(d.platform, platform);
    strcpy(d.driver, driver);
    return d;
}

static clconv_device epyc(void)
{
    return named("cpu", "AMD EPYC", "AuthenticAMD", "PoCL", "3.1");
}

static clconv_device hopper(void)
{
    return named("sm_90", "NVIDIA H200", "NVIDIA", "CUDA", "550");
}

/* ---- Devices ----------------------------------------------------------- */

static void expect_near(clconv_device of, clconv_device asked,
                        clconv_nearness want)
{
    clconv_record r = record_of(ASKED, &of);
    cr_assert_eq(clconv_record_nearness(&r, &asked), want,
                 "%s %s cus=%d units=%x for %s %s", of.name, of.driver,
                 of.compute_units, of.units, asked.name, asked.driver);
}

Test(match, processors_of_a_maker_are_a_family_on_one_platform)
{
    clconv_device a = epyc(), b = epyc();
    expect_near(a, b, CLCONV_NEAR_DRIVER);
    strcpy(b.driver, "4.0");
    expect_near(a, b, CLCONV_NEAR_DEVICE);
    b = epyc(), b.compute_units = 64;
    expect_near(a, b, CLCONV_NEAR_FAMILY);
    b = epyc(), strcpy(b.name, "AMD Ryzen");
    expect_near(a, b, CLCONV_NEAR_FAMILY);
    b = epyc(), strcpy(b.platform, "Intel(R) OpenCL");
    expect_near(a, b, CLCONV_NEAR_VENDOR);
    b = epyc(), b.vector_registers = CLCONV_FEW_REGISTERS;
    expect_near(a, b, CLCONV_NEAR_NOT);
    b = epyc(), strcpy(b.vendor, "GenuineIntel");
    expect_near(a, b, CLCONV_NEAR_NOT);
}

Test(match, nvidia_s_generations_are_families)
{
    clconv_device a = hopper(), b = hopper();
    expect_near(a, b, CLCONV_NEAR_DRIVER);
    strcpy(b.name, "NVIDIA H100");
    expect_near(a, b, CLCONV_NEAR_FAMILY);
    b.nv_sm = 80;
    expect_near(a, b, CLCONV_NEAR_VENDOR);
}

Test(match, other_gpus_go_by_vendor_and_generation)
{
    clconv_device a = named("gpu", "gfx1030", "AMD", "ROCm", "1");
    clconv_device b = named("gpu", "gfx1100", "AMD", "ROCm", "1");
    expect_near(a, b, CLCONV_NEAR_FAMILY);
    strcpy(b.name, "gfx906");
    expect_near(a, b, CLCONV_NEAR_VENDOR);
    b = a, strcpy(b.vendor, "Intel");
    expect_near(a, b, CLCONV_NEAR_NOT);
}

Test(match, a_processor_s_record_is_not_for_a_gpu)
{
    clconv_device a = epyc(), b = epyc();
    b.is_cpu = false;
    expect_near(a, b, CLCONV_NEAR_NOT);
    expect_near(b, a, CLCONV_NEAR_NOT);
}

Test(match, a_unit_s_record_is_not_for_a_device_without)
{
    clconv_device with = hopper(), without = hopper(), emulated = hopper();
    without.units = 0;
    emulated.unit_emulated = true;
    expect_near(with, without, CLCONV_NEAR_NOT);
    expect_near(with, emulated, CLCONV_NEAR_NOT);
    expect_near(emulated, with, CLCONV_NEAR_NOT);
    expect_near(emulated, emulated, CLCONV_NEAR_DRIVER);
    expect_near(without, with, CLCONV_NEAR_NOT);
}

/* With a unit more, the fastest plan is another: records of an H200 from before
 * wgmma made plans there five to nine times slower than defaults. */
Test(match, a_record_is_for_devices_with_the_same_units)
{
    clconv_device both = hopper(), one = hopper(), other = hopper();
    one.units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16);
    other.units = CLCONV_BIT(CLCONV_UNIT_WGMMA);
    expect_near(one, both, CLCONV_NEAR_NOT);
    expect_near(other, both, CLCONV_NEAR_NOT);
    expect_near(both, one, CLCONV_NEAR_NOT);
    expect_near(one, other, CLCONV_NEAR_NOT);
    expect_near(one, one, CLCONV_NEAR_DRIVER);
}

/* ---- Problems ---------------------------------------------------------- */

static clconv_problem problem(const char *text)
{
    clconv_device cpu = epyc();
    return record_of(text, &cpu).problem;
}

static double distance(const char *of, const char *asked)
{
    clconv_device cpu = epyc();
    clconv_record r = record_of(of, &cpu);
    clconv_problem p = problem(asked);
    return clconv_record_distance(&r, &p);
}

Test(match, the_same_problem_is_at_no_distance)
{
    unsigned seed = 1;
    for (int i = 0; i < 1000; ++i) {
        clconv_record r = record_random(&seed);
        cr_assert_eq(clconv_record_distance(&r, &r.problem), 0);
    }
}

Test(match, another_problem_is_at_a_distance_or_beyond_reach)
{
    static const char *const others[] = {
        "n33c64h16w16k64r3s3p1",        "n0c64h16w16k64r3s3p1",
        "n32c65h16w16k64r3s3p1",        "n32c64h17w16k64r3s3p1",
        "n32c64h16w17k64r3s3p1",        "n32c64h16w16k65r3s3p1",
        "n32c64h16w16k64r3s3p1x1x1x0",  "n32c64h16w16k64r3s3p0",
        "n32c64h16w16k64r3s3p1_scale3", "n32c64h16w16k64r3s3p1_dylog1",
        "n32c64h16w16k64r3s3p1_dxlog1", "n32c64h16w16k64r3s3p1_inf",
        "n32c64h16w16k64r3s3p1_align4",
    };
    static const char *const kinds[] = {
        "n32c64h16w16k64r1s3p1",      "n32c64h16w16k64r3s1p1",
        "n32c64h16w16k64r3s3u2p1",    "n32c64h16w16k64r3s3p1d2",
        "n32c64h16w16k64r3s3p1g2",    "n32c64h16w16k64r3s3p1g64",
        "n32c64h16w16k64r3s3p1_nhwc", "n32c64h16w16k64r3s3p1_fp32",
        "n32c64h16w16k64r3s3p1_x16",  "n32c64h16w16k64r3s3p1_dx16",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        double there = distance(others[i], ASKED);
        cr_assert(there > 0 && there < 2, "%s: %g", others[i], there);
        cr_assert_eq(there, distance(ASKED, others[i]), "%s", others[i]);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        cr_assert_eq(distance(kinds[i], ASKED), INFINITY, "%s", kinds[i]);
}

Test(match, channels_weigh_more_than_height_and_height_more_than_images)
{
    double n = distance("n64c64h16w16k64r3s3p1", ASKED);
    double h = distance("n32c64h32w16k64r3s3p1", ASKED);
    double c = distance("n32c128h16w16k64r3s3p1", ASKED);
    cr_assert(0 < n && n < h && h < c, "n %g h %g c %g", n, h, c);
    cr_assert_eq(c, distance("n32c64h16w16k32r3s3p1", ASKED));
}

/* ---- Both -------------------------------------------------------------- */

/* In the order in which they are to come out; half of them go in first. */
Test(match, the_best_come_first)
{
    clconv_device here = epyc(), driver = epyc(), family = epyc();
    strcpy(driver.driver, "4.0");
    strcpy(family.name, "AMD Ryzen");
    const struct {
        const char *problem;
        const clconv_device *device;
        const char *why;
    } order[] = {
        {ASKED, &here, "tuned"},
        {"n48c64h16w16k64r3s3p1", &here, "tuned for a problem like this"},
        {ASKED, &driver, "tuned under another driver"},
        {"n48c64h16w16k64r3s3p1", &driver,
         "tuned for a problem like this under another driver"},
        {"n32c64h32w16k64r3s3p1", &here, "tuned for a problem like this"},
        {ASKED, &family, "tuned on a device like this"},
        {"n32c128h32w16k64r3s3p1", &here, "tuned for a problem like this"},
    };
    enum { COUNT = sizeof order / sizeof *order };
    clconv_record records[COUNT];
    clconv_problem p = problem(ASKED);
    clconv_matching m = {
        .problem = &p, .device = &here, .ops = CLCONV_OP_BACKWARD};
    for (int i = 0; i < COUNT; ++i)
        records[i] = record_of(order[i].problem, order[i].device);
    for (int i = 0; i < COUNT; ++i)
        clconv_matching_add(&m, &records[(i * 3 + 2) % COUNT]);
    cr_assert_eq(m.count, COUNT);
    for (int i = 0; i < COUNT; ++i) {
        cr_assert_eq(m.best[i].record, &records[i], "at %d", i);
        cr_assert_str_eq(m.best[i].why, order[i].why);
        cr_assert_eq(clconv_match_is_exact(&m.best[i]), i == 0, "at %d", i);
    }
}

Test(match, of_equals_the_first_stays_and_the_table_keeps_the_best)
{
    enum { COUNT = 3 * CLCONV_MAX_MATCHES };
    static clconv_record records[COUNT];
    clconv_device here = epyc();
    clconv_problem p = problem(ASKED);
    clconv_matching m = {.problem = &p, .device = &here, .ops = CLCONV_OP_DX};
    for (int i = 0; i < COUNT; ++i) {
        records[i] =
            record_of(i < COUNT / 2 ? "n48c64h16w16k64r3s3p1" : ASKED, &here);
        clconv_matching_add(&m, &records[i]);
    }
    cr_assert_eq(m.count, CLCONV_MAX_MATCHES);
    for (int i = 0; i < m.count; ++i)
        cr_assert_eq(m.best[i].record, &records[COUNT / 2 + i], "at %d", i);
}

Test(match, a_record_has_all_outputs_that_are_asked_for)
{
    clconv_device here = epyc();
    clconv_record all = record_of(ASKED, &here), dx = all, dw = all;
    dx.ops = CLCONV_OP_DX;
    dw.ops = CLCONV_OP_DW;
    clconv_problem p = problem(ASKED);
    clconv_matching m = {.problem = &p, .device = &here, .ops = CLCONV_OP_DX};
    clconv_matching_add(&m, &dw);
    clconv_matching_add(&m, &all);
    clconv_matching_add(&m, &dx);
    cr_assert_eq(m.count, 2);
    cr_assert_eq(m.best[0].record, &dx);
    cr_assert_eq(m.best[1].record, &all);
}

Test(match, too_far_is_none)
{
    clconv_device here = epyc();
    clconv_record r = record_of("n32c512h64w64k64r3s3p1", &here);
    clconv_problem p = problem(ASKED);
    clconv_matching m = {.problem = &p, .device = &here, .ops = CLCONV_OP_DX};
    clconv_matching_add(&m, &r);
    cr_assert_eq(m.count, 0);
}
