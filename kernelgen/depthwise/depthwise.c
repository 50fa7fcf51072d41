/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "depthwise.h"

#include <stdio.h>

#include "cost.h"
#include "entry.h"
#include "generic.h"
#include "integers.h"
#include "operand.h"
#include "output.h"

#define LANES CLCONV_DEPTHWISE_LANES

/* More floats in each private array, whose sizes are multiples of 4 KiB: else
 * all begin at the same place of a page, and CPUs that tell addresses apart by
 * that place first let loads from one wait for stores to another. */
#define SKEW 256

bool clconv_depthwise_is(const clconv_problem *p)
{
    return p->group_c == 1 && p->groups > 1;
}

/* ---- Geometry --------------------------------------------------------- */

static bool is_nchw(const clconv_problem *p)
{
    return p->layout == CLCONV_NCHW;
}

int64_t clconv_depthwise_channels(const clconv_problem *p, int vectors)
{
    return is_nchw(p) ? 1 : (int64_t)vectors * LANES;
}

int64_t clconv_depthwise_channel_blocks(const clconv_problem *p, int vectors)
{
    return clconv_divide_up(p->groups, clconv_depthwise_channels(p, vectors));
}

bool clconv_depthwise_is_small(const clconv_problem *p, int vectors)
{
    int64_t column = clconv_depthwise_channels(p, vectors);
    return p->stride_h <= CLCONV_DEPTHWISE_MAX_STRIDE &&
           p->stride_w <= CLCONV_DEPTHWISE_MAX_STRIDE &&
           p->r <= CLCONV_DEPTHWISE_MAX_LINES &&
           p->s <= CLCONV_DEPTHWISE_MAX_TAPS &&
           p->group_k <= CLCONV_DEPTHWISE_MAX_LINES &&
           p->group_k * p->r <= CLCONV_DEPTHWISE_MAX_LINES &&
           p->group_k * p->r * p->s <= CLCONV_DEPTHWISE_MAX_TAPS &&
           p->group_k * p->r * p->s * column <= CLCONV_DEPTHWISE_TAP_FLOATS &&
           p->group_k * column <= CLCONV_DEPTHWISE_PIXEL;
}

int64_t clconv_depthwise_align(int64_t a, int64_t b)
{
    return clconv_divide_up(a, b) * b;
}

int64_t clconv_depthwise_floor(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int clconv_depthwise_split(const clconv_param *param, double items,
                           double wanted, int64_t most)
{
    int value = param->values[0];
    for (int i = 1; i < param->count && items * value < wanted; ++i)
        if (param->values[i] <= most)
            value = param->values[i];
    return value;
}

/* ---- Cost ------------------------------------------------------------- */

double clconv_depthwise_read_cost(const clconv_task *t, clconv_tensor tensor)
{
    const clconv_problem *p = t->problem;
    double elements = (double)clconv_problem_elements(p, tensor);
    if (!(t->copies & CLCONV_BIT(tensor)))
        return clconv_cost_move(t->device,
                                (double)clconv_problem_bytes(p, tensor));
    /* 4 bytes are read, 2 written, 2 read again. */
    return clconv_cost_launch(t->device, 1) +
           clconv_cost_move(t->device, 8 * elements);
}

/* ---- Shape and holes -------------------------------------------------- */

static void add_strides(clconv_shape *s, const clconv_problem *p)
{
    clconv_strides dy = clconv_problem_strides(p, CLCONV_DY);
    clconv_strides x = clconv_problem_strides(p, CLCONV_X);
    clconv_shape_add(s, "dy_image", dy.image);
    clconv_shape_add(s, "dy_channel", dy.channel);
    clconv_shape_add(s, "dy_row", dy.row);
    clconv_shape_add(s, "dy_column", dy.column);
    clconv_shape_add(s, "x_image", x.image);
    clconv_shape_add(s, "x_channel", x.channel);
    clconv_shape_add(s, "x_row", x.row);
    clconv_shape_add(s, "x_column", x.column);
}

/* Where the text compares one of these, a long, with an int, it casts it: if
 * it is a constant, Mesa 22.3 takes every int to be larger. */
void clconv_depthwise_add_sizes(clconv_shape *s, const clconv_problem *p,
                                int64_t batch)
{
    clconv_shape_add_varying(s, "n", batch);
    clconv_shape_add(s, "c", p->c);
    clconv_shape_add(s, "h", p->h);
    clconv_shape_add(s, "w", p->w);
    clconv_shape_add_fixed(s, "r", p->r);
    clconv_shape_add_fixed(s, "s", p->s);
    clconv_shape_add(s, "p", p->p);
    clconv_shape_add(s, "q", p->q);
    clconv_shape_add_fixed(s, "stride_h", p->stride_h);
    clconv_shape_add_fixed(s, "stride_w", p->stride_w);
    clconv_shape_add(s, "pad_top", p->pad_top);
    clconv_shape_add(s, "pad_left", p->pad_left);
    clconv_shape_add_fixed(s, "dilation_h", p->dilation_h);
    clconv_shape_add_fixed(s, "dilation_w", p->dilation_w);
    clconv_shape_add_fixed(s, "planes", p->group_k);
    add_strides(s, p);
}

void clconv_depthwise_set_types(clconv_emit *e, const clconv_task *t)
{
    static const char *const types[] = {"float", "half"};
    clconv_emit_set_text(e, "dy_type",
                         types[clconv_operand_is_half(t, CLCONV_DY)]);
    clconv_emit_set_text(e, "x_type",
                         types[clconv_operand_is_half(t, CLCONV_X)]);
    clconv_emit_set_text(e, "w_type",
                         types[clconv_operand_is_half(t, CLCONV_W)]);
}

void clconv_depthwise_set_holes(clconv_emit *e, const clconv_task *t,
                                int vectors)
{
    int64_t column = clconv_depthwise_channels(t->problem, vectors);
    clconv_emit_set(e, "column", column);
    clconv_emit_set(e, "next", column > 1 ? column : LANES);
    clconv_emit_set(e, "max_taps", CLCONV_DEPTHWISE_MAX_TAPS);
    clconv_emit_set(e, "max_lines", CLCONV_DEPTHWISE_MAX_LINES);
    clconv_emit_set(e, "max_stride", CLCONV_DEPTHWISE_MAX_STRIDE);
    clconv_emit_set(e, "ring_floats", CLCONV_DEPTHWISE_RING + SKEW);
    clconv_emit_set(e, "line_floats", CLCONV_DEPTHWISE_LINE + SKEW);
    clconv_emit_set(e, "tap_floats", CLCONV_DEPTHWISE_TAP_FLOATS + SKEW);
    clconv_emit_set(e, "pixel_floats", CLCONV_DEPTHWISE_PIXEL);
    clconv_generic_set_lanes(e, LANES);
    clconv_depthwise_set_types(e, t);
}

/* ---- Private memory --------------------------------------------------- */

void clconv_depthwise_emit_keep(clconv_emit *e)
{
    clconv_emit_line(e, "typedef float16 loose16 __attribute__((aligned(4)));");
    clconv_emit_blank(e);
    clconv_emit_open(e, "static void keep16(float16 v, float *to)");
    clconv_emit_line(e, "*(loose16 *)to = v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static void clear(float *to, int count)");
    clconv_emit_line(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "    keep16((float16)(0.0f), to + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_depthwise_emit_array(clconv_emit *e, const char *name,
                                 const char *size)
{
    char line[96];
    snprintf(line, sizeof line,
             "__attribute__((aligned(64))) float %s[$%s_floats];", name, size);
    clconv_emit_line(e, line);
}

void clconv_depthwise_emit_split(clconv_emit *e)
{
    clconv_emit_line(e, "static void split(const float *from, float *to, "
                        "int count, int step,");
    clconv_emit_open(e, "    long pitch)");
    clconv_emit_open(e, "if (step == 2)");
    clconv_emit_open(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "const float16 a = vload16(0, from + 2 * i);");
    clconv_emit_line(e, "const float16 b = vload16(0, from + 2 * i + 16);");
    clconv_emit_line(e, "keep16((float16)(a.even, b.even), to + i);");
    clconv_emit_line(e, "keep16((float16)(a.odd, b.odd), to + pitch + i);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "for (int f = 0; f < step; ++f)");
    clconv_emit_line(e, "    for (int i = 0; i < count; ++i)");
    clconv_emit_line(e, "        to[f * pitch + i] = from[i * step + f];");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The second stage of dW ------------------------------------------- */

clconv_pass clconv_depthwise_sum_pass(const clconv_task *t,
                                      const clconv_shape *s, const char *entry,
                                      int width, int local)
{
    int64_t elements = clconv_problem_elements(t->problem, CLCONV_DW);
    clconv_pass pass = {.entry = entry, .serves = CLCONV_OP_DW};
    pass.local = (size_t)local;
    pass.groups = (size_t)clconv_divide_up(elements, (int64_t)width * local);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_shape_arg(s, &pass);
    return pass;
}

void clconv_depthwise_emit_sum(clconv_emit *e, const clconv_task *t,
                               const clconv_pass *pass, const clconv_shape *s,
                               int width)
{
    clconv_emit_part(e, "partial");
    clconv_output_emit_put(e, t->problem, CLCONV_DW, width);
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_shape_open(e, t, pass, s);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "const long i = (long)get_global_id(0) * $width;");
    clconv_emit_line(e, "const int count = min((long)$width, "
                        "shape.elements - i);");
    clconv_emit_line(e, "if (count <= 0)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "$float total = 0.0f;");
    clconv_emit_line(e, "for (int part = 0; part < (int)shape.parts; ++part)");
    clconv_emit_line(e, "    total += get_part$vn(scratch, "
                        "part * shape.elements + i, count);");
    clconv_emit_line(e, "put_dw$vn(dw, i, 1, count, total, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}
