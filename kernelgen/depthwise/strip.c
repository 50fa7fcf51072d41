/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "strip.h"

#include <stdio.h>

#include "depthwise.h"
#include "integers.h"
#include "operand.h"

/* ---- Geometry --------------------------------------------------------- */

int64_t clconv_strip_reach_h(const clconv_problem *p)
{
    return (p->r - 1) * p->dilation_h + 1;
}

int64_t clconv_strip_reach_w(const clconv_problem *p)
{
    return (p->s - 1) * p->dilation_w + 1;
}

bool clconv_strip_is_countable(const clconv_problem *p)
{
    int64_t channels = clconv_max(p->c, p->k);
    return p->h + p->pad_top + p->pad_bottom <= INT32_MAX / 2 &&
           p->w + p->pad_left + p->pad_right <= INT32_MAX / 2 / channels;
}

/* Filters and strides whose rows registers may hold; the kernels look closer. */
#define MAX_TAPS 64
#define MAX_REACH 16

bool clconv_strip_covers(const clconv_problem *p)
{
    return clconv_depthwise_is(p) && p->group_k == 1 &&
           p->r * p->s <= MAX_TAPS && clconv_strip_reach_h(p) <= MAX_REACH &&
           clconv_strip_reach_w(p) <= MAX_REACH && p->stride_h <= MAX_REACH &&
           p->stride_w <= MAX_REACH && clconv_strip_is_countable(p);
}

const clconv_strip_size clconv_strip_sizes[CLCONV_STRIP_SIZES] = {
    {4, 4}, {2, 4}, {4, 2}, {2, 2}, {4, 1}, {2, 1}, {1, 4}, {1, 2}, {1, 1},
};

bool clconv_strip_can_vector(const clconv_problem *p, unsigned tensors, int vec)
{
    if (vec == 1)
        return true;
    if (p->layout == CLCONV_NCHW || p->c % vec != 0)
        return false;
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_DX; ++t) {
        size_t size = p->type[t] == CLCONV_F16 ? 2 : 4;
        if ((tensors & CLCONV_BIT(t)) && p->alignment % (size * (size_t)vec) != 0)
            return false;
    }
    return true;
}

clconv_strip_span clconv_strip_span_of(const clconv_problem *p, int64_t columns)
{
    int64_t reach = (p->s - 1) * p->dilation_w;
    clconv_strip_span n = {.columns = columns * p->stride_w,
                           .shift = p->pad_left % p->stride_w};
    n.first_q =
        clconv_depthwise_floor(n.shift - reach + p->stride_w - 1, p->stride_w);
    n.reads = (n.columns - 1 + n.shift) / p->stride_w - n.first_q + 1;
    return n;
}

int64_t clconv_strip_meet(const clconv_problem *p, const clconv_strip_span *n,
                          int64_t j, int64_t s)
{
    int64_t w = (n->first_q + j) * p->stride_w + s * p->dilation_w - n->shift;
    return w >= 0 && w < n->columns ? w : -1;
}

int64_t clconv_strip_turns(int64_t rows, int64_t step)
{
    return rows / clconv_gcd(rows, step);
}

int64_t clconv_strip_power_of_2(int64_t count, int64_t most)
{
    while (count % most != 0)
        most /= 2;
    return most;
}

void clconv_strip_add_sizes(clconv_shape *s, const clconv_problem *p,
                            int64_t batch)
{
    clconv_strides dy = clconv_problem_strides(p, CLCONV_DY);
    clconv_strides x = clconv_problem_strides(p, CLCONV_X);
    clconv_shape_add_varying(s, "n", batch);
    clconv_shape_add(s, "c", p->c);
    clconv_shape_add(s, "h", p->h);
    clconv_shape_add(s, "w", p->w);
    clconv_shape_add(s, "p", p->p);
    clconv_shape_add(s, "q", p->q);
    clconv_shape_add(s, "dy_image", dy.image);
    clconv_shape_add(s, "dy_channel", dy.channel);
    clconv_shape_add(s, "dy_row", dy.row);
    clconv_shape_add(s, "x_image", x.image);
    clconv_shape_add(s, "x_channel", x.channel);
    clconv_shape_add(s, "x_row", x.row);
}

/* ---- Text: reading ---------------------------------------------------- */

static const char *raw_type(bool half_type, int vec)
{
    if (half_type)
        return vec == 1 ? "ushort" : vec == 2 ? "uint" : "uint2";
    return vec == 1 ? "float" : vec == 2 ? "float2" : "float4";
}

void clconv_strip_set_holes(clconv_emit *e, const clconv_task *t, int vec)
{
    static const char *const holes[] = {"raw_dy", "raw_x", "raw_w"};
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        clconv_emit_set_text(e, holes[tensor],
                             raw_type(clconv_operand_is_half(t, tensor), vec));
    clconv_operand_set_width(e, vec);
    clconv_emit_set_text(
        e, "column", t->problem->layout == CLCONV_NHWC ? "(int)shape.c" : "1");
    clconv_depthwise_set_types(e, t);
    clconv_emit_part(e, t->device->nv_sm >= 80 ? "half_words_nv" : "half_words");
}

static void set_types(clconv_emit *e, const clconv_task *t,
                      clconv_tensor tensor, int vec)
{
    bool half_type = clconv_operand_is_half(t, tensor);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    clconv_emit_set_text(e, "raw", raw_type(half_type, vec));
}

/* Expressions of a vector v: its words, if it is floats, and the reverse. */
static const char *words_of_floats(int vec)
{
    return vec == 1   ? "(ushort)floats_word((float2)(v, 0.0f))"
           : vec == 2 ? "floats_word(v)"
                      : "(uint2)(floats_word(v.lo), floats_word(v.hi))";
}

static const char *floats_of_words(int vec)
{
    return vec == 1   ? "word_floats(v).x"
           : vec == 2 ? "word_floats(v)"
                      : "(float4)(word_floats(v.x), word_floats(v.y))";
}

void clconv_strip_emit_words(clconv_emit *e, int vec)
{
    clconv_operand_set_width(e, vec);
    clconv_emit_set_text(e, "raw", raw_type(true, vec));
    clconv_emit_set_text(e, "to_words", words_of_floats(vec));
    clconv_emit_set_text(e, "to_floats", floats_of_words(vec));
    clconv_emit_open(e, "static $raw to_words$vn($float v)");
    clconv_emit_line(e, "return $to_words;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static $float to_floats$vn($raw v)");
    clconv_emit_line(e, "return $to_floats;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The largest magnitude in v[j], where a NaN counts for nothing. */
static const char *largest_of(int vec)
{
    return vec == 1   ? "fabs(v[j])"
           : vec == 2 ? "fmax(fabs(v[j].x), fabs(v[j].y))"
                      : "fmax(fmax(fabs(v[j].x), fabs(v[j].y)), "
                        "fmax(fabs(v[j].z), fabs(v[j].w)))";
}

static void emit_each(clconv_emit *e, const char *line)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $count; ++j)");
    clconv_emit_line(e, line);
}

void clconv_strip_emit_tame(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int vec, int64_t count)
{
    bool clips = p->overflow != CLCONV_TO_INF;
    int log2 = clconv_problem_cast_log2(p, tensor);
    if (clips)
        clconv_operand_emit_clip(e, p, tensor, vec);
    clconv_operand_set_limit(e, log2);
    clconv_operand_set_width(e, vec);
    clconv_emit_set(e, "count", count);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "largest", largest_of(vec));
    clconv_emit_set_exp2(e, "cast_scale", log2);
    clconv_emit_open(e, "static void tame_$tensor($float *v)");
    if (clips) {
        clconv_emit_line(e, "float most = 0.0f;");
        emit_each(e, "    most = fmax(most, $largest);");
        clconv_emit_open(e, "if (most > as_float($limit))");
        emit_each(e, "    v[j] = clip_$tensor$vn(v[j]);");
        clconv_emit_line(e, "return;");
        clconv_emit_close(e);
    }
    if (log2)
        emit_each(e, "    v[j] *= $cast_scale;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_fetch(clconv_emit *e)
{
    clconv_emit_open(e, "static $raw fetch_$tensor(__global const $stored *p, "
                        "long i)");
    clconv_emit_line(e, "return *(__global const $raw *)(p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_floats(clconv_emit *e, bool half_type, bool fused)
{
    clconv_emit_open(e, "static void floats_$tensor($float *to, const $raw "
                        "*from)");
    emit_each(e, half_type ? "    to[j] = to_floats$vn(from[j]);"
                           : "    to[j] = from[j];");
    if (fused) {
        clconv_emit_line(e, "tame_$tensor(to);");
        emit_each(e, "    to[j] = to_floats$vn(to_words$vn(to[j]));");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_strip_emit_fetch(clconv_emit *e, const clconv_task *t,
                             clconv_tensor tensor, int vec, int64_t count)
{
    bool fused = clconv_operand_is_fused(t, tensor);
    if (fused)
        clconv_strip_emit_tame(e, t->problem, tensor, vec, count);
    clconv_operand_set_width(e, vec);
    clconv_emit_set(e, "count", count);
    set_types(e, t, tensor, vec);
    emit_fetch(e);
    emit_floats(e, clconv_operand_is_half(t, tensor), fused);
}

void clconv_strip_emit_row(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor, int vec, int64_t columns)
{
    set_types(e, t, tensor, vec);
    clconv_emit_set(e, "count", columns);
    clconv_emit_line(e, "static void row_$tensor($raw *to, __global "
                        "const $stored *p, long row,");
    clconv_emit_open(e, "    int step, int first, int end)");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $count; ++j)");
    clconv_emit_line(e, "to[j] = 0;");
    clconv_emit_line(e, "if ((uint)(first + j) < (uint)end)");
    clconv_emit_line(e, "    to[j] = fetch_$tensor(p, row + (first + j) * "
                        "step);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
