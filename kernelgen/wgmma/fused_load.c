/*
 * All work-items read dY and X position by position, eight channels (an octet)
 * at a time, round them to fp16 and write them to local memory as wgmma reads
 * them; on the way they count for the report and sum dbias. A few octets are read
 * before the first is used. Two ways through a tensor:
 *
 *     vectors    channels are neighbours: an octet is 16 or 32 bytes, the
 *                work-items of a position read it whole
 *     elements   any other: work-items are neighbouring positions and read a
 *                channel each time
 *
 *     read_dy(raw, dy, &stream, item, &line, &sizes, group)
 *         raw[deep]: octets of as many positions from where stream is
 *     write_dy(raw, tiles, at, &stream, own, item, counting, tally, &sum)
 *         the same, in the ring that starts at address at; counted and summed if
 *         they are this work-group's own
 *     and the same for X, which has no sums
 *     load_w(tiles, at, w, item, &sizes, group, counting, &seen)
 *         all weights of a group, [tap][k][c]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counts.h"
#include "fused_reader.h"
#include "integers.h"
#include "nest.h"
#include "operand.h"

/* Octets of W that a work-item reads at a time. */
#define WEIGHTS_AT_ONCE 4

/* ---- An octet --------------------------------------------------------- */

static void emit_fetch_vector(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_line(e, "if (at < 0 || channel >= s->$channels)");
    clconv_emit_line(e, "    return ($raw)(0);");
    if (r->half_type) {
        clconv_emit_line(e, "return *(__global const uint4 *)(p + at + "
                            "channel);");
        return;
    }
    clconv_emit_line(e, "__global const float4 *from = (__global const float4 "
                        "*)(p + at + channel);");
    clconv_emit_line(e, "return (float8)(from[0], from[1]);");
}

static void emit_fetch_elements(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_line(e, "if (at < 0 || channel >= s->$channels)");
    clconv_emit_line(e, "    return ($raw)(0);");
    clconv_emit_line(e, r->half_type ? "uint v[8];" : "float v[8];");
    clconv_emit_line(e, r->half_type
                            ? "__global const ushort *from = (__global const "
                              "ushort *)p + at + channel * s->$step;"
                            : "__global const float *from = p + at + channel * "
                              "s->$step;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e, r->whole ? "    v[j] = from[j * s->$step];"
                                 : "    v[j] = channel + j < s->$channels ? "
                                   "from[j * s->$step] : 0;");
    clconv_fused_emit_eight(e, r, "return");
}

/* As it is stored; zeros where at is negative and past the last channel. */
static void emit_fetch(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_nest_open_function(e, "$raw fetch_$tensor(__global const $type *p, "
                                 "long at, int channel, const sizes_t *s)");
    if (r->vectors)
        emit_fetch_vector(e, r);
    else
        emit_fetch_elements(e, r);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Finite values are clipped, which is seldom needed: one test for all eight. */
static void emit_clip(clconv_emit *e)
{
    clconv_emit_line(e, "const float limit = as_float($limit);");
    clconv_emit_line(e, "const float4 four = fmax(fabs(v.lo), fabs(v.hi));");
    clconv_emit_line(e, "const float2 two = fmax(four.lo, four.hi);");
    clconv_emit_open(e, "if (fmax(two.x, two.y) > limit)");
    clconv_emit_line(e, "float each[8];");
    clconv_emit_line(e, "vstore8(v, 0, each);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < 8; ++i)");
    clconv_emit_line(e, "    each[i] = isfinite(each[i]) ? clamp(each[i], "
                        "-limit, limit) : each[i];");
    clconv_emit_line(e, "v = vload8(0, each);");
    clconv_emit_close(e);
}

/* The halves that are multiplied. */
static void emit_round(clconv_emit *e, const clconv_problem *p,
                       const clconv_fused_reader *r)
{
    int log2 = clconv_problem_cast_log2(p, r->tensor);
    clconv_nest_open_function(e, "uint4 halves_of_$tensor($raw v)");
    if (r->casts) {
        clconv_operand_set_limit(e, log2);
        clconv_emit_set_exp2(e, "cast_scale", log2);
        if (p->overflow != CLCONV_TO_INF)
            emit_clip(e);
        clconv_emit_line(e, log2 ? "return halves8(v * $cast_scale);"
                                 : "return halves8(v);");
    } else {
        clconv_emit_line(e, "return v;");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Counts an octet as it is stored. */
static void emit_see(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_nest_open_function(e, "void see_octet_$tensor($raw raw, seen_t "
                                 "*seen)");
    clconv_emit_line(e, "float v[8];");
    clconv_emit_line(e, r->half_type ? "vstore8(floats8(raw), 0, v);"
                                     : "vstore8(raw, 0, v);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e, "    see_$tensor(seen, v[j]);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_octet(clconv_emit *e, const clconv_task *t,
                       const clconv_fused_reader *r)
{
    clconv_counts_emit_see(e, t->problem, r->tensor, 1);
    clconv_fused_reader_set(e, r);
    emit_round(e, t->problem, r);
    emit_see(e, r);
}

/* ---- dY and X --------------------------------------------------------- */

static void emit_stream(clconv_emit *e)
{
    clconv_emit_line(e,
                     "/* A work-item's next position, on the line and in local "
                     "memory, and how far it moves. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    place_t place, step;");
    clconv_emit_line(e, "    int to;");
    clconv_emit_line(e, "} stream_t;");
    clconv_emit_blank(e);
}

/* From position v of the line on, to the start of the ring. */
static void emit_begin(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_nest_open_function(e, "void begin_$tensor(stream_t *stream, const "
                                 "line_t *line, int v, int item)");
    clconv_emit_line(e, r->vectors ? "const int lane = item / $octets;"
                                   : "const int lane = item % $lanes;");
    clconv_emit_line(e, "stream->place = place_at(line, v + lane);");
    clconv_emit_line(e, "stream->step = place_at(line, $lanes);");
    clconv_emit_line(e, "stream->to = lane;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What a work-item reads at a time. */
static void emit_read(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_nest_open_function(
        e,
        "void read_$tensor($raw raw[$deep], __global const $type *p, stream_t "
        "*stream, int item, const line_t *line, const sizes_t *s, int "
        "group)");
    clconv_emit_line(e, r->vectors ? "const int octet = item % $octets;"
                                   : "const int octet = item / $lanes;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $deep; ++i)");
    clconv_emit_line(e, "const long from = p ? ${tensor}_at(s, &stream->place, "
                        "group) : -1;");
    clconv_emit_line(e, "raw[i] = fetch_$tensor(p, from, 8 * octet, s);");
    clconv_emit_line(e, "place_move(&stream->place, &stream->step, line);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_put(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_line(e, r->vectors ? "const int octet = item % $octets;"
                                   : "const int octet = item / $lanes;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $deep; ++i)");
    clconv_emit_line(e, "const uint piece = at + stream->to * $bytes + 16 * "
                        "octet;");
    clconv_emit_line(e, "const uint4 halves = halves_of_$tensor(raw[i]);");
    clconv_emit_line(e, "put16(tiles, swizzled(piece, $bytes), halves);");
    if (r->tensor == CLCONV_DY) {
        clconv_emit_line(e, "if (stream->to < $mirror)");
        clconv_emit_line(e, "    put16(tiles, swizzled(piece + $places * "
                            "$bytes, $bytes), halves);");
    }
    clconv_emit_line(e, "stream->to += $lanes;");
    clconv_emit_line(e, "stream->to -= stream->to >= $places ? $places : 0;");
    clconv_emit_close(e);
}

/* Adds what was read to a work-item's sums. */
static void emit_add(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $deep; ++i)");
    clconv_emit_line(e, r->half_type ? "    *sum += floats8(raw[i]);"
                                     : "    *sum += raw[i];");
}

static void emit_count(clconv_emit *e)
{
    clconv_emit_line(e, "seen_t seen = { 0 };");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $deep; ++i)");
    clconv_emit_line(e, "    see_octet_$tensor(raw[i], &seen);");
    clconv_emit_line(e, "counts_t found = { 0 };");
    clconv_emit_line(e, "fold(&found, &seen);");
    clconv_emit_line(e, "counts_share(&found, tally);");
}

static void emit_write(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_set_text(e, "sum_parameter", r->bias ? ", float8 *sum" : "");
    clconv_nest_open_function(
        e,
        "void write_$tensor(const $raw raw[$deep], __local uchar *tiles, uint "
        "at, stream_t *stream, int own, int item, int counting, __local uint "
        "*tally$sum_parameter)");
    emit_put(e, r);
    clconv_emit_line(e, "if (!own)");
    clconv_emit_line(e, "    return;");
    if (r->bias)
        emit_add(e, r);
    clconv_emit_open(e, "if (counting)");
    emit_count(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- W ---------------------------------------------------------------- */

static void open_load_w(clconv_emit *e)
{
    clconv_nest_open_function(
        e,
        "void load_w(__local uchar *tiles, uint at, __global const $type *p, "
        "int item, const sizes_t *s, int group, int counting, seen_t "
        "*seen)");
}

/* Several octets are read before the first is used. */
static void emit_load_vectors(clconv_emit *e)
{
    clconv_emit_set(e, "weights", WEIGHTS_AT_ONCE);
    clconv_emit_line(e, "const int octets = $taps * $k_line * $octets;");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int first = item; first < octets; first += "
                        "$weights * $items)");
    clconv_emit_line(e, "$raw raw[$weights];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $weights; ++j)");
    clconv_emit_line(e, "const int i = first + j * $items;");
    clconv_emit_line(e, "const int k = i / $octets % $k_line;");
    clconv_emit_line(e, "const int tap = i / ($octets * $k_line);");
    clconv_emit_line(e, "const long from = (group * s->group_k + k) * "
                        "s->w_image + tap / $s * s->w_row + tap % $s * "
                        "s->w_column;");
    clconv_emit_line(e, "raw[j] = fetch_w(p, p && i < octets && k < s->group_k "
                        "? from : -1, 8 * (i % $octets), s);");
    clconv_emit_close(e);
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $weights; ++j)");
    clconv_emit_line(e, "const int i = first + j * $items;");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    see_octet_w(raw[j], seen);");
    clconv_emit_line(e, "if (i < octets)");
    clconv_emit_line(e, "    put16(tiles, swizzled(at + 16 * i, $bytes), "
                        "halves_of_w(raw[j]));");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* Where the i-th of a group's weights, as they lie in memory, belongs. */
static void emit_w_place(clconv_emit *e, const clconv_problem *p)
{
    clconv_nest_open_function(e, "uint w_place(uint at, const sizes_t *s, int "
                                 "i)");
    if (p->layout == CLCONV_NCHW) {
        clconv_emit_line(e, "const int tap = i % $taps, row = i / $taps;");
        clconv_emit_line(e, "const int c = row % s->group_c, k = row / "
                            "s->group_c;");
    } else {
        clconv_emit_line(e, "const int c = i % s->group_c, row = i / "
                            "s->group_c;");
        clconv_emit_line(e, "const int tap = row % $taps, k = row / $taps;");
    }
    clconv_emit_line(e,
                     "return swizzled(at + tap * $tap_bytes + k * $bytes + 2 "
                     "* c, $bytes);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* In the order in which they lie, eight before the first is used; what is past
 * the last channel stays 0. */
static void emit_load_elements(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_line(e,
                     "for (int i = item; i < $taps * $k_line * $octets; i += "
                     "$items)");
    clconv_emit_line(e, "    put16(tiles, at + 16 * i, (uint4)(0));");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "const int all = s->group_k * s->group_c * $taps;");
    clconv_emit_line(e, r->half_type
                            ? "__global const ushort *from = (__global const "
                              "ushort *)p + group * s->group_k * s->w_image;"
                            : "__global const float *from = p + group * "
                              "s->group_k * s->w_image;");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int first = item; p && first < all; first += 8 * "
                        "$items)");
    clconv_emit_line(e, r->half_type ? "uint v[8];" : "float v[8];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e,
                     "    v[j] = first + j * $items < all ? from[first + j * "
                     "$items] : 0;");
    clconv_fused_emit_eight(e, r, "const $raw raw =");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    see_octet_w(raw, seen);");
    clconv_emit_line(e, "const uint4 h = halves_of_w(raw);");
    clconv_emit_line(e, "const uint words[4] = { h.x, h.y, h.z, h.w };");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e, "const int i = first + j * $items;");
    clconv_emit_line(e, "if (i < all)");
    clconv_emit_line(e,
                     "    put2(tiles, w_place(at, s, i), (ushort)(words[j / 2] "
                     ">> 16 * (j % 2)));");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_load_w(clconv_emit *e, const clconv_problem *p,
                        const clconv_fused_reader *r)
{
    if (!r->vectors)
        emit_w_place(e, p);
    open_load_w(e);
    if (r->vectors)
        emit_load_vectors(e);
    else
        emit_load_elements(e, r);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- dbias ------------------------------------------------------------ */

/* Registers are few: a work-item's sums are in local memory. */
static void emit_add_bias(clconv_emit *e)
{
    clconv_nest_open_function(e, "void add_bias(__local float *all, int item, "
                                 "const float8 *sum)");
    clconv_emit_line(e, "__local float4 *total = (__local float4 *)(all + 8 * "
                        "item);");
    clconv_emit_line(e, "total[0] += sum->lo;");
    clconv_emit_line(e, "total[1] += sum->hi;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A channel's sums, from all work-items of its octet in order; out has room for
 * those of a whole line. */
void clconv_fused_emit_bias(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f)
{
    clconv_fused_reader r = clconv_fused_reader_of(t, f, CLCONV_DY);
    if (!r.bias)
        return;
    clconv_fused_reader_set(e, &r);
    emit_add_bias(e);
    clconv_nest_open_function(e,
                              "void leave_bias(__local const float *all, int "
                              "item, __global float *out)");
    clconv_emit_line(e, "const int octet = item / 8;");
    clconv_emit_line(e, "if (octet >= $octets)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_line(e, "for (int i = 0; i < $lanes; ++i)");
    clconv_emit_line(e, r.vectors
                            ? "    sum += all[8 * ($octets * i + octet) + "
                              "item % 8];"
                            : "    sum += all[8 * ($lanes * octet + i) + "
                              "item % 8];");
    clconv_emit_line(e, "out[item] = sum;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- All -------------------------------------------------------------- */

/* From the caller's tensor, or from what the copy unit brought. */
static void emit_tensor(clconv_emit *e, const clconv_task *t,
                        const clconv_fused *f, clconv_tensor tensor)
{
    clconv_fused_reader r = clconv_fused_reader_of(t, f, tensor);
    emit_octet(e, t, &r);
    emit_begin(e, &r);
    if (f->ahead) {
        clconv_fused_emit_ahead_read(e, t, f, tensor);
    } else {
        emit_fetch(e, &r);
        emit_read(e, &r);
    }
    emit_write(e, &r);
}

void clconv_fused_emit_loads(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f)
{
    clconv_fused_reader w = clconv_fused_reader_of(t, f, CLCONV_W);
    clconv_counts_emit_seen(e, 1);
    emit_stream(e);
    emit_tensor(e, t, f, CLCONV_DY);
    emit_tensor(e, t, f, CLCONV_X);
    emit_octet(e, t, &w);
    emit_fetch(e, &w);
    emit_load_w(e, t->problem, &w);
    if (f->ahead)
        clconv_fused_emit_ask(e, t, f);
}
