/*
 * dX on a CPU: tile_c channels by tile_w vectors of 16 positions stay in
 * registers while all k and taps run past them.
 *
 *     pack_dy   dY -> planes [block of images][k][image], see tile_pack.h
 *     pack_w    W  -> weights [group][c_block][k][tile_c][r][s] in fp32,
 *               rounded as W is multiplied
 *     main      a work-item: one block of images, one group, one phase of
 *               rows, one c_block, span position tiles
 *         for each tile of tile_w * 16 positions
 *             for each phase of columns
 *                 for each block of k
 *                     for k, for the taps r, s of the phases
 *                         block_sums[c][position] += weights[k][c][r][s]
 *                                 * plane[k][position + shift(r, s)]
 *                     sums += block_sums
 *             the positions that are pixels -> dX
 *
 * A phase of rows (tile_phase.h) is every stride-th row of dX, those that
 * meet the same taps; a phase of columns likewise. A pixel that no tap hits
 * is in a phase without taps, whose sums are zeros.
 *
 * Positions run over rows of a phase joined end to end, as wide as the planes'
 * pitch, and over so many images, joined likewise, that the last tile of the
 * block wastes little. Those in the gaps between rows and images are computed
 * and dropped. The gaps are so many zeros that a tap which leaves a row or an
 * image of dY meets zeros only. Position for position, the phases of columns
 * lie side by side in dX: their sums are interleaved before they are stored.
 *
 * A block of k is so small that none of its sums has more than CHAIN terms:
 * rounding errors grow with the length of a chain of additions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "kernel.h"
#include "kernel_shape.h"
#include "operand.h"
#include "output.h"
#include "tile_pack.h"
#include "tile_phase.h"
#include "tile_store.h"
#include "tile_sums.h"
#include "tile_weights.h"

#define LANES CLCONV_TILE_LANES

enum { TILE_C, TILE_W, UNROLL, SPAN, CAST, SHAPE };
enum { UNROLL_NONE, UNROLL_FILTER };
enum { CAST_FUSED, CAST_SEPARATE };

/* With the shape as arguments, one program serves all problems of the same
 * types and exponents and, unroll=filter, of the same R and S. */
static const clconv_param params[] = {
    [TILE_C] = {"tile_c", CLCONV_VALUES(8, 1, 2, 3, 4, 5, 6, 14),
                "channels of dX a tile"},
    [TILE_W] = {"tile_w", CLCONV_VALUES(3, 1, 2, 4, 5, 6),
                "vectors of 16 positions a tile"},
    [UNROLL] = {"unroll", CLCONV_NAMES("none", "filter"), "taps written out"},
    [SPAN] = {"span", CLCONV_VALUES(16, 4, 64),
              "position tiles a work-item computes, one after another"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY is rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_tile_axis rows, columns;
    clconv_tile_planes dy;
    int64_t height; /* rows of the phase that has most */
    int64_t blocks; /* of images */
    int64_t tiles, chunks;
    int64_t c_blocks; /* of a group */
    int64_t k_block;  /* channels of dY in one chain of sums */
    int64_t run;      /* weights of a c_block for one k */
    int64_t weights;  /* where they lie in the scratch, in floats */
} layout;

/* Elements of a phase's array that are pixels, those of all phases together:
 * first .. last. */
static int64_t first_of(const clconv_tile_axis *a)
{
    return a->pad / a->stride;
}

static int64_t last_of(const clconv_tile_axis *a)
{
    return (a->pad + a->in - 1) / a->stride;
}

/* Zeros around dY: how far taps reach beyond its edges. */
static int64_t zeros_before(const clconv_tile_axis *a)
{
    return clconv_max(0, a->reach - first_of(a));
}

static int64_t zeros_after(const clconv_tile_axis *a)
{
    return clconv_max(0, last_of(a) - (a->out - 1));
}

/* Elements from channel to channel: no multiple of large powers of two, with
 * which all channels would fall on the same lines of a cache. */
static int64_t spread(int64_t elements)
{
    int64_t stride = clconv_round_up(elements, LANES);
    return stride % 256 ? stride : stride + LANES;
}

/* Everything but the number of joined images. */
static void set_planes(const clconv_problem *p, layout *s)
{
    s->rows = clconv_tile_rows(p);
    s->columns = clconv_tile_columns(p);
    s->height = last_of(&s->rows) - first_of(&s->rows) + 1;
    int64_t width = last_of(&s->columns) - first_of(&s->columns) + 1;
    int64_t top = zeros_before(&s->rows), bottom = zeros_after(&s->rows);
    int64_t left = zeros_before(&s->columns), right = zeros_after(&s->columns);
    int64_t pitch = clconv_max(s->columns.out + clconv_max(left, right), width);
    int64_t image_rows =
        clconv_max(s->rows.out + clconv_max(top, bottom), s->height);
    int64_t start = top * pitch + left;
    int64_t end = start + (s->rows.out + bottom) * pitch;
    s->dy = (clconv_tile_planes){
        .tensor = CLCONV_DY,
        .channels = p->k,
        .rows = s->rows.out,
        .columns = s->columns.out,
        .grid = {.pitch = pitch,
                 .image_stride = image_rows * pitch,
                 .tail = clconv_max(0, end - image_rows * pitch)},
        .start = start,
        .entry = "bwd_data_tile_pack_dy",
        .serves = CLCONV_OP_DX,
    };
}

/* Positions of so many joined images: none in the gap after the last. */
static int64_t positions_of(const layout *s, int64_t images)
{
    return (images - 1) * s->dy.grid.image_stride + s->height * s->dy.grid.pitch;
}

static int64_t tiles_of(const layout *s, int64_t images, int64_t tile)
{
    return clconv_divide_up(positions_of(s, images), tile);
}

/* Elements of a channel's joined images at most: its planes stay close. */
#define MAX_JOINED 4096

/* How many images to join so that there are the fewest tiles; of equals the
 * fewest images. */
static int64_t images_of(const clconv_problem *p, const layout *s, int64_t tile)
{
    int64_t best = 1, least = tiles_of(s, 1, tile);
    int64_t most = MAX_JOINED / s->dy.grid.image_stride;
    for (int64_t images = 2; images <= most && images <= p->n; images *= 2) {
        int64_t tiles = tiles_of(s, images, tile);
        if (tiles * best >= least * images)
            continue;
        best = images;
        least = tiles;
    }
    return best;
}

static void join_images(const clconv_problem *p, layout *s, int64_t tile)
{
    clconv_tile_grid *grid = &s->dy.grid;
    grid->images = images_of(p, s, tile);
    grid->channel_stride =
        spread(grid->images * grid->image_stride + grid->tail);
    grid->block_stride = p->k * grid->channel_stride;
    s->blocks = clconv_divide_up(p->n, grid->images);
    s->tiles = tiles_of(s, grid->images, tile);
    /* The last tile may run past the last plane; those sums are dropped. */
    s->dy.elements = s->blocks * grid->block_stride + grid->pitch + tile;
}

/* Additions, one after the other, that make a sum. */
#define CHAIN 128

/* Blocks of about the same size, so many that none is too long. */
static int64_t k_block_of(const layout *s, int64_t k)
{
    int64_t taps =
        clconv_tile_most_taps(&s->rows) * clconv_tile_most_taps(&s->columns);
    int64_t most = clconv_max(1, CHAIN / taps);
    return clconv_divide_up(k, clconv_divide_up(k, most));
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile_c = t->values[TILE_C];
    int64_t tile = t->values[TILE_W] * LANES;
    layout s = {.run = tile_c * p->r * p->s};
    set_planes(p, &s);
    s.k_block = k_block_of(&s, p->group_k);
    join_images(p, &s, tile);
    s.chunks = clconv_divide_up(s.tiles, t->values[SPAN]);
    s.c_blocks = clconv_divide_up(p->group_c, tile_c);
    s.weights = clconv_tile_planes_floats(p, &s.dy);
    return s;
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    clconv_shape s = {.baked = t->baked};
    clconv_tile_grid_shape(&l->dy.grid, &s);
    clconv_tile_pack_shape(&l->dy, &s);
    clconv_tile_axis_shape(&l->rows, "h", &s);
    clconv_tile_axis_shape(&l->columns, "w", &s);
    clconv_shape_add(&s, "groups", p->groups);
    clconv_shape_add(&s, "group_c", p->group_c);
    clconv_shape_add(&s, "group_k", p->group_k);
    clconv_shape_add(&s, "x_rows", l->rows.in);
    clconv_shape_add(&s, "x_columns", l->columns.in);
    clconv_shape_add(&s, "dx_image", p->c * p->h * p->w);
    clconv_shape_add(&s, "dx_row", p->stride_h * l->columns.in);
    clconv_shape_add(&s, "filter", p->r * p->s);
    clconv_shape_add(&s, "weights", l->weights);
    clconv_shape_add(&s, "run", l->run);
    clconv_tile_weights_shape(t, l->run, &s);
    clconv_shape_add(&s, "k_block", l->k_block);
    clconv_shape_add(&s, "c_blocks", l->c_blocks);
    clconv_shape_add(&s, "chunks", l->chunks);
    clconv_shape_add(&s, "span", t->values[SPAN]);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* Phases are searched for, and their sums wait in private memory. */
#define MAX_FILTER 16
#define MAX_STRIDE 16

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    if (!d->is_cpu || p->layout != CLCONV_NCHW)
        return false;
    if (p->stride_h > MAX_STRIDE || p->stride_w > MAX_STRIDE)
        return false;
    if (p->r > MAX_FILTER || p->s > MAX_FILTER || !clconv_tile_is_small(p))
        return false;
    layout s = {0};
    set_planes(p, &s);
    return clconv_tile_is_addressable(p, &s.dy);
}

/* Registers: the sums, a vector of dY for each column, one weight. */
static int live_of(int tile_c, int tile_w)
{
    return tile_c * tile_w + tile_w + 1;
}

/* Vector multiply-adds' worth of a tile. For each k and tap most of the loads
 * hide behind the multiply-adds; for each sum and phase about twelve go into
 * setting, adding and storing it. */
static double tile_cost(const clconv_problem *p, int tile_c, int tile_w)
{
    double sums = tile_c * tile_w;
    double steps = (double)(p->group_k * p->r * p->s);
    double phases = (double)(p->stride_h * p->stride_w);
    return steps * (sums + 0.1 * (tile_c + tile_w) + 1) +
           phases * (12 * sums + 50);
}

/* The same of all images. */
static double vector_cost(const clconv_problem *p, int tile_c, int tile_w)
{
    layout s = {0};
    set_planes(p, &s);
    join_images(p, &s, tile_w * LANES);
    double tiles = (double)s.tiles * (double)s.blocks *
                   (double)clconv_divide_up(p->group_c, tile_c) *
                   (double)p->groups;
    return tiles * tile_cost(p, tile_c, tile_w);
}

static bool has_phases(const clconv_problem *p)
{
    return p->stride_h != 1 || p->stride_w != 1;
}

/* The time of a strided multiply-add, whose taps are a phase's, beside that of
 * one without a stride: measured on three shapes with AVX2, 1.45 to 1.56. */
#define PHASES 1.5

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    const clconv_device *d = t->device;
    layout l = layout_of(t);
    int tile_c = t->values[TILE_C], tile_w = t->values[TILE_W];
    double vectors = vector_cost(p, tile_c, tile_w) *
                     clconv_cost_spill(d, live_of(tile_c, tile_w)) *
                     (has_phases(p) ? PHASES : 1);
    double moved = (double)clconv_problem_bytes(p, CLCONV_DY) +
                   (double)clconv_problem_bytes(p, CLCONV_DX) +
                   (double)clconv_tile_planes_floats(p, &l.dy) * sizeof(float);
    return LANES * vectors + clconv_cost_move(d, moved) +
           clconv_cost_launch(d, 3);
}

/* Few, since each is another program: for each kind of CPU the fastest, and
 * some for few channels. */
static const struct {
    int registers, tile_c, tile_w;
} default_tiles[] = {
    {CLCONV_MANY_REGISTERS, 8, 3}, {CLCONV_MANY_REGISTERS, 4, 5},
    {CLCONV_MANY_REGISTERS, 3, 6}, {CLCONV_FEW_REGISTERS, 6, 1},
    {CLCONV_FEW_REGISTERS, 2, 2},
};

#define DEFAULT_TILES (int)(sizeof default_tiles / sizeof *default_tiles)

static void choose_tile(const clconv_problem *p, const clconv_device *d,
                        int *values)
{
    double best = 0;
    for (int i = 0; i < DEFAULT_TILES; ++i) {
        if (default_tiles[i].registers != d->vector_registers)
            continue;
        int tile_c = default_tiles[i].tile_c;
        int tile_w = default_tiles[i].tile_w;
        double now = vector_cost(p, tile_c, tile_w);
        if (best > 0 && now >= best)
            continue;
        best = now;
        values[TILE_C] = tile_c;
        values[TILE_W] = tile_w;
    }
}

/* Compilers take seconds for more multiply-adds in one function. */
#define MAX_TEXT 300

/* 3 x 3 and 1 x 1 have programs of their own, all other filters and all strides
 * share. */
static bool is_common(const clconv_problem *p)
{
    return p->r == p->s && (p->r == 3 || p->r == 1) && !has_phases(p);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAM_COUNT, values);
    choose_tile(p, d, values);
    if (is_common(p))
        values[UNROLL] = UNROLL_FILTER;
}

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile = t->values[TILE_C] * t->values[TILE_W];
    if (live_of(t->values[TILE_C], t->values[TILE_W]) > CLCONV_MANY_REGISTERS)
        return false;
    return t->values[UNROLL] == UNROLL_NONE ||
           (!has_phases(p) && tile * p->r * p->s <= MAX_TEXT);
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* pack_w reads each weight. */
static unsigned counts(const clconv_task *t)
{
    (void)t;
    return CLCONV_BIT(CLCONV_W);
}

/* ---- Passes and scratch ----------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    layout s = layout_of(t);
    int64_t weights = s.c_blocks * t->problem->k * s.run;
    return (size_t)(s.weights + weights) * sizeof(float);
}

static void main_pass(const clconv_task *t, size_t groups,
                      const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_tile",
        .groups = groups,
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_shape_arg(s, pass);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    int64_t blocks = clconv_divide_up(batch, l.dy.grid.images);
    int64_t items = blocks * t->problem->groups * t->problem->stride_h;
    clconv_tile_pack_pass(t, &l.dy, batch, &s, &out[0]);
    clconv_tile_weights_pass(t, l.c_blocks, &s, &out[1]);
    main_pass(t, (size_t)(items * l.chunks * l.c_blocks), &s, &out[2]);
    return 3;
}

/* ---- Text ------------------------------------------------------------- */

/* $filter and $run are numbers where the taps are written out. */
static void set_holes(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t filter = p->r * p->s, tile = t->values[TILE_W] * LANES;
    clconv_emit_set(e, "tile", tile);
    clconv_emit_set(e, "tile_sums", t->values[TILE_C] * tile);
    clconv_emit_set(e, "max_stride", MAX_STRIDE);
    clconv_emit_set_text(e, "filter", "shape.filter");
    clconv_emit_set_text(e, "run", "shape.run");
    if (t->values[UNROLL] == UNROLL_FILTER) {
        clconv_emit_set(e, "filter", filter);
        clconv_emit_set(e, "run", t->values[TILE_C] * filter);
    }
    clconv_emit_set_text(e, "plane_type",
                         clconv_operand_fits_half(p, CLCONV_DY) ? "half"
                                                                : "float");
}

/* A work-item's place: c and channels within the group, the phase's first
 * row of dX. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "const axis_t h = axis_rows(shape);");
    clconv_emit_line(e, "const axis_t w = axis_columns(shape);");
    clconv_emit_line(e, "long item = get_group_id(0);");
    clconv_emit_line(e, "const long c_block = item % shape.c_blocks;");
    clconv_emit_line(e, "item /= shape.c_blocks;");
    clconv_emit_line(e, "const int chunk = item % shape.chunks;");
    clconv_emit_line(e, "item /= shape.chunks;");
    clconv_emit_line(e, "const int phase = item % h.stride;");
    clconv_emit_line(e, "item /= h.stride;");
    clconv_emit_line(e, "const long group = item % shape.groups;");
    clconv_emit_line(e, "const long block = item / shape.groups;");
    clconv_emit_line(e, "const int images = min(shape.images, batch - block * "
                        "shape.images);");
    clconv_emit_line(e, "const long c = c_block * $tile_c;");
    clconv_emit_line(e, "const int channels = min($tile_c, (int)(shape.group_c "
                        "- c));");
    clconv_emit_line(e, "const int first = (h.pad - phase + h.stride - 1) / "
                        "h.stride;");
    clconv_emit_line(e, "const int top = first * h.stride + phase - h.pad;");
}

/* plane and weights are those of the phase's first tap. */
static void emit_pointers(clconv_emit *e)
{
    clconv_emit_line(e, "const taps_t rows = taps_of(h, phase, shape.pitch, "
                        "w.taps);");
    clconv_emit_line(e, "__global const $plane_type *plane = $dy_planes + "
                        "block * shape.block_stride + group * shape.group_k * "
                        "shape.channel_stride + shape.dy_start + first * "
                        "shape.pitch + w.pad / w.stride - rows.shift;");
    clconv_emit_line(e, "__global const float *weights = scratch + "
                        "shape.weights + (group * shape.c_blocks + c_block) * "
                        "shape.group_k * $run + rows.weight;");
    clconv_emit_line(e, "const long pixels = (long)h.in * w.in;");
    clconv_emit_line(e, "dx += block * shape.images * shape.dx_image + (group "
                        "* shape.group_c + c) * pixels + (long)top * w.in;");
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    emit_place(e);
    emit_pointers(e);
    clconv_emit_line(e, "taps_t columns[$max_stride];");
    clconv_emit_line(e, "for (int j = 0; j < w.stride; ++j)");
    clconv_emit_line(e, "    columns[j] = taps_of(w, j, 1, 1);");
    clconv_emit_line(e, "float sums[$max_stride * $tile_sums];");
    clconv_emit_line(e, "float strip[$max_stride * $tile];");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, "const int row_count = (h.in - top + h.stride - 1) / "
                        "h.stride;");
    clconv_emit_line(e, "const int begin = chunk * shape.span * $tile;");
    clconv_emit_line(e, "const int end = min(begin + shape.span * $tile, "
                        "(images - 1) * shape.image_stride + row_count * "
                        "shape.pitch);");
    clconv_emit_open(e, "for (int position = begin; position < end; position "
                        "+= $tile)");
    clconv_emit_line(e, "const place_t place = place_of(position, row_count, "
                        "images, shape);");
    clconv_emit_open(e, "for (int j = 0; j < w.stride; ++j)");
    clconv_emit_line(e, "sum_phase(plane + position, weights, rows, "
                        "columns[j], shape, sums + j * $tile_sums);");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int j = 0; j < channels; ++j)");
    clconv_emit_line(e, "store_positions(dx + j * pixels, place, w, shape, "
                        "interleave(sums + j * $tile, w.stride, strip), "
                        "beta$tally);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_pass pass[CLCONV_MAX_PASSES];
    const clconv_tile_sums sums = {
        .tile_c = t->values[TILE_C],
        .tile_w = t->values[TILE_W],
        .written_out = t->values[UNROLL] == UNROLL_FILTER,
        .r = (int)t->problem->r,
        .s = (int)t->problem->s,
    };
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    clconv_tile_axis_emit(e);
    clconv_tile_pack_emit(e, t, &l.dy, &s, &pass[0]);
    set_holes(e, t);
    clconv_tile_weights_emit(e, t, &s, &pass[1]);
    clconv_tile_sums_emit(e, &sums);
    clconv_tile_store_emit(e, t->problem);
    emit_main(e, t, &s, &pass[2]);
}

const clconv_kernel clconv_bwd_data_tile = {
    .name = "bwd_data_tile",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 3,
    .summary = "register tiles for CPUs: NCHW, any stride up to 16",
    .params = params,
    .param_count = PARAM_COUNT,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .counts = counts,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};
