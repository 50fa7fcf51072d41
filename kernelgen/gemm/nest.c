/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "nest.h"

#include <stdio.h>
#include <string.h>

/* A filter with its holes is no larger than the padded image. */
bool clconv_nest_covers(const clconv_problem *p)
{
    int64_t height = p->h + p->pad_top + p->pad_bottom;
    int64_t width = p->w + p->pad_left + p->pad_right;
    return height < CLCONV_NEST_LIMIT && width < CLCONV_NEST_LIMIT;
}

clconv_nest clconv_nest_packed(clconv_nest nest, bool along_k)
{
    nest.a.along_k = along_k;
    nest.b.along_k = false;
    return nest;
}

void clconv_nest_open_function(clconv_emit *e, const char *head)
{
    clconv_emit_line(e, "__attribute__((always_inline))");
    clconv_emit_open(e, head);
}

typedef enum stride { IMAGE, ROW, COLUMN, CHANNEL, CHANNELS, STRIDES } stride;

static const char *const stride_names[STRIDES] = {
    [IMAGE] = "image",     [ROW] = "row",           [COLUMN] = "column",
    [CHANNEL] = "channel", [CHANNELS] = "channels",
};

/* Of packed copies. */
static const char *const packed_strides[][STRIDES] = {
    [CLCONV_DY] =
        {
            [IMAGE] = "((long)s->p * s->q * s->groups * padded(s->group_k))",
            [ROW] = "((long)s->q * s->groups * padded(s->group_k))",
            [COLUMN] = "((long)s->groups * padded(s->group_k))",
            [CHANNEL] = "1",
            [CHANNELS] = "padded(s->group_k)",
        },
    [CLCONV_X] =
        {
            [IMAGE] = "((long)s->h * s->w * s->groups * padded(s->group_c))",
            [ROW] = "((long)s->w * s->groups * padded(s->group_c))",
            [COLUMN] = "((long)s->groups * padded(s->group_c))",
            [CHANNEL] = "1",
            [CHANNELS] = "padded(s->group_c)",
        },
    [CLCONV_W] =
        {
            [IMAGE] = "((long)s->r * s->s * padded(s->group_c))",
            [ROW] = "((long)s->s * padded(s->group_c))",
            [COLUMN] = "(long)padded(s->group_c)",
            [CHANNEL] = "1",
            [CHANNELS] = "padded(s->group_c)",
        },
};

/* Of the tensor: a member of sizes_t. */
static void format_plain(const char *tensor, stride i, char *out, size_t size)
{
    if (i == CHANNELS)
        snprintf(out, size, "s->group_%s", strcmp(tensor, "dy") ? "c" : "k");
    else
        snprintf(out, size, "s->%s_%s", tensor, stride_names[i]);
}

void clconv_nest_set_strides(clconv_emit *e, clconv_tensor tensor, bool packed)
{
    const char *name = clconv_tensor_name(tensor);
    char hole[32], plain[32];
    for (stride i = IMAGE; i < STRIDES; ++i) {
        snprintf(hole, sizeof hole, "%s_%s", name, stride_names[i]);
        format_plain(name, i, plain, sizeof plain);
        clconv_emit_set_text(e, hole,
                             packed ? packed_strides[tensor][i] : plain);
    }
}
