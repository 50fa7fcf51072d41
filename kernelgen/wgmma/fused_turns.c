/*
 * How bwd_fused's tensors come to local memory, in turns of all work-items: each
 * reads a few octets, and writes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fused.h"

/* ---- Slots ------------------------------------------------------------ */

/* Pixels come by one copy of the copy unit, planes by all work-items. */
void clconv_fused_emit_slots(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f)
{
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    clconv_emit_set(e, "ranges", clconv_fused_ranges(&turns));
    clconv_emit_line(e, "const uint slots = base + $slots_begin;");
    clconv_emit_line(e, "__local int2 ranges[$ranges];");
    if (f->dx.emulated) {
        clconv_emit_line(e, "const uint full = 0;");
        return;
    }
    clconv_emit_set(e, "arrivals",
                    t->problem->layout == CLCONV_NCHW ? CLCONV_FUSED_ITEMS : 1);
    clconv_emit_line(e, "__local ulong barriers[$ahead];");
    clconv_emit_line(e, "const uint full = shared_address(barriers);");
    clconv_emit_open(e, "if (item == 0)");
    clconv_emit_line(e, "for (int i = 0; i < $ahead; ++i)");
    clconv_emit_line(e, "    barrier_init(full + 8 * i, $arrivals);");
    clconv_emit_line(e, "publish();");
    clconv_emit_close(e);
}

void clconv_fused_emit_find(clconv_emit *e)
{
    clconv_emit_line(e, "find_ranges(ranges, $halo_turns + (tile - begin + 2) "
                        "* $tile_turns, $tile_turns, begin, end, &line, "
                        "&sizes, item);");
}

static void emit_ask(clconv_emit *e)
{
    clconv_emit_line(e, "ask_turn(tiles, slots, full, ranges, number, dy, x, "
                        "&sizes, group, item);");
}

/* As many turns as there are slots. */
static void emit_ask_first(clconv_emit *e)
{
    clconv_emit_line(e, "find_ranges(ranges, 0, $ranges, begin, end, &line, "
                        "&sizes, item);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int number = 0; number < $ahead; ++number)");
    emit_ask(e);
    clconv_emit_close(e);
}

/* A slot that all have read takes the turn that is next to come. */
static void emit_ask_next(clconv_emit *e)
{
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "const int number = used + $ahead;");
    emit_ask(e);
    clconv_emit_line(e, "++used;");
}

/* ---- A turn ----------------------------------------------------------- */

/* Holes of a turn that reads a tensor. */
static void set_turn(clconv_emit *e, const clconv_task *t,
                     const clconv_fused *f, bool of_x)
{
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    clconv_tensor tensor = of_x ? CLCONV_X : CLCONV_DY;
    bool half_type = t->problem->type[tensor] == CLCONV_F16;
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "raw", half_type ? "uint4" : "float8");
    clconv_emit_set(e, "raws", of_x ? turns.x_deep : turns.dy_deep);
    clconv_emit_set(e, "a_turn", f->rows / turns.dy);
}

static void emit_read_slot(clconv_emit *e, const clconv_fused *f)
{
    clconv_emit_line(e, "const int slot = used % $ahead;");
    if (!f->dx.emulated)
        clconv_emit_line(e, "barrier_wait(full + 8 * slot, used / $ahead & "
                            "1);");
    clconv_emit_line(e, "read_$tensor(raw, $tensor != 0, tiles, slots + slot * "
                        "$slot_bytes, ranges[range_slot(used)].x, "
                        "&${tensor}_stream, item, &line, &sizes);");
}

void clconv_fused_emit_turn_read(clconv_emit *e, const clconv_task *t,
                                 const clconv_fused *f, bool of_x,
                                 const char *condition)
{
    set_turn(e, t, f, of_x);
    clconv_emit_line(e, "$raw raw[$raws];");
    if (condition)
        clconv_emit_open(e, condition);
    if (f->ahead)
        emit_read_slot(e, f);
    else
        clconv_emit_line(e, "read_$tensor(raw, $tensor, &${tensor}_stream, "
                            "item, &line, &sizes, group);");
    if (condition)
        clconv_emit_close(e);
}

/* dY past the work-group's range is the next one's to count and sum. */
static void emit_write_dy(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_set_text(e, "sum", t->bias ? ", &sum" : "");
    clconv_emit_line(
        e, "write_dy(raw, tiles, base + $dy_begin, &dy_stream, (end - tile) * "
           "$rows > $before + turn * $a_turn, item, dy_counts != 0, "
           "group_tally + 6$sum);");
}

static void emit_sum(clconv_emit *e)
{
    clconv_emit_line(e, "float8 sum = 0.0f;");
}

static void emit_add_bias(clconv_emit *e)
{
    clconv_emit_line(e, "add_bias(bias, item, &sum);");
}

void clconv_fused_emit_turn_write(clconv_emit *e, const clconv_task *t,
                                  const clconv_fused *f, bool of_x,
                                  int64_t before)
{
    bool alone = !of_x && t->bias && !f->ahead;
    set_turn(e, t, f, of_x);
    clconv_emit_set(e, "before", before);
    if (of_x) {
        clconv_emit_line(e, "write_x(raw, tiles, base + $x_begin, &x_stream, "
                            "1, item, x_counts != 0, group_tally + 12);");
        return;
    }
    if (alone)
        emit_sum(e);
    emit_write_dy(e, t);
    if (alone)
        emit_add_bias(e);
}

/* ---- Turns ------------------------------------------------------------ */

/* So many, one after the other; what they sum of a tile ahead stays in
 * registers that products need later. */
static void emit_turns(clconv_emit *e, const clconv_task *t,
                       const clconv_fused *f, bool of_x, int count,
                       int64_t before)
{
    bool together = !of_x && t->bias && f->ahead;
    clconv_emit_open(e, NULL);
    if (together)
        emit_sum(e);
    clconv_emit_set(e, "count", count);
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int turn = 0; turn < $count; ++turn)");
    clconv_fused_emit_turn_read(e, t, f, of_x, NULL);
    clconv_fused_emit_turn_write(e, t, f, of_x, before);
    if (f->ahead)
        emit_ask_next(e);
    clconv_emit_close(e);
    if (together)
        emit_add_bias(e);
    clconv_emit_close(e);
}

void clconv_fused_emit_tile(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f, int64_t before)
{
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    emit_turns(e, t, f, true, turns.x, 0);
    emit_turns(e, t, f, false, turns.dy, before + f->halo);
}

/* ---- The first tile --------------------------------------------------- */

static void emit_weights(clconv_emit *e)
{
    clconv_emit_line(e, "seen_t w_seen = { 0 };");
    clconv_emit_line(e, "load_w(tiles, base, w, item, &sizes, group, w_counts "
                        "&& part == 0, &w_seen);");
    clconv_emit_line(e, "counts_t w_tally = { 0 };");
    clconv_emit_line(e, "fold(&w_tally, &w_seen);");
    clconv_emit_line(e, "counts_share(&w_tally, group_tally);");
}

/* Where a work-item is. */
static void emit_streams(clconv_emit *e)
{
    clconv_emit_line(e, "stream_t x_stream, dy_stream;");
    clconv_emit_line(e, "begin_x(&x_stream, &line, begin * $rows, item);");
    clconv_emit_line(e, "begin_dy(&dy_stream, &line, begin * $rows, item);");
}

void clconv_fused_emit_first(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f)
{
    if (f->ahead) {
        emit_ask_first(e);
        clconv_emit_line(e, "int used = 0;");
    }
    emit_weights(e);
    emit_streams(e);
    if (f->ahead)
        clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (begin < end)");
    clconv_emit_line(e, "const int tile = begin;");
    emit_turns(e, t, f, false, clconv_fused_turns_of(t, f).halo, 0);
    clconv_fused_emit_tile(e, t, f, 0);
    clconv_emit_close(e);
}
