/*
 * dX on a matrix unit, as an implicit matrix product.
 *
 *     A[pixel][term] = dY at the output pixel that the term's tap leads to
 *     B[term][c]     = W
 *     term = (tap, k), k fastest; pixel = (image, row, column) of one phase
 *
 *     for each phase, group, block of pixels, block of channels: a work-group
 *         for each tile_k terms
 *             stage A and B in local memory, as fp16
 *             acc += A * B on the unit
 *         store acc
 *
 * A phase is the set of pixels whose row and column leave the same remainders
 * by the strides: all its pixels meet the same taps, so no term is spent on a
 * tap that the strides skip, and a NaN of W never meets one. Where a tap leads
 * past dY's edges, A is zero and B is not; terms beyond the last are zero in
 * both.
 *
 * All sizes are arguments: this is the default plan of devices with the unit,
 * and a new image size must not cost a compilation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "gemm.h"
#include "output.h"
#include "sizes.h"

static const clconv_param params[] = {CLCONV_GEMM_PARAM_ROWS};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Pixels of one phase in an image: the rows and columns that a phase has at
 * most, so that all phases have equally many. */
static int64_t phase_pixels(const clconv_problem *p)
{
    return clconv_gemm_tiles(p->h, p->stride_h) *
           clconv_gemm_tiles(p->w, p->stride_w);
}

static int64_t phases(const clconv_problem *p)
{
    return smaller(p->stride_h, p->h) * smaller(p->stride_w, p->w);
}

static int64_t work_groups(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    int64_t pixels = batch * phase_pixels(p);
    return phases(p) * p->groups *
           clconv_gemm_tiles(pixels, t->values[CLCONV_GEMM_TILE_M]) *
           clconv_gemm_tiles(p->group_c, t->values[CLCONV_GEMM_TILE_N]);
}

/* Pixels, terms and work-groups are counted in ints on the device, with room
 * for a last tile. */
static bool covers(const clconv_problem *p, const clconv_device *d)
{
    const double limit = CLCONV_GEMM_LIMIT;
    double pixels = (double)p->n * (double)phase_pixels(p);
    double terms = (double)p->r * (double)p->s * (double)p->group_k;
    double work = (pixels / 64 + 1) * (double)phases(p) * (double)p->groups *
                  ((double)p->group_c / 8 + 1);
    return clconv_gemm_covers(p, d) && pixels < limit && terms < limit &&
           work < limit;
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    (void)d;
    clconv_gemm_defaults(p->group_c, values);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_gemm_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    *out = (clconv_pass){
        .entry = "bwd_data_mma",
        .groups = (size_t)work_groups(t, batch),
        .local = CLCONV_GEMM_ITEMS,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    return 1;
}

static void emit_block_type(clconv_emit *e)
{
    clconv_emit_line(e, "/* One work-group's tile of dX. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int group;");
    clconv_emit_line(e, "    int pixel0, c0; /* of the tile */");
    clconv_emit_line(e, "    int h0, w0; /* of the phase: h = h0 + stride_h * "
                        "row */");
    clconv_emit_line(e, "    int rows, columns; /* of the phase in an image "
                        "*/");
    clconv_emit_line(e, "    int r0, s0, r_step, s_step; /* taps that the "
                        "phase meets */");
    clconv_emit_line(e, "    int taps_s; /* of them in a filter row */");
    clconv_emit_line(e, "    int begin, end; /* terms */");
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
}

/* Takes the work-group's number apart: phase slowest, channels fastest, so
 * that neighbours read the same dY. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_open(e, "void block_place(block_t *b, const sizes_t *s, "
                        "int number)");
    clconv_emit_line(e, "b->rows = (s->h - 1) / s->stride_h + 1;");
    clconv_emit_line(e, "b->columns = (s->w - 1) / s->stride_w + 1;");
    clconv_emit_line(e, "int pixel_tiles = (s->n * b->rows * b->columns + "
                        "$tile_m - 1) / $tile_m;");
    clconv_emit_line(e, "int c_tiles = (s->group_c + $tile_n - 1) / $tile_n;");
    clconv_emit_line(e, "b->c0 = number % c_tiles * $tile_n;");
    clconv_emit_line(e, "number /= c_tiles;");
    clconv_emit_line(e, "b->pixel0 = number % pixel_tiles * $tile_m;");
    clconv_emit_line(e, "number /= pixel_tiles;");
    clconv_emit_line(e, "b->group = number % s->groups;");
    clconv_emit_line(e, "number /= s->groups;");
    clconv_emit_line(e, "int phases_w = min(s->stride_w, s->w);");
    clconv_emit_line(e, "b->w0 = number % phases_w;");
    clconv_emit_line(e, "b->h0 = number / phases_w;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* r = r0 + i * r_step are all the taps whose dY row is whole. */
static void emit_taps(clconv_emit *e)
{
    clconv_emit_open(e, "void block_taps(block_t *b, const sizes_t *s)");
    clconv_emit_line(e, "int y = b->h0 + s->pad_top;");
    clconv_emit_line(e, "int x = b->w0 + s->pad_left;");
    clconv_emit_line(e, "b->r0 = tap_from(0, y, s->dilation_h, s->stride_h, "
                        "s->r);");
    clconv_emit_line(e, "b->s0 = tap_from(0, x, s->dilation_w, s->stride_w, "
                        "s->s);");
    clconv_emit_line(e, "b->r_step = tap_from(b->r0 + 1, y, s->dilation_h, "
                        "s->stride_h, s->r) - b->r0;");
    clconv_emit_line(e, "b->s_step = tap_from(b->s0 + 1, x, s->dilation_w, "
                        "s->stride_w, s->s) - b->s0;");
    clconv_emit_line(e, "int taps_r = (s->r - b->r0 + b->r_step - 1) / "
                        "b->r_step;");
    clconv_emit_line(e, "b->taps_s = (s->s - b->s0 + b->s_step - 1) / "
                        "b->s_step;");
    clconv_emit_line(e, "b->begin = 0;");
    clconv_emit_line(e, "b->end = taps_r * b->taps_s * s->group_k;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where a pixel of the tile lies in X; image -1 beyond the last. */
static void emit_pixel(clconv_emit *e)
{
    clconv_emit_open(e, "int3 pixel_at(const block_t *b, const sizes_t *s, "
                        "int row)");
    clconv_emit_line(e, "int pixel = b->pixel0 + row;");
    clconv_emit_line(e, "int w = b->w0 + pixel % b->columns * s->stride_w;");
    clconv_emit_line(e, "pixel /= b->columns;");
    clconv_emit_line(e, "int h = b->h0 + pixel % b->rows * s->stride_h;");
    clconv_emit_line(e, "int image = pixel / b->rows;");
    clconv_emit_line(e, "int inside = image < s->n && h < s->h && w < s->w;");
    clconv_emit_line(e, "return (int3)(inside ? image : -1, h, w);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dy_at(clconv_emit *e)
{
    clconv_emit_open(e, "long dy_at(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "int3 pixel = pixel_at(b, s, row);");
    clconv_emit_line(e, "if (pixel.x < 0 || k >= b->end)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int tap = k / s->group_k;");
    clconv_emit_line(e, "int r = b->r0 + tap / b->taps_s * b->r_step;");
    clconv_emit_line(e, "int t = b->s0 + tap % b->taps_s * b->s_step;");
    clconv_emit_line(e, "int y = pixel.y + s->pad_top - r * s->dilation_h;");
    clconv_emit_line(e, "int x = pixel.z + s->pad_left - t * s->dilation_w;");
    clconv_emit_line(e, "if (y < 0 || x < 0 || y / s->stride_h >= s->p ||");
    clconv_emit_line(e, "    x / s->stride_w >= s->q)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int channel = b->group * s->group_k + "
                        "k % s->group_k;");
    clconv_emit_line(e, "return pixel.x * s->dy_image + channel * "
                        "s->dy_channel +");
    clconv_emit_line(e, "       y / s->stride_h * s->dy_row + "
                        "x / s->stride_w * s->dy_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_w_at(clconv_emit *e)
{
    clconv_emit_open(e, "long w_at(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "int c = b->c0 + row;");
    clconv_emit_line(e, "if (c >= s->group_c || k >= b->end)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "int tap = k / s->group_k;");
    clconv_emit_line(e, "int r = b->r0 + tap / b->taps_s * b->r_step;");
    clconv_emit_line(e, "int t = b->s0 + tap % b->taps_s * b->s_step;");
    clconv_emit_line(e, "int channel = b->group * s->group_k + "
                        "k % s->group_k;");
    clconv_emit_line(e, "return channel * s->w_image + c * s->w_channel + "
                        "r * s->w_row + t * s->w_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* dY's neighbours in memory are pixels of a row (NCHW) or channels (NHWC); W's
 * are channels c in NHWC, and in NCHW where the filter is one tap. */
static void emit_runs(clconv_emit *e, bool nhwc)
{
    clconv_emit_open(e, "int dy_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return k % s->group_k + 8 <= s->group_k;"
                             : "return (b->pixel0 + row) % b->columns + 8 <= "
                               "b->columns;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int w_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "return b->c0 + row + 8 <= s->group_c;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_stage *a, const clconv_stage *b)
{
    clconv_sizes_emit(e);
    clconv_emit_part(e, "taps");
    emit_block_type(e);
    emit_place(e);
    emit_taps(e);
    emit_pixel(e);
    emit_dy_at(e);
    emit_w_at(e);
    emit_runs(e, t->problem->layout == CLCONV_NHWC);
    clconv_gemm_emit_functions(e, t, a, b);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, 1);
}

static void emit_store(clconv_emit *e, const clconv_task *t)
{
    clconv_unit_block block = clconv_gemm_unit_block(t);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_unit_open_walk(e, &block);
    clconv_emit_line(e, "int3 pixel = pixel_at(&block, &sizes, m);");
    clconv_emit_line(e, "int c = block.c0 + n;");
    clconv_emit_open(e, "if (pixel.x >= 0 && c < sizes.group_c)");
    clconv_emit_line(e, "long i = pixel.x * sizes.x_image + pixel.y * "
                        "sizes.x_row + pixel.z * sizes.x_column;");
    clconv_emit_line(e, "i += (block.group * sizes.group_c + c) * "
                        "sizes.x_channel;");
    clconv_emit_line(e, "store_dx(dx, i, value, beta$tally);");
    clconv_emit_close(e);
    clconv_unit_close_walk(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    bool nhwc = t->problem->layout == CLCONV_NHWC;
    clconv_stage a = {CLCONV_DY, "a", t->values[CLCONV_GEMM_TILE_M], nhwc};
    clconv_stage b = {CLCONV_W, "b", t->values[CLCONV_GEMM_TILE_N], false};
    clconv_pass pass;
    passes(t, 1, &pass);
    emit_functions(e, t, &a, &b);
    clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, (int)get_group_id(0));");
    clconv_emit_line(e, "block_taps(&block, &sizes);");
    clconv_gemm_emit_product(e, t, &a, &b);
    emit_store(e, t);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_mma = {
    .name = "bwd_data_mma",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX on a matrix unit, any shape",
    .params = params,
    .param_count = CLCONV_GEMM_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = clconv_gemm_legal,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};
