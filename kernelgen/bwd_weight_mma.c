/*
 * dW on a matrix unit, as an implicit matrix product.
 *
 *     A[k][pixel] = dY
 *     B[pixel][column] = X where the column's tap leads, column = (tap, c),
 *                        c fastest
 *     pixel = (image, row, column) of dY
 *
 *     for each part of the pixels, group, block of k, block of columns:
 *     a work-group
 *         for each tile_k pixels of the part
 *             stage A and B in local memory, as fp16
 *             acc += A * B on the unit
 *         store acc: in dW, or if split > 1 as a partial sum in scratch
 *     split > 1: bwd_weight_mma_sum adds the parts, always in the same order
 *
 * There are few blocks and many pixels: split makes work for the whole device
 * and keeps each fp32 sum short. Scratch is [split][elements of dW] floats.
 * Pixels beyond the part's last are zero in both A and B.
 *
 * All sizes are arguments, as in bwd_data_mma; split is a constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "gemm.h"
#include "output.h"
#include "sizes.h"

enum { SPLIT = CLCONV_GEMM_PARAMS, PARAMS };

static const clconv_param params[] = {
    CLCONV_GEMM_PARAM_ROWS,
    [SPLIT] = {"split", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64, 128),
               "parts of the sum over pixels"},
};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

static int64_t columns(const clconv_problem *p)
{
    return p->r * p->s * p->group_c;
}

/* Blocks of dW, without the split. */
static int64_t blocks(const clconv_problem *p, const int *values)
{
    return p->groups *
           clconv_gemm_tiles(p->group_k, values[CLCONV_GEMM_TILE_M]) *
           clconv_gemm_tiles(columns(p), values[CLCONV_GEMM_TILE_N]);
}

/* Pixels, columns and work-groups are counted in ints on the device, with
 * room for a last tile. */
static bool covers(const clconv_problem *p, const clconv_device *d)
{
    const double limit = CLCONV_GEMM_LIMIT;
    double pixels = (double)p->n * (double)p->p * (double)p->q;
    double width = (double)p->r * (double)p->s * (double)p->group_c;
    double work = (double)p->groups * ((double)p->group_k / 64 + 1) *
                  (width / 8 + 1) * 128;
    return clconv_gemm_covers(p, d) && pixels < limit && width < limit &&
           work < limit;
}

/* Enough work-groups to fill the device twice, parts of at least 8 tiles of
 * pixels, and no more than 64 MiB of partial sums. In steps of 4, since each
 * split is another program. */
static int default_split(const clconv_problem *p, const clconv_device *d,
                         const int *values)
{
    int64_t pixels = p->n * p->p * p->q;
    int64_t bytes = 4 * clconv_problem_elements(p, CLCONV_DW);
    int64_t wanted = 2 * (int64_t)d->compute_units;
    int64_t part = 8 * (int64_t)values[CLCONV_GEMM_TILE_K];
    int split = 1;
    while (split < 64 && blocks(p, values) * split < wanted &&
           pixels >= 4 * split * part && 4 * split * bytes <= 64 << 20)
        split *= 4;
    return split;
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_gemm_defaults(columns(p), values);
    values[SPLIT] = default_split(p, d, values);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_gemm_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    int64_t split = t->values[SPLIT];
    int64_t floats = split * clconv_problem_elements(t->problem, CLCONV_DW);
    return split == 1 ? 0 : (size_t)floats * sizeof(float);
}

/* What the pass that stores dW takes after its inputs. */
static void add_output_args(const clconv_task *t, clconv_pass *pass)
{
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_SIZES, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DW);
}

static void product_pass(const clconv_task *t, clconv_pass *out)
{
    int64_t split = t->values[SPLIT];
    *out = (clconv_pass){
        .entry = "bwd_weight_mma",
        .groups = (size_t)(split * blocks(t->problem, t->values)),
        .local = CLCONV_GEMM_ITEMS,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_X);
    if (split == 1) {
        add_output_args(t, out);
    } else {
        clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DW);
        clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DW);
    }
}

static void sum_pass(const clconv_task *t, clconv_pass *out)
{
    int64_t elements = clconv_problem_elements(t->problem, CLCONV_DW);
    *out = (clconv_pass){
        .entry = "bwd_weight_mma_sum",
        .groups = (size_t)clconv_gemm_tiles(elements, CLCONV_GEMM_ITEMS),
        .local = CLCONV_GEMM_ITEMS,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DW);
    add_output_args(t, out);
}

/* Also for an empty batch: dW is then beta times its old value. */
static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch;
    product_pass(t, &out[0]);
    if (t->values[SPLIT] == 1)
        return 1;
    sum_pass(t, &out[1]);
    return 2;
}

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
    clconv_emit_open(e, "void block_place(block_t *b, const sizes_t *s, "
                        "int number)");
    clconv_emit_line(e, "b->columns = s->r * s->s * s->group_c;");
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
    clconv_emit_line(e, "int tiles = (pixels + $split * $tile_k - 1) / "
                        "($split * $tile_k);");
    clconv_emit_line(e, "b->begin = min(b->part * tiles * $tile_k, pixels);");
    clconv_emit_line(e, "b->end = min(b->begin + tiles * $tile_k, pixels);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* image, row, column of dY. */
static void emit_pixel(clconv_emit *e)
{
    clconv_emit_open(e, "int3 pixel_at(const sizes_t *s, int pixel)");
    clconv_emit_line(e, "int row = pixel / s->q;");
    clconv_emit_line(e, "return (int3)(row / s->p, row % s->p, pixel % s->q);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dy_at(clconv_emit *e)
{
    clconv_emit_open(e, "long dy_at(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "int channel = b->k0 + row;");
    clconv_emit_line(e, "if (channel >= s->group_k || k >= b->end)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int3 pixel = pixel_at(s, k);");
    clconv_emit_line(e, "channel += b->group * s->group_k;");
    clconv_emit_line(e, "return pixel.x * s->dy_image + channel * "
                        "s->dy_channel +");
    clconv_emit_line(e, "       pixel.y * s->dy_row + pixel.z * "
                        "s->dy_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_x_at(clconv_emit *e)
{
    clconv_emit_open(e, "long x_at(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "int column = b->column0 + row;");
    clconv_emit_line(e, "if (column >= b->columns || k >= b->end)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int3 pixel = pixel_at(s, k);");
    clconv_emit_line(e, "int tap = column / s->group_c;");
    clconv_emit_line(e, "int h = pixel.y * s->stride_h + tap / s->s * "
                        "s->dilation_h - s->pad_top;");
    clconv_emit_line(e, "int w = pixel.z * s->stride_w + tap % s->s * "
                        "s->dilation_w - s->pad_left;");
    clconv_emit_line(e, "if (h < 0 || w < 0 || h >= s->h || w >= s->w)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int channel = b->group * s->group_c + "
                        "column % s->group_c;");
    clconv_emit_line(e, "return pixel.x * s->x_image + channel * "
                        "s->x_channel + h * s->x_row + w * s->x_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Neighbours in memory are pixels of a row (NCHW) or channels (NHWC). */
static void emit_runs(clconv_emit *e, bool nhwc)
{
    clconv_emit_open(e, "int dy_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return b->k0 + row + 8 <= s->group_k;"
                             : "return k % s->q + 8 <= s->q;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int x_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return (b->column0 + row) % s->group_c + 8 "
                               "<= s->group_c;"
                             : "return k % s->q + 8 <= s->q;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_stage *a, const clconv_stage *b)
{
    clconv_sizes_emit(e);
    emit_block_type(e);
    emit_place(e);
    emit_pixel(e);
    emit_dy_at(e);
    emit_x_at(e);
    emit_runs(e, t->problem->layout == CLCONV_NHWC);
    clconv_gemm_emit_functions(e, t, a, b);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
}

/* The sum at row m, column n of the tile: into dW, or beside the other parts
 * of the same element. */
static void emit_store(clconv_emit *e, const clconv_task *t)
{
    clconv_unit_block block = clconv_gemm_unit_block(t);
    bool direct = t->values[SPLIT] == 1;
    if (direct)
        clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_unit_open_walk(e, &block);
    clconv_emit_line(e, "int k = block.k0 + m;");
    clconv_emit_line(e, "int column = block.column0 + n;");
    clconv_emit_open(e, "if (k < sizes.group_k && column < block.columns)");
    clconv_emit_line(e, "int tap = column / sizes.group_c;");
    clconv_emit_line(e, "long i = (block.group * sizes.group_k + k) * "
                        "sizes.w_image;");
    clconv_emit_line(e, "i += column % sizes.group_c * sizes.w_channel;");
    clconv_emit_line(e, "i += tap / sizes.s * sizes.w_row + tap % sizes.s * "
                        "sizes.w_column;");
    clconv_emit_line(e, direct ? "store_dw(dw, i, value, beta$tally);"
                               : "scratch[block.part * (sizes.k * "
                                 "sizes.w_image) + i] = value;");
    clconv_emit_close(e);
    clconv_unit_close_walk(e);
    if (direct)
        clconv_output_emit_flush(e, t->problem, CLCONV_DW);
}

static void emit_product(clconv_emit *e, const clconv_task *t)
{
    bool nhwc = t->problem->layout == CLCONV_NHWC;
    clconv_stage a = {CLCONV_DY, "a", t->values[CLCONV_GEMM_TILE_M], !nhwc};
    clconv_stage b = {CLCONV_X, "b", t->values[CLCONV_GEMM_TILE_N], !nhwc};
    clconv_pass pass;
    product_pass(t, &pass);
    emit_functions(e, t, &a, &b);
    clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, (int)get_group_id(0));");
    clconv_gemm_emit_product(e, t, &a, &b);
    emit_store(e, t);
    clconv_emit_close(e);
}

/* An element of dW a work-item: the sum of its parts, first to last. */
static void emit_sum(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass;
    sum_pass(t, &pass);
    clconv_emit_blank(e);
    clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
    clconv_emit_line(e, "long count = sizes.k * sizes.w_image;");
    clconv_emit_line(e, "long i = get_group_id(0) * $work_items + "
                        "get_local_id(0);");
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_open(e, "if (i < count)");
    clconv_emit_line(e, "float value = 0.0f;");
    clconv_emit_line(e, "for (int part = 0; part < $split; ++part)");
    clconv_emit_line(e, "    value += scratch[part * count + i];");
    clconv_emit_line(e, "store_dw(dw, i, value, beta$tally);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    emit_product(e, t);
    if (t->values[SPLIT] > 1)
        emit_sum(e, t);
}

const clconv_kernel clconv_bwd_weight_mma = {
    .name = "bwd_weight_mma",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "dW on a matrix unit, any shape",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = clconv_gemm_legal,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};
