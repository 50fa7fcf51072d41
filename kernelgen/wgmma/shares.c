/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "shares.h"

#include <stdint.h>

#include "integers.h"
#include "nest.h"

/* Emulation has a few compute units, of which tiles would leave none: that many
 * work-groups make every case. */
#define LEAST_GROUPS 11

int clconv_shares_groups(const clconv_device *d)
{
    return d->unit_emulated ? (int)clconv_max(d->compute_units, LEAST_GROUPS)
                            : (int)d->compute_units;
}

clconv_shares clconv_shares_of(const clconv_device *d, int64_t blocks,
                               int64_t steps)
{
    clconv_shares s = {
        .groups = clconv_shares_groups(d),
        .blocks = (int)blocks,
    };
    s.wide = (blocks * steps + 1) * s.groups > INT32_MAX;
    s.whole = s.groups / s.blocks;
    s.sharers = s.groups % s.blocks;
    s.parts = s.whole + (s.sharers ? 2 : 0);
    s.pieces = s.sharers ? s.blocks / s.sharers + 2 : 1;
    return s;
}

/* ---- Steps ------------------------------------------------------------ */

static void emit_type(clconv_emit *e)
{
    clconv_emit_line(e, "/* How the steps of all tiles are shared out. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int steps; /* of a tile */");
    clconv_emit_line(e, "    int each;  /* of a work-group with one tile */");
    clconv_emit_line(e, "    int parts; /* of a tile, before the sharers' */");
    clconv_emit_line(e, "    int rest;  /* of a tile, for the sharers */");
    clconv_emit_line(e, "} shares_t;");
    clconv_emit_blank(e);
}

/* Without sharers no step may be left. */
static void emit_shares(clconv_emit *e, const clconv_shares *s)
{
    clconv_nest_open_function(e, "shares_t get_shares(const sizes_t *s)");
    clconv_emit_line(e, "shares_t h;");
    clconv_emit_line(e, "h.steps = (s->n * s->p * s->q + $tile_k - 1) / "
                        "$tile_k;");
    clconv_emit_line(e, s->sharers
                            ? "h.each = ($wide)$blocks * h.steps / $groups;"
                            : "h.each = (h.steps + $whole - 1) / $whole;");
    clconv_emit_line(e,
                     "h.parts = h.each ? min($whole, (h.steps + h.each - 1) / "
                     "h.each) : 0;");
    clconv_emit_line(e, s->sharers ? "h.rest = h.steps - $whole * h.each;"
                                   : "h.rest = 0;");
    clconv_emit_line(e, "return h;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The at-th step of all the rests. */
static void emit_sharer(clconv_emit *e)
{
    clconv_nest_open_function(e, "int sharer_of(const shares_t *h, $wide at)");
    clconv_emit_line(e, "return ((at + 1) * $sharers - 1) / (($wide)$blocks * "
                        "h->rest);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Pieces ----------------------------------------------------------- */

static void emit_whole(clconv_emit *e)
{
    clconv_emit_line(e, "int tile = share % $blocks;");
    clconv_emit_line(e, "int part = share / $blocks;");
    clconv_emit_line(e, "int begin = part * h.each;");
    clconv_emit_line(e,
                     "int end = piece ? begin : min(begin + h.each, h.steps);");
}

/* Its steps of all the rests are from first to last; a piece is what lies in one
 * tile. */
static void emit_rests(clconv_emit *e)
{
    clconv_emit_open(e, "if (share >= $whole * $blocks)");
    clconv_emit_line(e, "const int sharer = share - $whole * $blocks;");
    clconv_emit_line(e, "const $wide rests = ($wide)$blocks * h.rest;");
    clconv_emit_line(e, "const $wide first = sharer * rests / $sharers;");
    clconv_emit_line(e, "const $wide last = (sharer + 1) * rests / $sharers;");
    clconv_emit_line(e, "if (first == last)");
    clconv_emit_line(e, "    return 0;");
    clconv_emit_line(e, "tile = first / h.rest + piece;");
    clconv_emit_line(e, "const $wide from = ($wide)tile * h.rest;");
    clconv_emit_line(e, "if (from >= last)");
    clconv_emit_line(e, "    return 0;");
    clconv_emit_line(e, "part = h.parts + sharer - sharer_of(&h, from);");
    clconv_emit_line(e, "begin = $whole * h.each + (int)(max(first, from) - "
                        "from);");
    clconv_emit_line(e,
                     "end = $whole * h.each + (int)(min(last, from + h.rest) "
                     "- from);");
    clconv_emit_close(e);
}

static void emit_share(clconv_emit *e, const clconv_shares *s)
{
    clconv_nest_open_function(e,
                              "int block_share(block_t *b, const sizes_t *s, "
                              "int number)");
    clconv_emit_line(e, "const shares_t h = get_shares(s);");
    clconv_emit_line(e, "const int share = number % $groups;");
    clconv_emit_line(e, "const int piece = number / $groups;");
    emit_whole(e);
    if (s->sharers)
        emit_rests(e);
    clconv_emit_line(e, "block_place(b, s, 1, tile);");
    clconv_emit_line(e, "b->part = part;");
    clconv_emit_line(e, "b->end = min(end * $tile_k, b->end);");
    clconv_emit_line(e, "b->begin = begin * $tile_k;");
    clconv_emit_line(e, "return b->begin < b->end;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_count(clconv_emit *e)
{
    clconv_nest_open_function(e, "int block_count(const sizes_t *s)");
    clconv_emit_line(e, "return $groups * $pieces;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Parts ------------------------------------------------------------ */

/* In the order of block_place(). */
static void emit_tile_of(clconv_emit *e)
{
    clconv_nest_open_function(e, "int tile_with(const sizes_t *s, long i)");
    clconv_emit_line(e, "int3 element = element_at(s, i);");
    clconv_emit_line(e, "int column = element.y * $tap_columns + element.z;");
    clconv_emit_line(e,
                     "int column_tiles = (s->r * s->s * $tap_columns + $tile_n "
                     "- 1) / $tile_n;");
    clconv_emit_line(e, "int k_tiles = (s->group_k + $tile_m - 1) / $tile_m;");
    clconv_emit_line(e, "int k_tile = element.x / s->group_k * k_tiles + "
                        "element.x % s->group_k / $tile_m;");
    clconv_emit_line(e, "return k_tile * column_tiles + column / $tile_n;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_parts(clconv_emit *e, const clconv_shares *s)
{
    clconv_nest_open_function(e, "int parts_of(const sizes_t *s, int tile)");
    clconv_emit_line(e, "const shares_t h = get_shares(s);");
    if (s->sharers) {
        clconv_emit_line(e, "const $wide from = ($wide)tile * h.rest;");
        clconv_emit_line(e, "if (h.rest)");
        clconv_emit_line(e,
                         "    return h.parts + 1 + sharer_of(&h, from + h.rest "
                         "- 1) - sharer_of(&h, from);");
    }
    clconv_emit_line(e, "return h.parts;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The whole -------------------------------------------------------- */

void clconv_shares_emit(clconv_emit *e, const clconv_shares *s)
{
    clconv_emit_set(e, "groups", s->groups);
    clconv_emit_set(e, "blocks", s->blocks);
    clconv_emit_set(e, "whole", s->whole);
    clconv_emit_set(e, "sharers", s->sharers);
    clconv_emit_set(e, "pieces", s->pieces);
    clconv_emit_set_text(e, "wide", s->wide ? "long" : "int");
    emit_type(e);
    emit_shares(e, s);
    if (s->sharers)
        emit_sharer(e);
    emit_share(e, s);
    emit_count(e);
    emit_tile_of(e);
    emit_parts(e, s);
}

/* The divisions take longer than a sum, so a work-item does those of a tile. */
static void begin_parts(clconv_emit *e)
{
    clconv_emit_line(e, "__local int parts_of_tile[$blocks];");
    clconv_emit_line(e, "for (int i = (int)get_local_id(0); i < $blocks; i += "
                        "$work_items)");
    clconv_emit_line(e, "    parts_of_tile[i] = parts_of(&sizes, i);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

clconv_weight_parts clconv_shares_parts(void)
{
    return (clconv_weight_parts){
        .begin = begin_parts,
        .count = "parts_of_tile[tile_with(&sizes, i)]",
    };
}
