/*
 * What is asked of libcuda. The linker sends the library's look-ups through
 * this file, which plays a libcuda that keeps count and can be told to fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cuda_maps.h"

/* ---- The libcuda that is played ---------------------------------------- */

static bool has_library = true;
static const char *missing; /* a function it lacks */
static const char *failing; /* one that returns 1 */

static int contexts, pushed; /* retained and current now */
static int entered;          /* how often one was retained */

/* What the last map was asked to be. */
static struct {
    bool im2col;
    int type, interleave, swizzle, l2_promotion, fill;
    uint32_t rank, box[4], channels, pixels, step[4];
    uint64_t size[4], stride[3];
    int lower[2], upper[2];
} asked;

static int result_of(const char *name)
{
    return failing && strcmp(failing, name) == 0;
}

static int play_init(unsigned flags)
{
    cr_assert_eq(flags, 0);
    return result_of("cuInit");
}

static int play_retain(void **context, int device)
{
    cr_assert_eq(device, 0);
    if (result_of("cuDevicePrimaryCtxRetain"))
        return 1;
    ++contexts;
    ++entered;
    *context = &contexts;
    return 0;
}

static int play_release(int device)
{
    cr_assert_eq(device, 0);
    cr_assert_eq(pushed, 0, "released while it is current");
    --contexts;
    return 0;
}

static int play_push(void *context)
{
    cr_assert_eq(context, &contexts);
    if (result_of("cuCtxPushCurrent_v2"))
        return 1;
    ++pushed;
    return 0;
}

static int play_pop(void **context)
{
    *context = &contexts;
    --pushed;
    return 0;
}

/* What both kinds of map have. */
static void encode_common(uint64_t *map, int type, uint32_t rank, void *address,
                          const uint64_t *size, const uint64_t *stride,
                          const uint32_t *step)
{
    cr_assert_eq(pushed, 1, "encoded without a context");
    cr_assert_eq((uintptr_t)map % 64, 0);
    cr_assert_gt(size[3], 0);
    asked.type = type;
    asked.rank = rank;
    memcpy(asked.size, size, sizeof asked.size);
    memcpy(asked.stride, stride, sizeof asked.stride);
    memcpy(asked.step, step, sizeof asked.step);
    memset(map, 0, 128);
    map[0] = (uintptr_t)address;
    map[1] = 99;
    map[5] = (size[3] - 1) << 32 | (size[2] - 1);
}

static int play_tiled(void *map, int type, uint32_t rank, void *address,
                      const uint64_t *size, const uint64_t *stride,
                      const uint32_t *box, const uint32_t *step, int interleave,
                      int swizzle, int l2_promotion, int fill)
{
    encode_common(map, type, rank, address, size, stride, step);
    asked.im2col = false;
    memcpy(asked.box, box, sizeof asked.box);
    asked.interleave = interleave;
    asked.swizzle = swizzle;
    asked.l2_promotion = l2_promotion;
    asked.fill = fill;
    return result_of("cuTensorMapEncodeTiled");
}

static int play_im2col(void *map, int type, uint32_t rank, void *address,
                       const uint64_t *size, const uint64_t *stride,
                       const int *lower, const int *upper, uint32_t channels,
                       uint32_t pixels, const uint32_t *step, int interleave,
                       int swizzle, int l2_promotion, int fill)
{
    encode_common(map, type, rank, address, size, stride, step);
    asked.im2col = true;
    memcpy(asked.lower, lower, sizeof asked.lower);
    memcpy(asked.upper, upper, sizeof asked.upper);
    asked.channels = channels;
    asked.pixels = pixels;
    asked.interleave = interleave;
    asked.swizzle = swizzle;
    asked.l2_promotion = l2_promotion;
    asked.fill = fill;
    return result_of("cuTensorMapEncodeIm2col");
}

typedef void any_fn(void);

static const struct {
    const char *name;
    any_fn *function;
} functions[] = {
    {"cuInit", (any_fn *)play_init},
    {"cuDevicePrimaryCtxRetain", (any_fn *)play_retain},
    {"cuDevicePrimaryCtxRelease_v2", (any_fn *)play_release},
    {"cuCtxPushCurrent_v2", (any_fn *)play_push},
    {"cuCtxPopCurrent_v2", (any_fn *)play_pop},
    {"cuTensorMapEncodeTiled", (any_fn *)play_tiled},
    {"cuTensorMapEncodeIm2col", (any_fn *)play_im2col},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

clconv_os_library *__wrap_clconv_os_library_get(const char *name);
bool __wrap_clconv_os_function(clconv_os_library *library, const char *name,
                               void *function);

clconv_os_library *__wrap_clconv_os_library_get(const char *name)
{
    cr_assert_str_eq(name, "libcuda.so.1");
    return has_library ? (clconv_os_library *)&has_library : NULL;
}

bool __wrap_clconv_os_function(clconv_os_library *library, const char *name,
                               void *function)
{
    cr_assert_eq((void *)library, &has_library);
    if (missing && strcmp(missing, name) == 0)
        return false;
    for (int i = 0; i < FUNCTIONS; ++i)
        if (strcmp(functions[i].name, name) == 0) {
            memcpy(function, &functions[i].function, sizeof(any_fn *));
            return true;
        }
    return false;
}

/* ---- Maps -------------------------------------------------------------- */

static const clconv_tensor_map tiled = {
    .size = {48, 14, 12, 10},
    .stride = {56, 784, 9408},
    .box = {32, 8, 4, 2},
    .swizzle = 64,
};

static const clconv_tensor_map im2col = {
    .im2col = true,
    .size = {48, 14, 12, 10},
    .stride = {56, 784, 9408},
    .box = {32, 256},
    .lower = {-1, -2},
    .upper = {1, 2},
    .step = {2, 3},
    .swizzle = 128,
};

static void encode(clconv_cuda_maps *cuda, const clconv_tensor_map *m)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_map_template t;
    uint64_t word[CLCONV_TENSOR_MAP_WORDS];
    cr_assert(clconv_cuda_maps_encode(cuda, m, &t, &why), "%s", why.data);
    clconv_text_free(&why);
    clconv_map_template_fill(&t, 3, word);
    cr_assert_eq(word[0], 0);
    cr_assert_eq(word[1], 99);
    cr_assert_eq(word[5], (uint64_t)(3 - 1) << 32 | (12 - 1));
}

static void expect_common(int swizzle)
{
    cr_assert_eq(asked.type, 6, "not fp16");
    cr_assert_eq(asked.rank, 4);
    cr_assert_arr_eq(asked.size, ((uint64_t[]){48, 14, 12}),
                     3 * sizeof(uint64_t));
    cr_assert_arr_eq(asked.stride, ((uint64_t[]){112, 1568, 18816}),
                     sizeof asked.stride);
    cr_assert_eq(asked.interleave, 0);
    cr_assert_eq(asked.swizzle, swizzle);
    cr_assert_eq(asked.l2_promotion, 2);
    cr_assert_eq(asked.fill, 0);
}

Test(cuda_maps, a_tiled_map_is_asked_for_in_the_drivers_units)
{
    clconv_cuda_maps cuda = {0};
    encode(&cuda, &tiled);
    clconv_cuda_maps_leave(&cuda);
    expect_common(2);
    cr_assert_not(asked.im2col);
    cr_assert_arr_eq(asked.box, ((uint32_t[]){32, 8, 4, 2}), sizeof asked.box);
    cr_assert_arr_eq(asked.step, ((uint32_t[]){1, 1, 1, 1}), sizeof asked.step);
}

Test(cuda_maps, so_is_an_im2col_map)
{
    clconv_cuda_maps cuda = {0};
    encode(&cuda, &im2col);
    clconv_cuda_maps_leave(&cuda);
    expect_common(3);
    cr_assert(asked.im2col);
    cr_assert_eq(asked.channels, 32);
    cr_assert_eq(asked.pixels, 256);
    cr_assert_arr_eq(asked.lower, im2col.lower, sizeof asked.lower);
    cr_assert_arr_eq(asked.upper, im2col.upper, sizeof asked.upper);
    cr_assert_arr_eq(asked.step, ((uint32_t[]){1, 2, 3, 1}), sizeof asked.step);
}

Test(cuda_maps, a_map_of_no_images_is_made_from_one)
{
    clconv_cuda_maps cuda = {0};
    clconv_tensor_map empty = tiled;
    empty.size[3] = 0;
    encode(&cuda, &empty);
    clconv_cuda_maps_leave(&cuda);
}

Test(cuda_maps, many_maps_take_one_context_that_is_given_back)
{
    clconv_cuda_maps cuda = {0};
    clconv_cuda_maps_leave(&cuda); /* nothing to leave */
    cr_assert_eq(entered, 0);
    encode(&cuda, &tiled);
    encode(&cuda, &im2col);
    cr_assert_eq(contexts, 1);
    clconv_cuda_maps_leave(&cuda);
    cr_assert_eq(entered, 1);
    cr_assert_eq(contexts, 0);
    cr_assert_eq(pushed, 0);
}

/* ---- Failures ---------------------------------------------------------- */

static char logged[512];

static void keep(clconv_log_level level, const char *message, void *user)
{
    (void)level;
    (void)user;
    strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

static void expect_unusable(const char *reason)
{
    const clconv_log log = {keep, NULL};
    logged[0] = '\0';
    clconv_map_template maps[CLCONV_CUDA_SAMPLES];
    cr_assert_not(clconv_cuda_maps_work(maps, &log), "%s", reason);
    cr_assert_not_null(strstr(logged, "tensor maps are not used: "), "%s",
                       logged);
    cr_assert_not_null(strstr(logged, reason), "\"%s\" in \"%s\"", reason,
                       logged);
    cr_assert_eq(contexts, 0, "%s", reason);
    cr_assert_eq(pushed, 0, "%s", reason);
}

Test(cuda_maps, they_work_without_a_word)
{
    const clconv_log log = {keep, NULL};
    clconv_map_template maps[CLCONV_CUDA_SAMPLES];
    cr_assert(clconv_cuda_maps_work(maps, &log));
    cr_assert_str_eq(logged, "");
    cr_assert_eq(entered, 1);
    cr_assert_eq(contexts, 0);
}

Test(cuda_maps, without_libcuda_the_log_says_so)
{
    has_library = false;
    expect_unusable("there is no libcuda.so.1");
}

Test(cuda_maps, a_missing_function_is_named)
{
    for (int i = 0; i < FUNCTIONS; ++i) {
        missing = functions[i].name;
        expect_unusable(missing);
    }
}

Test(cuda_maps, so_is_one_that_fails)
{
    static const char *const names[] = {
        "cuInit",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2",
        "cuTensorMapEncodeTiled",
        "cuTensorMapEncodeIm2col",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        failing = names[i];
        expect_unusable(failing);
    }
}
