/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "grouped.h"

#include "integers.h"
#include "operand.h"
#include "strip.h"

#define QUAD CLCONV_QUAD
#define MAX_LANES 8

/* Rows of the filter do not matter: the text has a loop over them. */
#define MAX_FILTER_COLUMNS 8

bool clconv_grouped_covers(const clconv_problem *p, unsigned tensors)
{
    bool vectors =
        p->layout == CLCONV_NCHW || clconv_strip_can_vector(p, tensors, QUAD);
    return vectors && p->groups > 1 && p->group_c % QUAD == 0 &&
           p->group_k % QUAD == 0 && p->s <= MAX_FILTER_COLUMNS &&
           p->stride_w <= MAX_FILTER_COLUMNS &&
           clconv_strip_reach_w(p) <= 2 * MAX_FILTER_COLUMNS &&
           clconv_strip_is_countable(p);
}

int64_t clconv_grouped_lanes(const clconv_problem *p)
{
    return clconv_strip_power_of_2(p->c / QUAD, MAX_LANES);
}

int64_t clconv_grouped_blocks(const clconv_problem *p)
{
    return p->c / QUAD / clconv_grouped_lanes(p);
}

void clconv_grouped_add_sizes(clconv_shape *s, const clconv_problem *p,
                              int64_t batch)
{
    clconv_strides w = clconv_problem_strides(p, CLCONV_W);
    clconv_strip_add_sizes(s, p, batch);
    clconv_shape_add(s, "blocks", clconv_grouped_blocks(p));
    clconv_shape_add(s, "k", p->k);
    clconv_shape_add_fixed(s, "r", p->r);
    clconv_shape_add_fixed(s, "s", p->s);
    clconv_shape_add_fixed(s, "stride_h", p->stride_h);
    clconv_shape_add_fixed(s, "dilation_h", p->dilation_h);
    clconv_shape_add(s, "pad_top", p->pad_top);
    clconv_shape_add_fixed(s, "w_image", w.image);
    clconv_shape_add_fixed(s, "w_channel", w.channel);
    clconv_shape_add_fixed(s, "w_tap", w.column);
}

void clconv_grouped_set_holes(clconv_emit *e, const clconv_task *t, int lws)
{
    const clconv_problem *p = t->problem;
    int64_t lanes = clconv_grouped_lanes(p);
    clconv_strip_set_holes(e, t, QUAD);
    clconv_strip_emit_words(e, QUAD);
    clconv_emit_set_text(e, "dy_column",
                         p->layout == CLCONV_NHWC ? "(int)shape.k" : "1");
    clconv_emit_set(e, "lanes", lanes);
    clconv_emit_set(e, "slots", lws / lanes);
    clconv_emit_set(e, "lws", lws);
    clconv_emit_set(e, "taps", p->r * p->s);
    clconv_emit_set(e, "group_c", p->group_c);
    clconv_emit_set(e, "group_k", p->group_k);
    clconv_emit_set(e, "stride_w", p->stride_w);
}

void clconv_grouped_emit_ids(clconv_emit *e, const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    clconv_emit_line(e, "const int id = get_local_id(0);");
    clconv_emit_line(e, nhwc ? "const int lane = id % $lanes, slot = id / "
                               "$lanes;"
                             : "const int lane = id / $slots, slot = id % "
                               "$slots;");
    clconv_emit_line(e, "long group = get_group_id(0);");
}

/* ---- Strips ------------------------------------------------------------- */

static void open_strip(clconv_emit *e, const clconv_task *t,
                       clconv_tensor tensor, int64_t columns)
{
    bool half_type = clconv_operand_is_half(t, tensor);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    clconv_emit_set_text(e, "raw", half_type ? "uint2" : "float4");
    clconv_emit_set(e, "count", columns);
    clconv_emit_line(e, "static void strip_$tensor(float4 *to, __global const "
                        "$stored *p, long row,");
    clconv_emit_open(e, "    long channel, int step, int first, int end)");
}

static void emit_pixels(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor, int64_t columns)
{
    clconv_strip_emit_fetch(e, t, tensor, QUAD, columns);
    clconv_strip_emit_row(e, t, tensor, QUAD, columns);
    open_strip(e, t, tensor, columns);
    clconv_emit_line(e, "$raw raw[$count];");
    clconv_emit_line(e, "row_$tensor(raw, p, row, step, first, end);");
    clconv_emit_line(e, "floats_$tensor(to, raw);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_planes(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor, int64_t columns)
{
    clconv_operand_emit_load(e, t, tensor, 1);
    open_strip(e, t, tensor, columns);
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $count; ++j)");
    clconv_emit_line(e, "const long i = row + (first + j) * step;");
    clconv_emit_line(e, "to[j] = 0.0f;");
    clconv_emit_line(e, "if ((uint)(first + j) < (uint)end)");
    clconv_emit_line(e, "    to[j] = (float4)(load_$tensor(p, i), "
                        "load_$tensor(p, i + channel), load_$tensor(p, i + 2 * "
                        "channel), load_$tensor(p, i + 3 * channel));");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_grouped_emit_strip(clconv_emit *e, const clconv_task *t,
                               clconv_tensor tensor, int64_t columns)
{
    if (t->problem->layout == CLCONV_NHWC)
        emit_pixels(e, t, tensor, columns);
    else
        emit_planes(e, t, tensor, columns);
}
