/*
 * dX, dW and dbias by Hopper's warpgroup products, from one reading of dY, X
 * and W in the caller's layout and type, for strides of 1 and up to 64 channels
 * a group. How images lie, and why a tap is a distance, is told in fused.h.
 *
 *     each work-group, for its group of channels and its range of tiles
 *         load W, a matrix [k][c] a tap; the first tile's halo and rows
 *         for each tile of rows of the line, each warpgroup
 *             begin, for its positions:  dx = sum over taps of dY from the tap's
 *                                             distance on * W
 *                    for its taps: dw[tap] += X transposed * dY from its
 *                                             distance on
 *             meanwhile load the next tile: X's rows and dY's a halo further on,
 *                    rounded to fp16; count, sum dbias
 *             wait for the products; store dx
 *         store dw and the sums of dbias in scratch
 *     bwd_fused_sum adds what work-groups left, in order
 *
 * dY lies in a ring, so that the halo between tiles is read once; what stands
 * at its start stands past its end too, so that no matrix is cut in two.
 *
 * Sizes are arguments unless shape=baked; the filter's, the ring's and the
 * number of work-groups are constants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "counts.h"
#include "entry.h"
#include "fused.h"
#include "integers.h"
#include "nest.h"
#include "output.h"
#include "ring.h"
#include "sizes.h"
#include "store.h"

enum { ROWS, AT_ONCE, READS, SHAPE, PARAMS };

enum { BETWEEN, AFTER, AHEAD };

static const clconv_param params[PARAMS] = {
    [ROWS] = {"rows", CLCONV_VALUES(192, 384),
              "positions that a work-group takes at a time"},
    [AT_ONCE] = {"at_once", CLCONV_VALUES(2, 4, 1),
                 "vectors of eight channels that a work-item reads at a time"},
    [READS] = {"reads", CLCONV_NAMES("between", "after", "ahead"),
               "when the next tile is read: between blocks of products, which "
               "takes registers; after all; or by the copy unit meanwhile"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define ATTRIBUTE "__attribute__((reqd_work_group_size(384, 1, 1)))"

/* Sums of a work-item, of its 168 registers. */
#define MOST_SUMS 128
#define MOST_TAPS 25

/* Beside more sums, what is read between products leaves the registers. */
#define BETWEEN_SUMS 96

/* ---- May it? ---------------------------------------------------------- */

static bool suits(const clconv_problem *p, const clconv_device *d)
{
    return p->math == CLCONV_MIXED &&
           clconv_device_has_unit(d, CLCONV_UNIT_WGMMA) && p->stride_h == 1 &&
           p->stride_w == 1 && p->group_k <= 64 && p->group_c <= 64 &&
           p->r <= MOST_TAPS && p->r * p->s <= MOST_TAPS && p->pad_top >= 0 &&
           p->pad_left >= 0 && p->pad_bottom >= 0 && p->pad_right >= 0 &&
           p->pad_top <= (p->r - 1) * p->dilation_h &&
           p->pad_left <= (p->s - 1) * p->dilation_w &&
           p->pad_bottom <= (p->r - 1) * p->dilation_h &&
           p->pad_right <= (p->s - 1) * p->dilation_w &&
           p->groups <= d->compute_units && clconv_nest_covers(p) &&
           (double)p->n * (double)(2 * p->h) * (double)(2 * p->w) <
               CLCONV_NEST_LIMIT;
}

static clconv_fused fused_of(const clconv_task *t)
{
    return clconv_fused_of(t, t->values[ROWS], t->values[AT_ONCE],
                           t->values[READS] == AHEAD);
}

static int sums_of(const clconv_fused *f)
{
    return f->slots * clconv_products_registers(&f->dw) +
           f->blocks * clconv_products_registers(&f->dx);
}

static bool legal(const clconv_task *t)
{
    if (!suits(t->problem, t->device))
        return false;
    clconv_fused f = fused_of(t);
    if (t->values[READS] == AHEAD &&
        !(f.ahead && clconv_fused_ahead_suits(t->problem)))
        return false;
    return sums_of(&f) <= MOST_SUMS &&
           clconv_fused_local(&f) + CLCONV_RING_BARRIERS <=
               (int64_t)clconv_ring_local_memory(t->device) &&
           t->device->max_work_group >= CLCONV_FUSED_ITEMS;
}

/* ---- How long --------------------------------------------------------- */

/* Bytes of dY, X and dX in the caller's types, and of what is left in scratch,
 * written and read. */
static double bytes_of(const clconv_task *t, const clconv_fused *f)
{
    static const clconv_tensor moved[] = {CLCONV_DY, CLCONV_X, CLCONV_DX};
    const clconv_problem *p = t->problem;
    double bytes =
        8.0 * (double)clconv_fused_sums(f) * (double)(f->parts * p->groups);
    for (int i = 0; i < 3; ++i)
        bytes += (p->type[moved[i]] == CLCONV_F16 ? 2.0 : 4.0) *
                 (double)clconv_problem_elements(p, moved[i]);
    return bytes;
}

/* Multiply-adds of both products, as a share of the peak outside the unit, the
 * same beside so many sums that nothing is read between products, and what an
 * element costs that is read by itself: measured on an H200. */
#define SHARE 16.0
#define CROWDED_SHARE 12.5
#define ELEMENT 20.0

/* In groups it took so much longer (n64c256h28w28k256r3s3p1g32, fp16, NHWC). */
#define GROUPED 2.5

static double cost(const clconv_task *t)
{
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    const clconv_problem *p = t->problem;
    clconv_fused f = fused_of(t);
    double length = (double)clconv_max(1, clconv_fused_length(p, p->n));
    int64_t tiles = clconv_divide_up((int64_t)length, f.rows);
    double turns =
        (double)clconv_divide_up(tiles, f.parts) * f.parts * f.rows / length;
    double share = sums_of(&f) > BETWEEN_SUMS ? CROWDED_SHARE : SHARE;
    double done = length * f.k_line * (f.c_line + 64.0) * f.taps / share;
    double read = p->layout == CLCONV_NHWC
                      ? 0
                      : ELEMENT * length * (double)(f.k_line + f.c_line);
    double moved = clconv_cost_move(t->device, bytes_of(t, &f));
    double sum = moved + (done + read) * turns * (double)p->groups +
                 clconv_cost_launch(t->device, 2);
    return p->groups == 1 ? sum : GROUPED * sum;
}

/* Ahead, small turns leave more of them under way. */
static void choose_reads(const clconv_task *t, int *values)
{
    clconv_fused f = fused_of(t);
    if (sums_of(&f) <= BETWEEN_SUMS)
        return;
    int at_once = values[AT_ONCE];
    values[READS] = AHEAD;
    values[AT_ONCE] = 1;
    if (legal(t))
        return;
    values[READS] = AFTER;
    values[AT_ONCE] = at_once;
}

/* The cheapest that is legal. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    const clconv_task task = {.problem = p, .device = d, .values = values};
    double least = -1;
    clconv_param_first(params, PARAMS, values);
    values[SHAPE] = CLCONV_SHAPE_BAKED;
    choose_reads(&task, values);
    int best = values[ROWS];
    for (int i = 0; i < params[ROWS].count; ++i) {
        values[ROWS] = params[ROWS].values[i];
        double is = legal(&task) ? cost(&task) : -1;
        if (is < 0 || (least >= 0 && is >= least))
            continue;
        least = is;
        best = values[ROWS];
    }
    values[ROWS] = best;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!suits(p, d))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

/* ---- The contract ----------------------------------------------------- */

static unsigned wants_copies(const clconv_task *t)
{
    (void)t;
    return 0;
}

static unsigned counts(const clconv_task *t)
{
    (void)t;
    return CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W);
}

static size_t scratch(const clconv_task *t)
{
    clconv_fused f = fused_of(t);
    return (size_t)(f.parts * t->problem->groups * clconv_fused_sums(&f)) *
           sizeof(float);
}

/* Also for an empty batch: outputs are then beta times their old values. */
static clconv_pass product_pass(const clconv_task *t, const clconv_fused *f)
{
    clconv_pass pass = {
        .entry = "bwd_fused",
        .groups = (size_t)(f->parts * t->problem->groups),
        .local = CLCONV_FUSED_ITEMS,
        .serves = CLCONV_OP_DX | CLCONV_OP_DW | (t->bias ? CLCONV_OP_DB : 0u),
        .counts = true,
    };
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, tensor);
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, tensor);
    }
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DX);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch;
    clconv_fused f = fused_of(t);
    out[0] = product_pass(t, &f);
    out[1] = clconv_fused_sum_pass(t, &f);
    return 2;
}

/* ---- Text: dX --------------------------------------------------------- */

static void emit_dx_places(clconv_emit *e)
{
    clconv_emit_line(e, "/* 64 positions of a tile. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int group, first;");
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "long dx_row(const block_t *b, const sizes_t "
                                 "*s, int m)");
    clconv_emit_line(e, "const line_t line = line_of(s);");
    clconv_emit_line(e, "const place_t place = place_at(&line, b->first + m);");
    clconv_emit_line(e, "return x_at(s, &place, b->group);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "long dx_column(const block_t *b, const "
                                 "sizes_t *s, int n)");
    clconv_emit_line(e, "return n < s->group_c ? n * s->x_channel : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Stores what the warpgroup has of the tile. */
static void emit_store(clconv_emit *e, const clconv_task *t,
                       const clconv_fused *f, const clconv_nest *nest)
{
    const clconv_wgmma_tile store = {.products = f->dx};
    const clconv_wgmma_target to = {NULL};
    clconv_emit_open(e, "if (dx)");
    clconv_emit_line(e, "const block_t block = { group, tile * $rows };");
    clconv_wgmma_store_emit(e, t, &store, nest, &to);
    clconv_emit_close(e);
}

/* ---- Text: products --------------------------------------------------- */

static void emit_unroll(clconv_emit *e, const clconv_fused *f)
{
    if (!f->dx.emulated)
        clconv_emit_line(e, "#pragma unroll");
}

/* Where a matrix of dY starts, in units of 16 bytes: a tap's distance behind
 * position first of the ring, which may be past its end. */
static void emit_ring(clconv_emit *e)
{
    clconv_nest_open_function(e, "uint dy_start(uint dy, int first, int tap, "
                                 "const line_t *line)");
    clconv_emit_line(e, "const int row = first + ($r - 1 - tap / $s) * "
                        "$dilation_h * line->pitch + ($s - 1 - tap % $s) * "
                        "$dilation_w;");
    clconv_emit_line(e, "return dy + (row - (row >= $ring ? $ring : 0)) * "
                        "($dy_line / 16);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What a block of 64 positions takes: of dW the warpgroup's products, each from
 * its last tap, whose distance is least; of dX its positions for at_block taps,
 * which are others in each block. */
static void emit_starts(clconv_emit *e, const clconv_fused *f)
{
    clconv_emit_line(e, "const uint a = here(x) / 16 + block * (4 * $x_line);");
    clconv_emit_line(e, "const uint from = here(dy) / 16;");
    clconv_emit_line(e, "const uint w = here(weights) / 16;");
    clconv_emit_line(e, "uint b[$slots], rows[$at_block][$blocks_m];");
    emit_unroll(e, f);
    clconv_emit_line(e, "for (int i = 0; i < $slots; ++i)");
    clconv_emit_line(e, "    b[i] = dy_start(from, first + 64 * block, "
                        "min($wide * ($slots * warpgroup + i + 1), $taps) - 1, "
                        "line);");
    emit_unroll(e, f);
    clconv_emit_line(e, "for (int i = 0; i < $at_block; ++i)");
    emit_unroll(e, f);
    clconv_emit_line(e, "    for (int j = 0; j < $blocks_m; ++j)");
    clconv_emit_line(e,
                     "        rows[i][j] = dy_start(from, first + $group_m * "
                     "warpgroup + 64 * j, min($at_block * block + i, $taps - "
                     "1), line);");
}

static void emit_step_dx(clconv_emit *e, const clconv_fused *f)
{
    emit_unroll(e, f);
    clconv_emit_open(e, "for (int i = 0; k < $steps && i < $at_block; ++i)");
    clconv_emit_line(e, "const int tap = $at_block * block + i;");
    if (f->taps % (f->rows / CLCONV_WGMMA_M)) {
        clconv_emit_line(e, "if (tap >= $taps)");
        clconv_emit_line(e, "    continue;");
    }
    emit_unroll(e, f);
    clconv_emit_line(e, "for (int j = 0; j < $blocks_m; ++j)");
    clconv_emit_line(e,
                     "    product(tiles, dx[j], matrix_from(rows[i][j] + 2 * "
                     "k, $dy_line, 16), matrix_from(w + tap * ($tap_bytes / "
                     "16) + k * $x_line, $x_line, 16), lane);");
    clconv_emit_close(e);
}

/* The products of a block. Those of dX, each of which adds to the last, stand
 * between those of dW, so that they need not wait for each other. */
static void emit_multiply(clconv_emit *e, const clconv_problem *p,
                          const clconv_fused *f)
{
    clconv_emit_set(e, "steps", f->k_line / CLCONV_WGMMA_K);
    clconv_emit_set(e, "at_block",
                    clconv_divide_up(f->taps, f->rows / CLCONV_WGMMA_M));
    clconv_emit_set(e, "tap_pitch", p->dilation_w * 2 * f->k_line);
    clconv_nest_open_function(
        e, "void multiply(__local const uchar *tiles, uint x, uint dy, uint "
           "weights, float dw[$slots][$dw_registers], float "
           "dx[$blocks_m][$sums], int first, int block, int warpgroup, const "
           "line_t *line, int lane)");
    emit_starts(e, f);
    emit_unroll(e, f);
    clconv_emit_open(e, "for (int k = 0; k < 4; ++k)");
    emit_unroll(e, f);
    clconv_emit_line(e, "for (int i = 0; i < $slots; ++i)");
    clconv_emit_line(
        e, "    dw_product(tiles, dw[i], matrix_from(a + k * $x_line, "
           "$x_line, 0), matrix_from(b[i] + k * $dy_line, "
           "$dy_line, $tap_pitch), lane);");
    emit_step_dx(e, f);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: sums of dW ------------------------------------------------- */

static void emit_hold_dw(clconv_emit *e, const clconv_fused *f)
{
    emit_unroll(e, f);
    clconv_emit_line(e, "for (int i = 0; i < $slots; ++i)");
    clconv_emit_line(e, "    dw_hold(dw[i]);");
}

static void emit_dw_sums(clconv_emit *e)
{
    clconv_emit_line(e, "float dw[$slots][$dw_registers];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $slots; ++i)");
    clconv_emit_line(e, "    #pragma unroll");
    clconv_emit_line(e, "    for (int reg = 0; reg < $dw_registers; ++reg)");
    clconv_emit_line(e, "        dw[i][reg] = 0.0f;");
}

static void emit_leave_dw(clconv_emit *e)
{
    clconv_emit_line(e, "__global float *out = left + warpgroup * $slots * "
                        "$dw_registers * 128 + lane;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $slots; ++i)");
    clconv_emit_line(e, "    #pragma unroll");
    clconv_emit_line(e, "    for (int reg = 0; reg < $dw_registers; ++reg)");
    clconv_emit_line(e, "        out[(i * $dw_registers + reg) * 128] = "
                        "dw[i][reg];");
}

/* ---- Text: the way of a tile ------------------------------------------ */

/* All that was written to local memory shows to all products. */
static void emit_meet(clconv_emit *e, const clconv_fused *f)
{
    if (!f->dx.emulated)
        clconv_emit_line(e, "publish();");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

static void emit_block(clconv_emit *e, const clconv_fused *f, int block)
{
    clconv_emit_set(e, "block", block);
    if (!f->dx.emulated)
        clconv_emit_line(e, "products_begin();");
    clconv_emit_line(e, "multiply(tiles, base + $x_begin + stage * ($rows * "
                        "$x_line), base + $dy_begin, base, dw, sum, first, "
                        "$block, warpgroup, &line, lane);");
    if (!f->dx.emulated)
        clconv_emit_line(e, "products_commit();");
}

static void emit_end_products(clconv_emit *e, const clconv_fused *f)
{
    if (f->dx.emulated)
        return;
    clconv_emit_line(e, "products_wait();");
    clconv_ring_emit_hold(e);
    emit_hold_dw(e, f);
}

static void emit_finish(clconv_emit *e, const clconv_task *t,
                        const clconv_fused *f, const clconv_nest *nest)
{
    emit_end_products(e, f);
    emit_store(e, t, f, nest);
}

/* What a turn reads arrives during a block's products, or while dX is stored. */
static void emit_between(clconv_emit *e, const clconv_task *t,
                         const clconv_fused *f, const clconv_nest *nest)
{
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    int blocks = f->rows / CLCONV_WGMMA_M, reads = turns.x + turns.dy;
    int count = (int)clconv_max(blocks, reads);
    for (int i = 0; i < count; ++i) {
        bool of_x = i < turns.x;
        clconv_emit_open(e, NULL);
        clconv_emit_set(e, "turn", of_x ? i : i - turns.x);
        if (i < reads) {
            clconv_emit_line(e, "const int turn = $turn;");
            clconv_fused_emit_turn_read(e, t, f, of_x, "if (more)");
        }
        if (i < blocks)
            emit_block(e, f, i);
        if (i == count - 1)
            emit_finish(e, t, f, nest);
        if (i < reads) {
            clconv_emit_open(e, "if (more)");
            clconv_fused_emit_turn_write(e, t, f, of_x, f->rows + f->halo);
            clconv_emit_close(e);
        }
        clconv_emit_close(e);
    }
}

static void emit_after(clconv_emit *e, const clconv_task *t,
                       const clconv_fused *f, const clconv_nest *nest)
{
    for (int i = 0; i < f->rows / CLCONV_WGMMA_M; ++i)
        emit_block(e, f, i);
    clconv_emit_open(e, "if (more)");
    clconv_fused_emit_tile(e, t, f, f->rows);
    clconv_emit_close(e);
    emit_finish(e, t, f, nest);
}

/* One buffer is enough where nothing is written beside products. */
static void emit_ahead(clconv_emit *e, const clconv_task *t,
                       const clconv_fused *f, const clconv_nest *nest)
{
    for (int i = 0; i < f->rows / CLCONV_WGMMA_M; ++i)
        emit_block(e, f, i);
    clconv_fused_emit_find(e);
    emit_finish(e, t, f, nest);
    clconv_emit_open(e, "if (more)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_fused_emit_tile(e, t, f, f->rows);
    clconv_emit_close(e);
}

static void emit_tiles(clconv_emit *e, const clconv_task *t,
                       const clconv_fused *f, const clconv_nest *nest)
{
    clconv_emit_line(e, "int stage = 0, first = 0;");
    clconv_emit_open(e, "for (int tile = begin; tile < end; ++tile)");
    clconv_emit_line(e, "const int more = tile + 1 < end;");
    clconv_ring_emit_sums(e);
    if (!f->dx.emulated) {
        clconv_ring_emit_hold(e);
        emit_hold_dw(e, f);
    }
    if (t->values[READS] == BETWEEN)
        emit_between(e, t, f, nest);
    else if (t->values[READS] == AFTER)
        emit_after(e, t, f, nest);
    else
        emit_ahead(e, t, f, nest);
    clconv_emit_line(e, "first += $rows;");
    clconv_emit_line(e, "first -= first >= $ring ? $ring : 0;");
    if (f->buffers > 1)
        clconv_emit_line(e, "stage ^= 1;");
    emit_meet(e, f);
    clconv_emit_close(e);
}

/* Sums of dbias, and counts. */
static void emit_end(clconv_emit *e, const clconv_task *t)
{
    if (t->bias)
        clconv_emit_line(e, "leave_bias(bias, item, left + $dw_sums);");
    clconv_emit_line(e, "counts_flush_shared(w_counts, group_tally);");
    clconv_emit_line(e, "counts_flush_shared(dy_counts, group_tally + 6);");
    clconv_emit_line(e, "counts_flush_shared(x_counts, group_tally + 12);");
}

/* ---- The whole -------------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_fused *f)
{
    clconv_fused_set_holes(e, t, f);
    clconv_emit_set(e, "blocks_m", f->blocks);
    clconv_emit_set(e, "sums", clconv_products_registers(&f->dx));
    clconv_emit_set(e, "group_m", f->blocks * CLCONV_WGMMA_M);
    clconv_emit_set(e, "group_n", 0);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f, const clconv_nest *nest)
{
    const clconv_wgmma_tile store = {.products = f->dx};
    const clconv_wgmma_target to = {NULL};
    clconv_sizes_emit(e);
    clconv_products_emit_parts(e, &f->dx);
    clconv_products_emit_functions(e, &f->dx);
    clconv_products_emit_more(e, &f->dw);
    clconv_fused_emit_line(e);
    clconv_counts_emit_flush_group(e);
    clconv_fused_emit_loads(e, t, f);
    clconv_fused_emit_bias(e, t, f);
    emit_dx_places(e);
    emit_ring(e);
    emit_multiply(e, t->problem, f);
    clconv_wgmma_store_emit_functions(e, t, &store, nest, &to);
}

static void emit_range(clconv_emit *e)
{
    clconv_emit_line(e, "const int group = (int)get_group_id(0) % "
                        "sizes.groups;");
    clconv_emit_line(e, "const int part = (int)get_group_id(0) / "
                        "sizes.groups;");
    clconv_emit_line(e, "const line_t line = line_of(&sizes);");
    clconv_emit_line(e, "const int count = (line.end + $rows - 1) / $rows;");
    clconv_emit_line(e,
                     "const int begin = (int)((long)count * part / $parts);");
    clconv_emit_line(e, "const int end = (int)((long)count * (part + 1) / "
                        "$parts);");
    clconv_emit_line(e, "__global float *left = scratch + "
                        "(long)get_group_id(0) * $part_sums;");
}

/* Also sets what is added to in local memory to 0. */
static void emit_variables(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f)
{
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "__local uint group_tally[18];");
    if (t->bias)
        clconv_emit_line(e, "__local float bias[$bias_floats] "
                            "__attribute__((aligned(32)));");
    clconv_emit_line(
        e, f->dx.emulated ? "const uint base = 0;"
                          : "const uint base = (shared_address(tiles) + 1023) "
                            "& ~1023u;");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int warpgroup = uniform(item / 128);");
    clconv_emit_line(e, "const int lane = item % 128;");
    clconv_emit_line(e, "if (item < 18)");
    clconv_emit_line(e, "    group_tally[item] = 0;");
    if (t->bias)
        clconv_emit_line(e, "*(__local float8 *)(bias + 8 * item) = 0.0f;");
    if (f->ahead)
        clconv_fused_emit_slots(e, t, f);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    const clconv_nest nest = {.c = CLCONV_DX};
    clconv_fused f = fused_of(t);
    clconv_pass pass = product_pass(t, &f);
    set_holes(e, t, &f);
    emit_functions(e, t, &f, &nest);
    clconv_entry_open(e, t, &pass, ATTRIBUTE);
    emit_variables(e, t, &f);
    emit_range(e);
    clconv_fused_emit_first(e, t, &f);
    emit_dw_sums(e);
    emit_meet(e, &f);
    emit_tiles(e, t, &f, &nest);
    emit_leave_dw(e);
    emit_end(e, t);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_fused_emit_sum(e, t, &f);
}

const clconv_kernel clconv_bwd_fused = {
    .name = "bwd_fused",
    .role = CLCONV_ROLE_BACKWARD,
    .revision = 2,
    .summary = "dX, dW and dbias at once by Hopper's warpgroup products, up to "
               "64 channels a group",
    .params = params,
    .param_count = PARAMS,
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
