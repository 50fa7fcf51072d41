/*
 * Everything that the library asks of libcuda. It is found at run time, so the
 * functions are declared here, as the CUDA driver API has them.
 *
 * A map is encoded for two addresses and two numbers of images; a template
 * comes of it if these are where they can be replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda_maps.h"

#include <stdalign.h>
#include <string.h>

/* The encoding is the same for every device. */
#define DEVICE 0

#define DIMENSIONS 4

/* Values of the driver API's enumerations. */
enum {
    CUDA_SUCCESS = 0,
    TYPE_FLOAT16 = 6,
    INTERLEAVE_NONE = 0,
    SWIZZLE_32B = 1,
    SWIZZLE_64B = 2,
    SWIZZLE_128B = 3,
    L2_PROMOTION_128B = 2,
    FILL_ZEROS = 0
};

typedef int init_fn(unsigned flags);
typedef int retain_fn(void **context, int device);
typedef int release_fn(int device);
typedef int push_fn(void *context);
typedef int pop_fn(void **context);

/* map is aligned to 64 bytes; sizes, boxes and steps are elements, innermost
 * dimension first; strides are bytes, of all dimensions but the first. */
typedef int encode_tiled_fn(void *map, int type, uint32_t rank, void *address,
                            const uint64_t *size, const uint64_t *stride,
                            const uint32_t *box, const uint32_t *step,
                            int interleave, int swizzle, int l2_promotion,
                            int fill);
typedef int encode_im2col_fn(void *map, int type, uint32_t rank, void *address,
                             const uint64_t *size, const uint64_t *stride,
                             const int *lower, const int *upper,
                             uint32_t channels, uint32_t pixels,
                             const uint32_t *step, int interleave, int swizzle,
                             int l2_promotion, int fill);

/* ---- Coming and going -------------------------------------------------- */

static bool find(const clconv_cuda_maps *cuda, const char *name, void *function,
                 clconv_text *why)
{
    if (clconv_os_function(cuda->library, name, function))
        return true;
    clconv_text_printf(why, "libcuda has no %s", name);
    return false;
}

static bool succeeded(const char *name, int result, clconv_text *why)
{
    if (result != CUDA_SUCCESS)
        clconv_text_printf(why, "%s returned %d", name, result);
    return result == CUDA_SUCCESS;
}

/* What leaving takes, before we enter. */
static bool find_way_out(const clconv_cuda_maps *cuda, pop_fn **pop,
                         release_fn **release, clconv_text *why)
{
    return find(cuda, "cuCtxPopCurrent_v2", pop, why) &&
           find(cuda, "cuDevicePrimaryCtxRelease_v2", release, why);
}

static bool make_current(clconv_cuda_maps *cuda, clconv_text *why)
{
    init_fn *init;
    retain_fn *retain;
    push_fn *push;
    pop_fn *pop;
    release_fn *release;
    void *context;
    if (!find(cuda, "cuInit", &init, why) ||
        !find(cuda, "cuDevicePrimaryCtxRetain", &retain, why) ||
        !find(cuda, "cuCtxPushCurrent_v2", &push, why) ||
        !find_way_out(cuda, &pop, &release, why) ||
        !succeeded("cuInit", init(0), why) ||
        !succeeded("cuDevicePrimaryCtxRetain", retain(&context, DEVICE), why))
        return false;
    cuda->entered = succeeded("cuCtxPushCurrent_v2", push(context), why);
    if (!cuda->entered)
        release(DEVICE);
    return cuda->entered;
}

static bool enter(clconv_cuda_maps *cuda, clconv_text *why)
{
    if (cuda->entered)
        return true;
    cuda->library = clconv_os_library_get("libcuda.so.1");
    if (cuda->library)
        return make_current(cuda, why);
    clconv_text_puts(why, "there is no libcuda.so.1");
    return false;
}

void clconv_cuda_maps_leave(clconv_cuda_maps *cuda)
{
    pop_fn *pop;
    release_fn *release;
    void *context;
    clconv_text ignored = CLCONV_TEXT_EMPTY;
    if (cuda->entered && find_way_out(cuda, &pop, &release, &ignored)) {
        pop(&context);
        release(DEVICE);
    }
    cuda->entered = false;
    clconv_text_free(&ignored);
}

/* ---- Encoding ---------------------------------------------------------- */

/* A map's numbers in the driver API's types. */
typedef struct arguments {
    alignas(64) uint64_t word[CLCONV_TENSOR_MAP_WORDS];
    uint64_t size[DIMENSIONS], stride[DIMENSIONS - 1];
    uint32_t box[DIMENSIONS], step[DIMENSIONS];
    void *address;
    int swizzle;
} arguments;

static int swizzle_of(int bytes)
{
    return bytes == 128  ? SWIZZLE_128B
           : bytes == 64 ? SWIZZLE_64B
                         : SWIZZLE_32B;
}

static arguments arguments_of(const clconv_tensor_map *m,
                              const clconv_encoded_map *want)
{
    arguments a = {
        .step = {1, 1, 1, 1},
        .address = (void *)(uintptr_t)want->address,
        .swizzle = swizzle_of(m->swizzle),
    };
    for (int i = 0; i < DIMENSIONS; ++i) {
        a.size[i] = (uint64_t)(i < 3 ? m->size[i] : want->images);
        a.box[i] = (uint32_t)m->box[i];
    }
    for (int i = 0; i < DIMENSIONS - 1; ++i)
        a.stride[i] = 2 * (uint64_t)m->stride[i];
    for (int i = 0; m->im2col && i < 2; ++i)
        a.step[1 + i] = (uint32_t)m->step[i];
    return a;
}

static bool encode_tiled(const clconv_cuda_maps *cuda, arguments *a,
                         clconv_text *why)
{
    encode_tiled_fn *encode;
    return find(cuda, "cuTensorMapEncodeTiled", &encode, why) &&
           succeeded("cuTensorMapEncodeTiled",
                     encode(a->word, TYPE_FLOAT16, DIMENSIONS, a->address,
                            a->size, a->stride, a->box, a->step, INTERLEAVE_NONE,
                            a->swizzle, L2_PROMOTION_128B, FILL_ZEROS),
                     why);
}

static bool encode_im2col(const clconv_cuda_maps *cuda,
                          const clconv_tensor_map *m, arguments *a,
                          clconv_text *why)
{
    encode_im2col_fn *encode;
    return find(cuda, "cuTensorMapEncodeIm2col", &encode, why) &&
           succeeded("cuTensorMapEncodeIm2col",
                     encode(a->word, TYPE_FLOAT16, DIMENSIONS, a->address,
                            a->size, a->stride, m->lower, m->upper, a->box[0],
                            a->box[1], a->step, INTERLEAVE_NONE, a->swizzle,
                            L2_PROMOTION_128B, FILL_ZEROS),
                     why);
}

/* Fills in the words of a map for this address and these images. */
static bool encode(const clconv_cuda_maps *cuda, const clconv_tensor_map *m,
                   clconv_encoded_map *out, clconv_text *why)
{
    arguments a = arguments_of(m, out);
    bool encoded = m->im2col ? encode_im2col(cuda, m, &a, why)
                             : encode_tiled(cuda, &a, why);
    if (encoded)
        memcpy(out->word, a.word, sizeof out->word);
    return encoded;
}

bool clconv_cuda_maps_encode(clconv_cuda_maps *cuda, const clconv_tensor_map *m,
                             clconv_map_template *out, clconv_text *why)
{
    /* Two addresses with few bits in common, and images that no tensor has. */
    clconv_encoded_map one = {0x0000123456789a00, clconv_map_images(m), {0}};
    clconv_encoded_map other = {0x0000edcba9876540, 0x6db6db6d, {0}};
    if (!enter(cuda, why) || !encode(cuda, m, &one, why) ||
        !encode(cuda, m, &other, why))
        return false;
    if (clconv_map_template_derive(&one, &other, out))
        return true;
    clconv_text_puts(why, "its words are not laid out as expected");
    return false;
}

/* ---- The check --------------------------------------------------------- */

const clconv_tensor_map clconv_cuda_samples[CLCONV_CUDA_SAMPLES] = {
    {
        .size = {64, 14, 12, 10},
        .stride = {64, 64 * 14, 64 * 14 * 12},
        .box = {64, 8, 8, 2},
        .swizzle = 128,
    },
    {
        .im2col = true,
        .size = {32, 14, 12, 10},
        .stride = {32, 32 * 14, 32 * 14 * 12},
        .box = {32, 64},
        .lower = {-1, -1},
        .upper = {-1, -1},
        .step = {1, 2},
        .swizzle = 64,
    },
};

bool clconv_cuda_maps_work(clconv_map_template out[CLCONV_CUDA_SAMPLES],
                           const clconv_log *log)
{
    clconv_cuda_maps cuda = {0};
    clconv_text why = CLCONV_TEXT_EMPTY;
    bool work = true;
    for (int i = 0; work && i < CLCONV_CUDA_SAMPLES; ++i)
        work = clconv_cuda_maps_encode(&cuda, &clconv_cuda_samples[i], &out[i],
                                       &why);
    clconv_cuda_maps_leave(&cuda);
    if (!work)
        clconv_log_info(log, "tensor maps are not used: %s",
                        why.data ? why.data : "no memory");
    clconv_text_free(&why);
    return work;
}
