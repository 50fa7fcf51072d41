/*
 * Tensor maps from the driver that is there: what a template is filled in to
 * is what the driver makes of those images. Skips without NVIDIA's libcuda.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cl_query.h"
#include "cuda_maps.h"
#include "host.h"

static const clconv_tensor_map maps[] = {
    {
        .size = {64, 28, 28, 256},
        .stride = {64, 64 * 28, 64 * 28 * 28},
        .box = {64, 8, 8, 2},
        .swizzle = 128,
    },
    {
        .size = {32, 1000, 7, 1},
        .stride = {40, 40 * 1000, 40 * 1000 * 7},
        .box = {16, 256, 1, 1},
        .swizzle = 32,
    },
    {
        .im2col = true,
        .size = {128, 14, 15, 33},
        .stride = {128, 128 * 14, 128 * 14 * 15},
        .box = {64, 256},
        .lower = {-3, -1},
        .upper = {-3, 1},
        .step = {2, 1},
        .swizzle = 128,
    },
};
enum { MAPS = sizeof maps / sizeof *maps };

static int query_sm(void)
{
    host h;
    clconv_device facts;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    cr_assert_eq(clconv_query_device(h.context, h.device, false, &facts),
                 CLCONV_OK);
    host_close(&h);
    return facts.nv_sm;
}

static void skip_without_maps(void)
{
    const clconv_log quiet = {NULL, NULL};
    clconv_map_template samples[CLCONV_CUDA_SAMPLES];
    if (query_sm() < 90)
        cr_skip_test("no NVIDIA device with tensor maps");
    cr_assert(clconv_cuda_maps_work(samples, &quiet));
}

/* The words for so many images of a map whose own number is another. */
static void encode(clconv_cuda_maps *cuda, clconv_tensor_map map,
                   int64_t of_template, int64_t images,
                   uint64_t word[CLCONV_TENSOR_MAP_WORDS])
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_map_template t;
    map.size[3] = of_template;
    cr_assert(clconv_cuda_maps_encode(cuda, &map, &t, &why), "%s", why.data);
    clconv_text_free(&why);
    clconv_map_template_fill(&t, images, word);
}

Test(tensor_maps, a_template_serves_any_number_of_images)
{
    clconv_cuda_maps cuda = {0};
    skip_without_maps();
    for (int i = 0; i < MAPS; ++i)
        for (int64_t images = 1; images < 1 << 20; images *= 3) {
            uint64_t own[CLCONV_TENSOR_MAP_WORDS];
            uint64_t other[CLCONV_TENSOR_MAP_WORDS];
            cr_assert(clconv_tensor_map_legal(&maps[i]), "map %d", i);
            encode(&cuda, maps[i], images, images, own);
            encode(&cuda, maps[i], 77, images, other);
            cr_assert_arr_eq(own, other, sizeof own, "map %d, %jd images", i,
                             (intmax_t)images);
        }
    clconv_cuda_maps_leave(&cuda);
}

Test(tensor_maps, leaving_and_coming_back_gives_the_same)
{
    uint64_t first[CLCONV_TENSOR_MAP_WORDS], second[CLCONV_TENSOR_MAP_WORDS];
    clconv_cuda_maps cuda = {0};
    skip_without_maps();
    encode(&cuda, maps[0], 5, 5, first);
    clconv_cuda_maps_leave(&cuda);
    encode(&cuda, maps[0], 5, 5, second);
    clconv_cuda_maps_leave(&cuda);
    cr_assert_arr_eq(first, second, sizeof first);
}
