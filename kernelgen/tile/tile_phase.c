/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_phase.h"

#include <stdio.h>

#include "integers.h"

/* Without a second tap its distance may be any number, and is never used. */
static clconv_tile_axis complete(clconv_tile_axis a)
{
    if (a.taps == 1)
        a.dilation = 1;
    a.step = a.stride / clconv_gcd(a.stride, a.dilation);
    a.phases = clconv_min(a.taps, a.step);
    a.reach = (a.taps - 1) * a.dilation / a.stride;
    return a;
}

static bool is_flat(const clconv_problem *p)
{
    int64_t pads = p->pad_top + p->pad_bottom + p->pad_left + p->pad_right;
    return p->r == 1 && p->s == 1 && p->stride_h == 1 && p->stride_w == 1 &&
           pads == 0 && p->h * p->w < (int64_t)1 << 24;
}

clconv_tile_axis clconv_tile_rows(const clconv_problem *p)
{
    bool flat = is_flat(p);
    return complete((clconv_tile_axis){
        .in = flat ? 1 : p->h,
        .out = flat ? 1 : p->p,
        .taps = p->r,
        .stride = p->stride_h,
        .dilation = p->dilation_h,
        .pad = p->pad_top,
    });
}

clconv_tile_axis clconv_tile_columns(const clconv_problem *p)
{
    bool flat = is_flat(p);
    return complete((clconv_tile_axis){
        .in = flat ? p->h * p->w : p->w,
        .out = flat ? p->p * p->q : p->q,
        .taps = p->s,
        .stride = p->stride_w,
        .dilation = p->dilation_w,
        .pad = p->pad_left,
    });
}

int64_t clconv_tile_most_taps(const clconv_tile_axis *a)
{
    return clconv_divide_up(a->taps, a->step);
}

/* What emit_span_of() writes is the same, line by line. */
clconv_tile_span clconv_tile_phase_span(const clconv_tile_axis *a, int64_t phase)
{
    int64_t last = phase + (a->taps - 1 - phase) / a->step * a->step;
    int64_t rest = phase * a->dilation % a->stride;
    int64_t first = phase * a->dilation / a->stride;
    int64_t in_first = (a->pad - rest + a->stride - 1) / a->stride;
    int64_t end = last * a->dilation / a->stride + a->out;
    int64_t in_end = (a->in - 1 + a->pad - rest + a->stride) / a->stride;
    return (clconv_tile_span){
        .first = first > in_first ? first : in_first,
        .end = end < in_end ? end : in_end,
    };
}

void clconv_tile_axis_shape(const clconv_tile_axis *a, const char *side,
                            clconv_shape *s)
{
    const struct {
        const char *name;
        int64_t value;
    } members[] = {
        {"taps", a->taps}, {"stride", a->stride}, {"dilation", a->dilation},
        {"pad", a->pad},   {"step", a->step},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; ++i) {
        char name[24];
        snprintf(name, sizeof name, "%s_%s", members[i].name, side);
        clconv_shape_add(s, name, members[i].value);
    }
}

static void emit_axis_type(clconv_emit *e)
{
    clconv_emit_line(e, "/* Rows or columns of the problem. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int in, out, taps, stride, dilation, pad, step;");
    clconv_emit_line(e, "} axis_t;");
    clconv_emit_blank(e);
}

static void emit_axis(clconv_emit *e, const char *axis, const char *side)
{
    clconv_emit_set_text(e, "axis", axis);
    clconv_emit_set_text(e, "side", side);
    clconv_emit_open(e, "static axis_t axis_$axis(shape_t shape)");
    clconv_emit_line(e, "const axis_t a = {shape.x_$axis, shape.dy_$axis, "
                        "shape.taps_$side, shape.stride_$side,");
    clconv_emit_line(e, "                  shape.dilation_$side, "
                        "shape.pad_$side, shape.step_$side};");
    clconv_emit_line(e, "return a;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_span_type(clconv_emit *e)
{
    clconv_emit_line(e, "/* Elements of a phase's array; from: the input that "
                        "is the first. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int first, count, from;");
    clconv_emit_line(e, "} span_t;");
    clconv_emit_blank(e);
}

static void emit_span_of(clconv_emit *e)
{
    clconv_emit_open(e, "static span_t span_of(axis_t a, int phase)");
    clconv_emit_line(e, "const int last = phase + (a.taps - 1 - phase) / "
                        "a.step * a.step;");
    clconv_emit_line(e, "const int rest = phase * a.dilation % a.stride;");
    clconv_emit_line(e, "const int first = max(phase * a.dilation / a.stride, "
                        "(a.pad - rest + a.stride - 1) / a.stride);");
    clconv_emit_line(e, "const int end = min(last * a.dilation / a.stride + "
                        "a.out, (a.in - 1 + a.pad - rest + a.stride) / "
                        "a.stride);");
    clconv_emit_line(e, "const span_t s = {first, max(end - first, 0), rest + "
                        "a.stride * first - a.pad};");
    clconv_emit_line(e, "return s;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_tile_axis_emit(clconv_emit *e)
{
    emit_axis_type(e);
    emit_axis(e, "rows", "h");
    emit_axis(e, "columns", "w");
}

void clconv_tile_span_emit(clconv_emit *e)
{
    emit_span_type(e);
    emit_span_of(e);
}
