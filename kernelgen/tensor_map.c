/*
 * Limits as the CUDA driver API states them for cuTensorMapEncodeTiled and
 * cuTensorMapEncodeIm2col with 2-byte elements and four dimensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tensor_map.h"

#include <string.h>

#define MOST_SIZE ((int64_t)1 << 32)
#define MOST_STRIDE_BYTES ((int64_t)1 << 40)

static bool within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool is_box_legal(const clconv_tensor_map *m)
{
    bool legal = 2 * m->box[0] <= m->swizzle && m->box[0] % 8 == 0;
    if (m->im2col)
        return legal && within(m->box[1], 1, 1024);
    for (int i = 0; i < 4; ++i)
        legal = legal && within(m->box[i], 1, 256);
    return legal;
}

static bool is_window_legal(const clconv_tensor_map *m)
{
    bool legal = true;
    for (int i = 0; i < 2; ++i)
        legal = legal && within(m->lower[i], -128, 127) &&
                within(m->upper[i], -128, 127) && within(m->step[i], 1, 8);
    return legal;
}

bool clconv_tensor_map_legal(const clconv_tensor_map *m)
{
    bool legal = is_box_legal(m) && (!m->im2col || is_window_legal(m));
    for (int i = 0; i < 4; ++i)
        legal = legal && within(m->size[i], 1, MOST_SIZE);
    for (int i = 0; i < 3; ++i)
        legal = legal && m->stride[i] % 8 == 0 &&
                within(2 * m->stride[i], 16, MOST_STRIDE_BYTES - 1);
    return legal;
}

/* Two 32-bit numbers, low first. */
static uint64_t pair(int low, int high)
{
    return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

void clconv_tensor_map_describe(const clconv_tensor_map *m,
                                uint64_t word[CLCONV_TENSOR_MAP_WORDS])
{
    memset(word, 0, CLCONV_TENSOR_MAP_WORDS * sizeof *word);
    for (int i = 0; i < 4; ++i)
        word[1 + i] = (uint64_t)m->size[i];
    for (int i = 0; i < 3; ++i)
        word[5 + i] = (uint64_t)m->stride[i];
    word[8] = pair(m->box[0], m->box[1]);
    word[9] = pair(m->box[2], m->box[3]);
    word[10] = pair(m->lower[0], m->lower[1]);
    word[11] = pair(m->upper[0], m->upper[1]);
    word[12] = pair(m->step[0], m->step[1]);
    word[13] = pair(m->swizzle, m->im2col);
}
