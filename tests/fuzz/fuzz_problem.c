/*
 * Problem strings: what is read is written as a string that reads the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "clconv/clconv.h"
#include "fuzz.h"

bool fuzz_seed(int index, unsigned char **data, size_t *size)
{
    static const char *const texts[] = {
        "n64c128h28w28k128r3s3p1_nhwc",
        "n1c1h1w1k1r1s1",
        "n2c32h9w8k64r5s3u2x1p1x2d2x1g4_fp32_x16_w16_dy16",
        "n2c3h6w5k4r3s2p1x0x2x0_scale0_dylog3_dxlog10_inf_align4_dx16",
    };
    return fuzz_seed_text(texts, sizeof texts / sizeof *texts, index, data,
                          size);
}

/* Any string that a valid description makes is shorter. */
enum { ROOM = 512 };

static void check_again(const clconv_desc *desc)
{
    char first[ROOM], second[ROOM];
    clconv_desc again;
    FUZZ_CHECK(clconv_desc_format(desc, first, ROOM) < ROOM);
    FUZZ_CHECK(clconv_desc_parse(first, &again) == CLCONV_OK);
    FUZZ_CHECK(clconv_desc_format(&again, second, ROOM) < ROOM);
    FUZZ_CHECK(strcmp(first, second) == 0);
    FUZZ_CHECK(clconv_desc_validate(desc) == clconv_desc_validate(&again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    clconv_desc desc;
    if (clconv_desc_parse(text, &desc) == CLCONV_OK)
        check_again(&desc);
    else
        FUZZ_CHECK(*clconv_last_error());
    free(text);
    return 0;
}
