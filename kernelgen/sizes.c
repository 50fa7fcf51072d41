/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sizes.h"

#include <string.h>

void clconv_sizes_fill(const clconv_problem *p, int64_t batch, clconv_sizes *out)
{
    clconv_strides dy = clconv_problem_strides(p, CLCONV_DY);
    clconv_strides x = clconv_problem_strides(p, CLCONV_X);
    clconv_strides w = clconv_problem_strides(p, CLCONV_W);
    *out = (clconv_sizes){
        .dy_image = dy.image,
        .dy_channel = dy.channel,
        .dy_row = dy.row,
        .dy_column = dy.column,
        .x_image = x.image,
        .x_channel = x.channel,
        .x_row = x.row,
        .x_column = x.column,
        .w_image = w.image,
        .w_channel = w.channel,
        .w_row = w.row,
        .w_column = w.column,
        .n = (int32_t)batch,
        .c = (int32_t)p->c,
        .h = (int32_t)p->h,
        .w = (int32_t)p->w,
        .k = (int32_t)p->k,
        .r = (int32_t)p->r,
        .s = (int32_t)p->s,
        .p = (int32_t)p->p,
        .q = (int32_t)p->q,
        .stride_h = (int32_t)p->stride_h,
        .stride_w = (int32_t)p->stride_w,
        .pad_top = (int32_t)p->pad_top,
        .pad_left = (int32_t)p->pad_left,
        .dilation_h = (int32_t)p->dilation_h,
        .dilation_w = (int32_t)p->dilation_w,
        .groups = (int32_t)p->groups,
        .group_c = (int32_t)p->group_c,
        .group_k = (int32_t)p->group_k,
    };
}

void clconv_sizes_emit(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
#define MEMBER(name) clconv_emit_line(e, "    long " #name ";");
    CLCONV_SIZES_LONG(MEMBER)
#undef MEMBER
#define MEMBER(name) clconv_emit_line(e, "    int " #name ";");
    CLCONV_SIZES_INT(MEMBER)
#undef MEMBER
    clconv_emit_line(e, "} sizes_t;");
    clconv_emit_blank(e);
}

static void emit_member(clconv_emit *e, const char *name, int64_t value)
{
    clconv_emit_set_text(e, "member", name);
    clconv_emit_set(e, "value", value);
    clconv_emit_line(e, strcmp(name, "n") == 0 ? "    .n = batch,"
                                               : "    .$member = $value,");
}

void clconv_sizes_emit_baked(clconv_emit *e, const clconv_problem *p)
{
    clconv_sizes sizes;
    clconv_sizes_fill(p, p->n, &sizes);
    clconv_emit_line(e, "const sizes_t sizes = {");
#define MEMBER(name) emit_member(e, #name, sizes.name);
    CLCONV_SIZES_LONG(MEMBER)
    CLCONV_SIZES_INT(MEMBER)
#undef MEMBER
    clconv_emit_line(e, "};");
}
