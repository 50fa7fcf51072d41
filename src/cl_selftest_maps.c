/*
 * The copy unit: it loads from a tensor whose every half is another, by a map of
 * each kind, beyond the tensor's edges and from one image to the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>

#include "cl_selftest.h"
#include "products.h"
#include "selftest.h"

/* Columns from before the first, rows and images to past the last; and pixels
 * from the end of an image on. */
static const clconv_selftest_load loads[CLCONV_CUDA_SAMPLES] = {
    {.map = &clconv_cuda_samples[0], .from = {-2, 7, 9}},
    {.map = &clconv_cuda_samples[1], .from = {9, 7, 8}, .tap = {0, 2}},
};

/* Of a map that the device completes. */
#define MAP_BYTES (CLCONV_TENSOR_MAP_WORDS * sizeof(uint64_t))

/* ---- What should come --------------------------------------------------- */

/* Where the half at channel, column, row, image lies; -1: outside. */
static int64_t place_of(const clconv_tensor_map *m, const int64_t at[4])
{
    int64_t place = at[0];
    for (int i = 0; i < 4; ++i) {
        if (at[i] < 0 || at[i] >= m->size[i])
            return -1;
        place += i ? at[i] * m->stride[i - 1] : 0;
    }
    return place;
}

/* Column, row and image of the i-th line of a box. */
static void find_in_box(const clconv_selftest_load *load, int i, int64_t at[4])
{
    const int *box = load->map->box;
    at[1] = load->from[0] + i % box[1];
    at[2] = load->from[1] + i / box[1] % box[2];
    at[3] = load->from[2] + i / box[1] / box[2];
}

/* Of the i-th pixel from a place on, in a window. */
static void find_pixel(const clconv_selftest_load *load, int i, int64_t at[4])
{
    const clconv_tensor_map *m = load->map;
    int64_t count[2], first[2];
    for (int d = 0; d < 2; ++d) {
        int64_t last = m->size[1 + d] - 1 + m->upper[d];
        count[d] = (last - m->lower[d]) / m->step[d] + 1;
        first[d] = (load->from[d] - m->lower[d]) / m->step[d];
    }
    int64_t column = first[0] + i, row = first[1] + column / count[0];
    at[1] = m->lower[0] + column % count[0] * m->step[0] + load->tap[0];
    at[2] = m->lower[1] + row % count[1] * m->step[1] + load->tap[1];
    at[3] = load->from[2] + row / count[1];
}

/* Never 0, which is what stands for halves outside. */
static cl_ushort half_at(int64_t place)
{
    return (cl_ushort)(2 * place + 1);
}

static cl_ushort expected(const clconv_selftest_load *load, int i)
{
    const int channels = load->map->box[0];
    int64_t at[4] = {i % channels};
    if (load->map->im2col)
        find_pixel(load, i / channels, at);
    else
        find_in_box(load, i / channels, at);
    int64_t place = place_of(load->map, at);
    return place < 0 ? 0 : half_at(place);
}

static clconv_status check(const clconv_selftest_load *load,
                           const cl_ushort *got)
{
    int count = clconv_selftest_load_halves(load);
    for (int i = 0; i < count; ++i)
        if (got[i] != expected(load, i))
            return clconv_fail(CLCONV_UNSUPPORTED,
                               "the copy unit brings %04x as half %d of %s, "
                               "not %04x",
                               got[i], i, load->map->im2col ? "pixels" : "a box",
                               expected(load, i));
    return CLCONV_OK;
}

/* ---- On the device ------------------------------------------------------ */

static int64_t tensor_halves(const clconv_tensor_map *m)
{
    return m->size[3] * m->stride[2];
}

static int out_halves(void)
{
    return clconv_selftest_load_halves(&loads[0]) +
           clconv_selftest_load_halves(&loads[1]);
}

static clconv_status load(const clconv_trial_place *place, const char *source,
                          const clconv_map_template maps[CLCONV_CUDA_SAMPLES],
                          cl_ushort *x, size_t halves, cl_ushort *out)
{
    uint64_t memory[2 * CLCONV_TENSOR_MAP_WORDS] = {0};
    uint64_t word[2][CLCONV_TENSOR_MAP_WORDS];
    for (int i = 0; i < CLCONV_CUDA_SAMPLES; ++i)
        clconv_map_template_fill(
            &maps[i], clconv_map_images(&clconv_cuda_samples[i]), word[i]);
    const clconv_trial_arg args[] = {
        {x, halves * sizeof *x, false},
        {memory, sizeof memory, false},
        {word[0], MAP_BYTES, true},
        {word[1], MAP_BYTES, true},
        {out, (size_t)out_halves() * sizeof *out, false},
    };
    clconv_status status = clconv_trial_run(place, "maps_selftest", source,
                                            CLCONV_WARPGROUP, args, 5);
    if (status == CLCONV_OK)
        status = check(&loads[0], out);
    if (status == CLCONV_OK)
        status = check(&loads[1], out + clconv_selftest_load_halves(&loads[0]));
    return status;
}

static clconv_status
test_maps(const clconv_trial_place *place,
          const clconv_map_template maps[CLCONV_CUDA_SAMPLES])
{
    int64_t halves = 0;
    for (int i = 0; i < CLCONV_CUDA_SAMPLES; ++i) {
        int64_t its = tensor_halves(&clconv_cuda_samples[i]);
        halves = its > halves ? its : halves;
    }
    cl_ushort *x = calloc((size_t)halves, sizeof *x);
    cl_ushort *out = calloc((size_t)out_halves(), sizeof *out);
    char *source = clconv_maps_selftest_source(loads);
    for (int64_t i = 0; x && i < halves; ++i)
        x[i] = half_at(i);
    clconv_status status =
        x && out && source
            ? load(place, source, maps, x, (size_t)halves, out)
            : clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a self-test");
    free(source);
    free(out);
    free(x);
    return status;
}

bool clconv_selftest_maps(const clconv_trial_place *place,
                          const clconv_map_template maps[CLCONV_CUDA_SAMPLES],
                          const clconv_log *log)
{
    clconv_status status = test_maps(place, maps);
    if (status != CLCONV_OK)
        clconv_log_info(log, "tensor maps are not used: %s",
                        clconv_last_error());
    return status == CLCONV_OK;
}
