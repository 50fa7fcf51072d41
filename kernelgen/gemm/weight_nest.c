/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "weight_nest.h"

#include <stdio.h>

#include "bias_sum.h"
#include "entry.h"
#include "integers.h"
#include "output.h"
#include "sizes.h"

/* Tiles of pixels of a part, and bytes of all partial sums. */
#define LEAST_PART 8
#define MOST_SCRATCH (64 << 20)

/* Neighbours in memory are pixels of a row (NCHW) or channels (NHWC). */
clconv_nest clconv_weight_nest(const clconv_problem *p)
{
    bool nchw = p->layout == CLCONV_NCHW;
    return (clconv_nest){
        .a = {.tensor = CLCONV_DY,
              .along_k = nchw,
              .limit_y = "1",
              .limit_x = "1",
              .quad = {.whole = p->group_k % 4 == 0,
                       .step = nchw ? "sizes->dy_channel" : NULL}},
        .b = {.tensor = CLCONV_X,
              .along_k = nchw,
              .limit_y = "sizes->h",
              .limit_x = "sizes->w",
              .bordered = true,
              .quad = {.whole = p->group_c % 4 == 0,
                       .step = nchw ? "sizes->x_channel" : NULL}},
        .c = CLCONV_DW,
        .c_along_m = false,
    };
}

bool clconv_weight_nest_taps_fastest(const clconv_problem *p)
{
    return p->layout == CLCONV_NCHW && p->r * p->s > 1;
}

int64_t clconv_weight_nest_columns(const clconv_problem *p)
{
    return p->r * p->s * p->group_c;
}

int64_t clconv_weight_nest_blocks(const clconv_problem *p, int tile_m,
                                  int tile_n)
{
    return p->groups * clconv_divide_up(p->group_k, tile_m) *
           clconv_divide_up(clconv_weight_nest_columns(p), tile_n);
}

double clconv_weight_nest_waste(const clconv_problem *p, int tile_m, int tile_n)
{
    double blocks = (double)clconv_weight_nest_blocks(p, tile_m, tile_n);
    double elements = (double)clconv_problem_elements(p, CLCONV_DW);
    return blocks * tile_m * tile_n / elements;
}

/* Pixels, columns and work-groups are counted in ints on the device, with
 * room for a last tile and for any split. */
bool clconv_weight_nest_covers(const clconv_problem *p, int least_m, int least_n)
{
    const double limit = CLCONV_NEST_LIMIT, largest_split = 256;
    double pixels = (double)p->n * (double)p->p * (double)p->q;
    double width = (double)p->r * (double)p->s * (double)p->group_c;
    double work = (double)p->groups * ((double)p->group_k / least_m + 1) *
                  (width / least_n + 1) * largest_split;
    return clconv_nest_covers(p) && pixels < limit && width < limit &&
           work < limit;
}

/* In steps of 4, since each split is another program. */
int clconv_weight_nest_split(const clconv_problem *p, const clconv_device *d,
                             const clconv_weight_tile *tile, int most)
{
    int64_t blocks = clconv_weight_nest_blocks(p, tile->m, tile->n);
    int64_t pixels = p->n * p->p * p->q;
    int64_t bytes = 4 * clconv_problem_elements(p, CLCONV_DW);
    int64_t wanted = 2 * (int64_t)d->compute_units;
    int64_t part = LEAST_PART * (int64_t)tile->k;
    int split = 1;
    while (split < most && blocks * split < wanted &&
           pixels >= 4 * split * part && 4 * split * bytes <= MOST_SCRATCH)
        split *= 4;
    return split;
}

int64_t clconv_weight_nest_most_room(const clconv_problem *p,
                                     const clconv_device *d)
{
    int64_t bytes = 4 * clconv_problem_elements(p, CLCONV_DW);
    return clconv_min(MOST_SCRATCH, (int64_t)d->max_allocation) / bytes;
}

int64_t clconv_weight_nest_most_parts(const clconv_problem *p,
                                      const clconv_device *d, int tile_k)
{
    int64_t pixels = p->n * p->p * p->q;
    int64_t most = clconv_min(pixels / (LEAST_PART * tile_k),
                              clconv_weight_nest_most_room(p, d));
    return most > 1 ? most : 1;
}

bool clconv_weight_nest_has_sum(const clconv_weight_tile *tile)
{
    return tile->split > 1 || tile->apart;
}

size_t clconv_weight_nest_scratch(const clconv_problem *p,
                                  const clconv_weight_tile *tile)
{
    int64_t floats = tile->split * clconv_problem_elements(p, CLCONV_DW);
    return clconv_weight_nest_has_sum(tile) ? (size_t)floats * sizeof(float) : 0;
}

/* ---- Passes ----------------------------------------------------------- */

/* What the pass that stores dW takes after its inputs. */
static void add_output_args(const clconv_task *t, clconv_pass *pass)
{
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_SIZES, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DW);
}

static void product_pass(const clconv_task *t, const clconv_weight_tile *tile,
                         clconv_pass *out)
{
    int64_t blocks = clconv_weight_nest_blocks(t->problem, tile->m, tile->n);
    out->groups = (size_t)(tile->split * blocks);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_X);
    if (!clconv_weight_nest_has_sum(tile)) {
        add_output_args(t, out);
    } else {
        clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DW);
        clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DW);
    }
}

static void sum_pass(const clconv_task *t, const clconv_weight_tile *tile,
                     clconv_pass *out)
{
    int64_t elements = clconv_problem_elements(t->problem, CLCONV_DW);
    out->local = (size_t)tile->sum_items;
    out->groups = (size_t)clconv_divide_up(elements, tile->sum_items);
    clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DW);
    add_output_args(t, out);
    clconv_bias_sum_add(t, out);
}

/* Also for an empty batch: dW is then beta times its old value. */
int clconv_weight_nest_passes(const clconv_task *t, const char *entry,
                              const char *sum_entry,
                              const clconv_weight_tile *tile, clconv_pass *out)
{
    clconv_pass start = {
        .entry = entry,
        .local = (size_t)tile->items,
        .serves = CLCONV_OP_DW,
    };
    out[0] = start;
    product_pass(t, tile, &out[0]);
    if (!clconv_weight_nest_has_sum(tile))
        return 1;
    start.entry = sum_entry;
    out[1] = start;
    sum_pass(t, tile, &out[1]);
    return 2;
}

/* ---- Text ------------------------------------------------------------- */

static void emit_block_type(clconv_emit *e)
{
    clconv_emit_line(e, "/* One work-group's tile of dW. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int group;");
    clconv_emit_line(e, "    int k0, column0; /* of the tile */");
    clconv_emit_line(e, "    int columns; /* taps * channels of a group */");
    clconv_emit_line(e, "    int part; /* of the split sum */");
    clconv_emit_line(e, "    int begin, end; /* its pixels */");
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
}

/* Takes the work-group's number apart: part slowest, columns fastest, so that
 * neighbours read the same dY. Parts are whole tiles of pixels. */
static void emit_place(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "void block_place(block_t *b, const sizes_t *s, "
                              "int split, int number)");
    clconv_emit_line(e, "b->columns = s->r * s->s * $tap_columns;");
    clconv_emit_line(e, "int column_tiles = (b->columns + $tile_n - 1) / "
                        "$tile_n;");
    clconv_emit_line(e, "int k_tiles = (s->group_k + $tile_m - 1) / $tile_m;");
    clconv_emit_line(e, "b->column0 = number % column_tiles * $tile_n;");
    clconv_emit_line(e, "number /= column_tiles;");
    clconv_emit_line(e, "b->k0 = number % k_tiles * $tile_m;");
    clconv_emit_line(e, "number /= k_tiles;");
    clconv_emit_line(e, "b->group = number % s->groups;");
    clconv_emit_line(e, "b->part = number / s->groups;");
    clconv_emit_line(e, "int pixels = s->n * s->p * s->q;");
    clconv_emit_line(e, "int tiles = (pixels + split * $tile_k - 1) / "
                        "(split * $tile_k);");
    clconv_emit_line(e, "b->begin = min(b->part * tiles * $tile_k, pixels);");
    clconv_emit_line(e, "b->end = min(b->begin + tiles * $tile_k, pixels);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* image, row, column of dY. */
static void emit_pixel(clconv_emit *e)
{
    clconv_nest_open_function(e, "int3 pixel_at(const sizes_t *s, int pixel)");
    clconv_emit_line(e, "int row = pixel / s->q;");
    clconv_emit_line(e, "return (int3)(row / s->p, row % s->p, pixel % s->q);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dy(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "spot_t dy_row(const block_t *b, const sizes_t *s, "
           "int row)");
    clconv_emit_line(e, "int k = b->k0 + row;");
    clconv_emit_line(e, "long at = (b->group * $dy_channels + k) * "
                        "$dy_channel;");
    clconv_emit_line(e, "return spot(k < s->group_k, at, 0, 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "spot_t dy_term(const block_t *b, const sizes_t *s, "
           "int k)");
    clconv_emit_line(e, "int3 pixel = pixel_at(s, k);");
    clconv_emit_line(e, "long at = pixel.x * $dy_image + "
                        "pixel.y * $dy_row + pixel.z * $dy_column;");
    clconv_emit_line(e, "return spot(k < b->end, at, 0, 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* channel within the group, r, t: the filter's position is (r, t). */
static void emit_column(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "int3 column_at(const sizes_t *s, int column)");
    clconv_emit_line(e, "int tap = column / $tap_columns;");
    clconv_emit_line(e, "int channel = column % $tap_columns;");
    clconv_emit_line(e, "return (int3)(channel, tap / s->s, tap % s->s);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_x(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "spot_t x_row(const block_t *b, const sizes_t *s, "
           "int row)");
    clconv_emit_line(e, "if (b->column0 + row >= b->columns)");
    clconv_emit_line(e, "    return spot(0, 0, 0, 0);");
    clconv_emit_line(e, "int3 column = column_at(s, b->column0 + row);");
    clconv_emit_line(e, "int y = column.y * s->dilation_h - s->pad_top;");
    clconv_emit_line(e, "int x = column.z * s->dilation_w - s->pad_left;");
    clconv_emit_line(e, "long at = (b->group * $x_channels + column.x) * "
                        "$x_channel + y * $x_row + x * $x_column;");
    clconv_emit_line(e, "return spot(1, at, y, x);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "spot_t x_term(const block_t *b, const sizes_t *s, "
           "int k)");
    clconv_emit_line(e, "int3 pixel = pixel_at(s, k);");
    clconv_emit_line(e, "int y = pixel.y * s->stride_h;");
    clconv_emit_line(e, "int x = pixel.z * s->stride_w;");
    clconv_emit_line(e, "long at = pixel.x * $x_image + y * $x_row + "
                        "x * $x_column;");
    clconv_emit_line(e, "return spot(k < b->end, at, y, x);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dw(clconv_emit *e, bool padded)
{
    clconv_nest_open_function(e,
                              "long dw_row(const block_t *b, const sizes_t *s, "
                              "int m)");
    clconv_emit_line(e, "int k = b->k0 + m;");
    clconv_emit_line(e, "long at = (b->group * s->group_k + k) * s->w_image;");
    clconv_emit_line(e, "return k < s->group_k ? at : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "long dw_column(const block_t *b, const sizes_t *s, "
           "int n)");
    clconv_emit_line(e, "int3 column = column_at(s, b->column0 + n);");
    clconv_emit_line(e, "long at = column.x * s->w_channel + "
                        "column.y * s->w_row + column.z * s->w_column;");
    clconv_emit_line(e, padded ? "return b->column0 + n < b->columns && "
                                 "column.x < s->group_c ? at : -1;"
                               : "return b->column0 + n < b->columns ? at : "
                                 "-1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_blocks(clconv_emit *e, bool padded)
{
    clconv_sizes_emit(e);
    emit_block_type(e);
    emit_place(e);
    emit_pixel(e);
    emit_column(e);
    emit_dw(e, padded);
}

void clconv_weight_nest_emit_blocks(clconv_emit *e, const char *tap_columns)
{
    clconv_emit_set_text(e, "tap_columns", tap_columns);
    emit_blocks(e, true);
}

static void emit_operands(clconv_emit *e, bool packed)
{
    clconv_emit_part(e, "spot");
    clconv_nest_set_strides(e, CLCONV_DY, packed);
    clconv_nest_set_strides(e, CLCONV_X, packed);
    emit_dy(e);
    emit_x(e);
}

void clconv_weight_nest_emit(clconv_emit *e)
{
    clconv_emit_set_text(e, "tap_columns", "s->group_c");
    emit_blocks(e, false);
    emit_operands(e, false);
}

void clconv_weight_nest_emit_packed(clconv_emit *e)
{
    clconv_emit_part(e, "padded");
    clconv_weight_nest_emit_blocks(e, "padded(s->group_c)");
    emit_operands(e, true);
}

void clconv_weight_nest_emit_count(clconv_emit *e)
{
    clconv_nest_open_function(e, "int block_count(const sizes_t *s)");
    clconv_emit_line(e, "int columns = s->r * s->s * $tap_columns;");
    clconv_emit_line(e, "return $split * s->groups * ((s->group_k + $tile_m - "
                        "1) / $tile_m) * ((columns + $tile_n - 1) / $tile_n);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_weight_nest_emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, $split, "
                        "(int)get_group_id(0));");
}

/* k, tap and channel of dW's i-th element. */
static void emit_element(clconv_emit *e)
{
    clconv_nest_open_function(e, "int3 element_at(const sizes_t *s, long i)");
    clconv_emit_line(e, "int k = i / s->w_image;");
    clconv_emit_line(e, "int rest = (int)(i - k * s->w_image);");
    clconv_emit_line(e, "int taps = s->r * s->s;");
    clconv_emit_line(e,
                     "return s->w_channel == 1 ? (int3)(k, rest / s->group_c, "
                     "rest % s->group_c)");
    clconv_emit_line(e,
                     "                         : (int3)(k, rest % taps, rest "
                     "/ taps);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where a part, whose channels are last, has dW's i-th element: of as many
 * channels as $merge groups have, those of k's own. */
static void emit_part_place(clconv_emit *e)
{
    clconv_nest_open_function(e, "long part_place(const sizes_t *s, long i)");
    clconv_emit_line(e, "int3 element = element_at(s, i);");
    clconv_emit_line(e, "int own = element.x / s->group_k % $merge;");
    clconv_emit_line(e,
                     "long tap = (long)element.x * (s->r * s->s) + element.y;");
    clconv_emit_line(e,
                     "return tap * ($merge * s->group_c) + own * s->group_c + "
                     "element.z;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_part_column(clconv_emit *e, bool padded)
{
    clconv_nest_open_function(
        e, "long part_column(const block_t *b, const sizes_t *s, "
           "int n)");
    if (padded) {
        clconv_emit_line(e, "int3 column = column_at(s, b->column0 + n);");
        clconv_emit_line(e, "int tap = column.y * s->s + column.z;");
        clconv_emit_line(e, "return b->column0 + n < b->columns && column.x < "
                            "s->group_c ? tap * s->group_c + column.x : -1;");
    } else {
        clconv_emit_line(e, "return b->column0 + n < b->columns ? b->column0 + "
                            "n : -1;");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_weight_nest_emit_parts(clconv_emit *e, bool padded, int merge)
{
    clconv_emit_set(e, "merge", merge);
    clconv_nest_open_function(
        e, "long part_row(const block_t *b, const sizes_t *s, "
           "int m)");
    clconv_emit_line(e, "return dw_row(b, s, m);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    emit_part_column(e, padded);
    emit_element(e);
    emit_part_place(e);
}

/* place: where a part has dW's i-th element. */
static void emit_sum(clconv_emit *e, const clconv_task *t,
                     const clconv_pass *pass, const char *attribute,
                     const char *place, const char *part_count,
                     const clconv_weight_parts *parts)
{
    clconv_emit_set_text(e, "place", place);
    clconv_emit_set_text(e, "part_count", part_count);
    clconv_emit_set_text(e, "parts", parts ? parts->count : "");
    clconv_emit_set(e, "work_items", (int64_t)pass->local);
    clconv_emit_blank(e);
    clconv_bias_sum_emit_functions(e, t, (int)pass->local);
    clconv_entry_open(e, t, pass, attribute);
    if (parts)
        parts->begin(e);
    clconv_bias_sum_emit_groups(e, t);
    clconv_emit_line(e, "long count = sizes.k * sizes.w_image;");
    clconv_emit_line(e, "long i = $group * $work_items + "
                        "get_local_id(0);");
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_open(e, "if ($inside)");
    clconv_emit_line(e, "long place = $place;");
    if (parts)
        clconv_emit_line(e, "int parts = $parts;");
    clconv_emit_line(e, "float value = 0.0f;");
    if (!t->device->is_cpu)
        clconv_emit_line(e, "#pragma unroll 8");
    clconv_emit_line(e, "for (int part = 0; part < $split; ++part)");
    clconv_emit_line(e, parts ? "    value += part < parts ? scratch[part * "
                                "$part_count + place] : 0.0f;"
                              : "    value += scratch[part * $part_count + "
                                "place];");
    clconv_emit_line(e, "store_dw(dw, i, value, $beta_dw$tally);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

void clconv_weight_nest_emit_sum(clconv_emit *e, const clconv_task *t,
                                 const clconv_pass *pass, const char *attribute)
{
    emit_sum(e, t, pass, attribute, "i", "count", NULL);
}

void clconv_weight_nest_emit_parts_sum(clconv_emit *e, const clconv_task *t,
                                       const clconv_pass *pass,
                                       const char *attribute, int merge,
                                       const clconv_weight_parts *parts)
{
    bool same = t->problem->layout == CLCONV_NHWC && merge == 1;
    char count[32] = "count";
    if (merge > 1)
        snprintf(count, sizeof count, "(%d * count)", merge);
    emit_sum(e, t, pass, attribute, same ? "i" : "part_place(&sizes, i)", count,
             parts);
}
