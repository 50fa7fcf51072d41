/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fused.h"
#include "integers.h"
#include "nest.h"
#include "ring.h"
#include "side.h"

/* ---- Sizes ------------------------------------------------------------ */

static int64_t pitch_of(const clconv_problem *p)
{
    return p->w + clconv_max(p->pad_left, p->pad_right);
}

static int64_t image_rows(const clconv_problem *p)
{
    return p->h + clconv_max(p->pad_top, p->pad_bottom);
}

int64_t clconv_fused_length(const clconv_problem *p, int64_t batch)
{
    return batch * image_rows(p) * pitch_of(p);
}

static int64_t halo_of(const clconv_problem *p)
{
    return (p->r - 1) * p->dilation_h * pitch_of(p) + (p->s - 1) * p->dilation_w;
}

/* One work-group a compute unit, if there is a tile for each. */
static int parts_of(const clconv_task *t, int rows)
{
    const clconv_problem *p = t->problem;
    int64_t tiles = clconv_divide_up(clconv_fused_length(p, p->n), rows);
    int64_t units = clconv_max(1, t->device->compute_units / p->groups);
    return (int)clconv_max(1, clconv_min(tiles, units));
}

int clconv_fused_lanes(int line)
{
    return CLCONV_FUSED_ITEMS / (line / 8);
}

static int slots_of(const clconv_fused *f, int wide)
{
    return (int)clconv_divide_up(f->taps / wide, CLCONV_FUSED_GROUPS);
}

/* All taps of a filter row, if one product can have so many columns and no
 * warpgroup gets more sums by it: X is then read once for them. */
static int wide_of(const clconv_problem *p, const clconv_fused *f)
{
    int row = (int)p->s;
    bool fits = row * f->k_line <= CLCONV_WGMMA_N;
    return fits && slots_of(f, row) * row <= slots_of(f, 1) ? row : 1;
}

static void set_products(clconv_fused *f, bool emulated)
{
    f->dx = (clconv_products){
        .n = f->c_line, .a_along_k = true, .emulated = emulated};
    f->dw = (clconv_products){
        .name = "dw_", .n = f->wide * f->k_line, .emulated = emulated};
}

/* From the last position of the ring on, the longest matrix: a block's, as it is
 * for all taps of a product. */
static int mirror_of(const clconv_problem *p, const clconv_fused *f)
{
    return CLCONV_WGMMA_M + (f->wide - 1) * (int)p->dilation_w;
}

clconv_fused clconv_fused_of(const clconv_task *t, int rows, int at_once,
                             bool ahead)
{
    const clconv_problem *p = t->problem;
    clconv_fused f = {.rows = rows, .at_once = at_once, .buffers = ahead ? 1 : 2};
    f.k_line = clconv_wgmma_line(p->group_k);
    f.c_line = clconv_wgmma_line(p->group_c);
    f.taps = (int)(p->r * p->s);
    f.wide = wide_of(p, &f);
    f.slots = slots_of(&f, f.wide);
    f.blocks = rows / CLCONV_FUSED_ROWS;
    f.halo = (int)clconv_round_up(
        halo_of(p),
        clconv_min(rows, (int64_t)at_once * clconv_fused_lanes(f.k_line)));
    f.ring = f.halo + f.buffers * rows;
    f.mirror = mirror_of(p, &f);
    f.parts = parts_of(t, rows);
    f.weight_bytes = clconv_round_up((int64_t)f.taps * f.k_line * f.c_line * 2,
                                     CLCONV_RING_ALIGNMENT);
    f.dy_bytes = (int64_t)(f.ring + f.mirror) * f.k_line * 2;
    f.x_bytes = (int64_t)f.buffers * rows * f.c_line * 2;
    set_products(&f, t->device->unit_emulated);
    if (ahead)
        clconv_fused_ahead_set(t, &f);
    return f;
}

/* With the sums of dbias of all work-items. */
int64_t clconv_fused_local(const clconv_fused *f)
{
    return f->weight_bytes + f->dy_bytes + f->x_bytes + f->ahead_bytes +
           CLCONV_RING_ALIGNMENT +
           8 * CLCONV_FUSED_ITEMS * (int64_t)sizeof(float);
}

int64_t clconv_fused_dw_sums(const clconv_fused *f)
{
    return (int64_t)CLCONV_FUSED_GROUPS * f->slots *
           clconv_products_registers(&f->dw) * CLCONV_WARPGROUP;
}

int64_t clconv_fused_sums(const clconv_fused *f)
{
    return clconv_fused_dw_sums(f) + f->k_line;
}

void clconv_fused_set_holes(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f)
{
    const clconv_problem *p = t->problem;
    clconv_emit_set(e, "r", p->r);
    clconv_emit_set(e, "s", p->s);
    clconv_emit_set(e, "dilation_h", p->dilation_h);
    clconv_emit_set(e, "dilation_w", p->dilation_w);
    clconv_emit_set(e, "taps", f->taps);
    clconv_emit_set(e, "rows", f->rows);
    clconv_emit_set(e, "halo", f->halo);
    clconv_emit_set(e, "ring", f->ring);
    clconv_emit_set(e, "parts", f->parts);
    clconv_emit_set(e, "k_line", f->k_line);
    clconv_emit_set(e, "c_line", f->c_line);
    clconv_emit_set(e, "dy_line", 2 * f->k_line);
    clconv_emit_set(e, "x_line", 2 * f->c_line);
    clconv_emit_set(e, "tap_bytes", 2 * f->k_line * f->c_line);
    clconv_emit_set(e, "dy_begin", f->weight_bytes);
    clconv_emit_set(e, "x_begin", f->weight_bytes + f->dy_bytes);
    clconv_emit_set(e, "slots_begin",
                    f->weight_bytes + f->dy_bytes + f->x_bytes);
    clconv_emit_set(e, "ahead", f->ahead);
    clconv_emit_set(e, "slot_bytes", f->slot_bytes);
    clconv_emit_set(e, "tile_bytes",
                    f->weight_bytes + f->dy_bytes + f->x_bytes +
                        f->ahead * f->slot_bytes + CLCONV_RING_ALIGNMENT);
    clconv_emit_set(e, "mirror", f->mirror);
    clconv_emit_set(e, "wide", f->wide);
    clconv_emit_set(e, "slots", f->slots);
    clconv_emit_set(e, "dw_registers", clconv_products_registers(&f->dw));
    clconv_emit_set(e, "dw_sums", clconv_fused_dw_sums(f));
    clconv_emit_set(e, "part_sums", clconv_fused_sums(f));
    clconv_emit_set(e, "items", CLCONV_FUSED_ITEMS);
    clconv_emit_set(e, "bias_floats", 8 * CLCONV_FUSED_ITEMS);
}

/* ---- Text ------------------------------------------------------------- */

/* Padding after the last column follows from the sizes that there are. */
static void emit_line(clconv_emit *e)
{
    clconv_emit_line(e, "/* Positions: of a row, rows of an image, of all. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int pitch, rows, end;");
    clconv_emit_line(e, "} line_t;");
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "line_t line_of(const sizes_t *s)");
    clconv_emit_line(e, "const int right = s->q - s->w - s->pad_left + "
                        "($s - 1) * $dilation_w;");
    clconv_emit_line(e, "const int bottom = s->p - s->h - s->pad_top + "
                        "($r - 1) * $dilation_h;");
    clconv_emit_line(e, "line_t line;");
    clconv_emit_line(e, "line.pitch = s->w + max(s->pad_left, right);");
    clconv_emit_line(e, "line.rows = s->h + max(s->pad_top, bottom);");
    clconv_emit_line(e, "line.end = s->n * line.rows * line.pitch;");
    clconv_emit_line(e, "return line;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int image, row, column;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "place_t place_at(const line_t *line, int v)");
    clconv_emit_line(e, "const int row = v / line->pitch;");
    clconv_emit_line(e, "place_t place;");
    clconv_emit_line(e, "place.image = row / line->rows;");
    clconv_emit_line(e, "place.row = row % line->rows;");
    clconv_emit_line(e, "place.column = v % line->pitch;");
    clconv_emit_line(e, "return place;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "void place_move(place_t *place, const "
                                 "place_t *by, const line_t *line)");
    clconv_emit_line(e, "place->column += by->column;");
    clconv_emit_line(e, "place->row += by->row;");
    clconv_emit_line(e, "place->image += by->image;");
    clconv_emit_open(e, "if (place->column >= line->pitch)");
    clconv_emit_line(e, "place->column -= line->pitch;");
    clconv_emit_line(e, "++place->row;");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (place->row >= line->rows)");
    clconv_emit_line(e, "place->row -= line->rows;");
    clconv_emit_line(e, "++place->image;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_indices(clconv_emit *e)
{
    clconv_nest_open_function(e, "long dy_at(const sizes_t *s, const place_t "
                                 "*place, int group)");
    clconv_emit_line(e, "const int row = place->row + s->pad_top - ($r - 1) * "
                        "$dilation_h;");
    clconv_emit_line(e, "const int column = place->column + s->pad_left - "
                        "($s - 1) * $dilation_w;");
    clconv_emit_line(e, "if (place->image >= s->n || row < 0 || row >= s->p || "
                        "column < 0 || column >= s->q)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "return place->image * s->dy_image + row * s->dy_row + "
                        "column * s->dy_column + group * s->group_k * "
                        "s->dy_channel;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "long x_at(const sizes_t *s, const place_t "
                                 "*place, int group)");
    clconv_emit_line(e, "if (place->image >= s->n || place->row >= s->h || "
                        "place->column >= s->w)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "return place->image * s->x_image + place->row * "
                        "s->x_row + place->column * s->x_column + group * "
                        "s->group_c * s->x_channel;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_fused_emit_line(clconv_emit *e)
{
    emit_line(e);
    emit_place(e);
    emit_indices(e);
}
