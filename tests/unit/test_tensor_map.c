/*
 * Tensor maps as numbers: which the copy unit takes, what emulation is given,
 * and where a driver's encoding keeps what changes from call to call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "map_template.h"

static const clconv_tensor_map tiled = {
    .size = {48, 14, 12, 10},
    .stride = {48, 48 * 14, 48 * 14 * 12},
    .box = {32, 8, 8, 2},
    .swizzle = 64,
};

static const clconv_tensor_map im2col = {
    .im2col = true,
    .size = {48, 14, 12, 10},
    .stride = {48, 48 * 14, 48 * 14 * 12},
    .box = {32, 256},
    .lower = {-1, -2},
    .upper = {1, 2},
    .step = {1, 2},
    .swizzle = 64,
};

/* ---- Limits ------------------------------------------------------------ */

#define EXPECT_LEGAL(want, map, member, value)                                 \
    do {                                                                       \
        clconv_tensor_map changed = map;                                       \
        changed.member = value;                                                \
        cr_assert_eq(clconv_tensor_map_legal(&changed), want,                  \
                     "%s with %s = %s", #map, #member, #value);                \
    } while (0)

Test(tensor_map, sizes_and_strides_have_limits)
{
    EXPECT_LEGAL(true, tiled, size[3], 1);
    EXPECT_LEGAL(false, tiled, size[3], 0);
    EXPECT_LEGAL(true, tiled, size[1], (int64_t)1 << 32);
    EXPECT_LEGAL(false, tiled, size[1], ((int64_t)1 << 32) + 1);
    EXPECT_LEGAL(false, tiled, stride[0], 52); /* 104 bytes */
    EXPECT_LEGAL(false, tiled, stride[0], 0);
    EXPECT_LEGAL(true, tiled, stride[2], ((int64_t)1 << 39) - 8);
    EXPECT_LEGAL(false, tiled, stride[2], (int64_t)1 << 39);
}

Test(tensor_map, a_line_of_a_box_fits_its_swizzle)
{
    EXPECT_LEGAL(true, tiled, box[0], 8);
    EXPECT_LEGAL(false, tiled, box[0], 12); /* 24 bytes */
    EXPECT_LEGAL(false, tiled, box[0], 40); /* 80 bytes */
    EXPECT_LEGAL(false, im2col, swizzle, 32);
    EXPECT_LEGAL(true, im2col, swizzle, 128);
}

Test(tensor_map, boxes_and_windows_have_limits)
{
    EXPECT_LEGAL(true, tiled, box[1], 256);
    EXPECT_LEGAL(false, tiled, box[1], 257);
    EXPECT_LEGAL(false, tiled, box[3], 0);
    EXPECT_LEGAL(true, tiled, lower[0], 1000); /* has no window */
    EXPECT_LEGAL(true, im2col, box[1], 1024);
    EXPECT_LEGAL(false, im2col, box[1], 1025);
    EXPECT_LEGAL(true, im2col, lower[0], -128);
    EXPECT_LEGAL(false, im2col, lower[0], -129);
    EXPECT_LEGAL(false, im2col, upper[1], 128);
    EXPECT_LEGAL(true, im2col, step[1], 8);
    EXPECT_LEGAL(false, im2col, step[1], 9);
    EXPECT_LEGAL(false, im2col, step[0], 0);
}

/* ---- The description --------------------------------------------------- */

static uint64_t pair(int low, int high)
{
    return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

Test(tensor_map, a_description_holds_every_number)
{
    const uint64_t want[CLCONV_TENSOR_MAP_WORDS] = {
        0, /* the address, a kernel's to fill in */
        48,
        14,
        12,
        10,
        48,
        48 * 14,
        48 * 14 * 12,
        pair(32, 256),
        0,
        pair(-1, -2),
        pair(1, 2),
        pair(1, 2),
        pair(64, true),
    };
    uint64_t word[CLCONV_TENSOR_MAP_WORDS];
    memset(word, 0xff, sizeof word);
    clconv_tensor_map_describe(&im2col, word);
    for (int i = 0; i < CLCONV_TENSOR_MAP_WORDS; ++i)
        cr_assert_eq(word[i], want[i], "word %d: %#jx, not %#jx", i,
                     (uintmax_t)word[i], (uintmax_t)want[i]);
}

/* ---- Templates --------------------------------------------------------- */

/* As an imagined driver encodes a map: images - 1 in the high half of word 5,
 * beside a size that does not change. */
static clconv_encoded_map encoded(uint64_t address, int64_t images)
{
    return (clconv_encoded_map){
        .address = address,
        .images = images,
        .word = {[0] = address, 77, 78, [5] = pair(13, (int)(images - 1)), 79},
    };
}

Test(map_template, of_an_encoded_map_takes_any_number_of_images)
{
    static const int64_t images[] = {1, 2, 256, 65537, (int64_t)1 << 32};
    clconv_encoded_map one = encoded(0x7f0000001230, 10);
    clconv_encoded_map other = encoded(0x123456780, 12345678);
    clconv_map_template t;
    cr_assert(clconv_map_template_derive(&one, &other, &t));
    for (size_t i = 0; i < sizeof images / sizeof *images; ++i) {
        uint64_t word[CLCONV_TENSOR_MAP_WORDS];
        clconv_encoded_map want = encoded(0, images[i]);
        clconv_map_template_fill(&t, images[i], word);
        cr_assert_arr_eq(word, want.word, sizeof word, "%jd images",
                         (intmax_t)images[i]);
    }
}

Test(map_template, images_may_stand_in_a_low_half_and_as_they_are)
{
    clconv_encoded_map one = encoded(16, 10), other = encoded(32, 20);
    one.word[5] = pair(10, 3);
    other.word[5] = pair(20, 3);
    clconv_map_template t;
    uint64_t word[CLCONV_TENSOR_MAP_WORDS];
    cr_assert(clconv_map_template_derive(&one, &other, &t));
    clconv_map_template_fill(&t, 15, word);
    cr_assert_eq(word[5], pair(15, 3));
}

static void expect_refused(const clconv_encoded_map *one,
                           const clconv_encoded_map *other, const char *what)
{
    clconv_map_template t;
    cr_assert_not(clconv_map_template_derive(one, other, &t), "%s", what);
    cr_assert_not(clconv_map_template_derive(other, one, &t), "%s", what);
}

Test(map_template, an_encoding_of_another_kind_is_refused)
{
    const clconv_encoded_map one = encoded(0x7f0000001230, 10);
    clconv_encoded_map other = encoded(0x123456780, 20);
    clconv_map_template t;
    cr_assert(clconv_map_template_derive(&one, &other, &t));

    other.word[0] >>= 4;
    expect_refused(&one, &other, "an address in units of 16 bytes");
    other = encoded(0x123456780, 20);
    other.word[1] ^= 1;
    expect_refused(&one, &other, "another word that changes");
    other = encoded(0x123456780, 20);
    other.word[5] ^= 1;
    expect_refused(&one, &other, "another half that changes");
    other = encoded(0x123456780, 20);
    other.word[5] = one.word[5];
    expect_refused(&one, &other, "no images anywhere");
    other.word[5] = pair(13, 20);
    expect_refused(&one, &other, "images - 1 once, images then");
    other.word[5] = pair(13, 39);
    expect_refused(&one, &other, "images in other units");
}
