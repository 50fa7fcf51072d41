/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pack.h"

#include "integers.h"

/* Rows and columns of an image; of W: r and s. */
static int64_t rows_of(const clconv_problem *p, clconv_tensor tensor)
{
    return tensor == CLCONV_DY ? p->p : tensor == CLCONV_X ? p->h : p->r;
}

static int64_t columns_of(const clconv_problem *p, clconv_tensor tensor)
{
    return tensor == CLCONV_DY ? p->q : tensor == CLCONV_X ? p->w : p->s;
}

static int64_t group_channels(const clconv_problem *p, clconv_tensor tensor)
{
    return tensor == CLCONV_DY ? p->group_k : p->group_c;
}

/* With one pixel an image, both layouts are the same. */
bool clconv_pack_is_plain(const clconv_problem *p, clconv_tensor tensor)
{
    bool channels_last = p->layout == CLCONV_NHWC ||
                         rows_of(p, tensor) * columns_of(p, tensor) == 1;
    return channels_last &&
           group_channels(p, tensor) % CLCONV_PACK_CHANNELS == 0;
}

int64_t clconv_pack_channels(const clconv_problem *p, clconv_tensor tensor)
{
    return clconv_round_up(group_channels(p, tensor), CLCONV_PACK_CHANNELS);
}

int64_t clconv_pack_elements(const clconv_problem *p, clconv_tensor tensor)
{
    int64_t images = tensor == CLCONV_W ? p->k : p->n;
    return images * clconv_pack_get_strides(p, tensor).image;
}

clconv_pack_strides clconv_pack_get_strides(const clconv_problem *p,
                                            clconv_tensor tensor)
{
    int64_t channels = clconv_pack_channels(p, tensor);
    int64_t column = tensor == CLCONV_W ? channels : channels * p->groups;
    int64_t row = column * columns_of(p, tensor);
    int64_t image = row * rows_of(p, tensor);
    return (clconv_pack_strides){
        .image = image,
        .row = row,
        .column = column,
        .group = tensor == CLCONV_W ? image * p->group_k : channels,
    };
}
