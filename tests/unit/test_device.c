/*
 * A device's set of matrix units, as bits and as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "device.h"

#define MMA CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16)
#define WGMMA CLCONV_BIT(CLCONV_UNIT_WGMMA)

Test(device, sets_of_units_are_written_and_read)
{
    static const struct {
        unsigned units;
        const char *text;
    } sets[] = {
        {0, "none"},
        {CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K8), "mma_m16n8k8"},
        {MMA, "mma_m16n8k16"},
        {WGMMA, "wgmma"},
        {MMA | WGMMA, "mma_m16n8k16+wgmma"},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_units_format(sets[i].units, &text);
        cr_assert_str_eq(text.data, sets[i].text);
        clconv_text_free(&text);
        unsigned units = ~0u;
        cr_assert(clconv_units_parse(sets[i].text, &units), "%s", sets[i].text);
        cr_assert_eq(units, sets[i].units, "%s", sets[i].text);
    }
}

Test(device, what_is_no_set_of_units_is_refused)
{
    static const char *const texts[] = {
        "",       "+",       "wgmma+",      "+wgmma",
        "wgmm",   "wgmma2",  "none+wgmma",  "wgmma+none",
        "wgmma ", "unknown", "wgmma+wgmma", "wgmma+mma_m16n8k16",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        unsigned units = 77;
        cr_assert_not(clconv_units_parse(texts[i], &units), "\"%s\"", texts[i]);
        cr_assert_eq(units, 77, "\"%s\"", texts[i]);
    }
}

Test(device, an_emulated_unit_is_the_only_one)
{
    clconv_device d;
    cr_assert(clconv_device_preset("sm_90", &d));
    cr_assert(clconv_device_has_unit(&d, CLCONV_UNIT_WGMMA));
    cr_assert(clconv_device_has_unit(&d, CLCONV_UNIT_MMA_M16N8K16));
    cr_assert_not(clconv_device_has_unit(&d, CLCONV_UNIT_NONE));
    cr_assert(d.tensor_maps);
    clconv_device_emulate(&d, CLCONV_UNIT_MMA_M16N8K16);
    cr_assert_eq(d.units, MMA);
    cr_assert(d.unit_emulated);
    cr_assert_not(d.tensor_maps);
    clconv_device_emulate(&d, CLCONV_UNIT_WGMMA);
    cr_assert_eq(d.units, WGMMA);
    cr_assert(d.tensor_maps);
    clconv_device_emulate(&d, CLCONV_UNIT_NONE);
    cr_assert_eq(d.units, 0);
    cr_assert_not(d.unit_emulated);
    cr_assert_not(d.tensor_maps);
}
