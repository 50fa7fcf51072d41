/*
 * An output row y = (h + padding - r * dilation) / stride splits into the
 * pixel's row within its phase, line = h / stride, and a shift of the tap,
 * (h0 + padding - r * dilation) / stride, which is whole for every tap that
 * the phase meets. Columns likewise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "data_nest.h"

#include "entry.h"
#include "integers.h"
#include "output.h"
#include "sizes.h"

/* Channels of dY are terms. */
static clconv_nest_quad dy_quad(const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    return (clconv_nest_quad){
        .whole = p->group_k % 4 == 0,
        .along_k = true,
        .step = nhwc ? NULL : "sizes->dy_channel",
    };
}

/* Those of dX, which are rows, where they are neighbours. */
static clconv_nest_quad w_quad(const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    return (clconv_nest_quad){
        .whole = (nhwc ? p->group_c : p->group_k) % 4 == 0,
        .along_k = !nhwc,
        .step = nhwc ? NULL : "sizes->w_image",
    };
}

clconv_nest clconv_data_nest(const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    return (clconv_nest){
        .a = {.tensor = CLCONV_DY,
              .along_k = nhwc,
              .limit_y = "sizes->p",
              .limit_x = "sizes->q",
              .bordered = true,
              .quad = dy_quad(p)},
        .b = {.tensor = CLCONV_W,
              .along_k = false,
              .limit_y = "1",
              .limit_x = "1",
              .quad = w_quad(p)},
        .c = CLCONV_DX,
        .c_along_m = !nhwc,
    };
}

clconv_nest clconv_data_nest_prepared(const clconv_problem *p)
{
    clconv_nest nest = clconv_data_nest(p);
    nest.b.prepared = true;
    nest.b.quad = (clconv_nest_quad){.whole = p->group_c % 4 == 0};
    return nest;
}

int64_t clconv_data_nest_pixels(const clconv_problem *p)
{
    return clconv_divide_up(p->h, p->stride_h) *
           clconv_divide_up(p->w, p->stride_w);
}

int64_t clconv_data_nest_phases(const clconv_problem *p)
{
    return clconv_min(p->stride_h, p->h) * clconv_min(p->stride_w, p->w);
}

/* Pixels, terms and work-groups are counted in ints on the device, with room
 * for a last tile. */
bool clconv_data_nest_covers(const clconv_problem *p, int least_m, int least_n)
{
    const double limit = CLCONV_NEST_LIMIT;
    double pixels = (double)p->n * (double)clconv_data_nest_pixels(p);
    double terms = (double)p->r * (double)p->s * (double)p->group_k;
    double work = (pixels / least_m + 1) * (double)clconv_data_nest_phases(p) *
                  (double)p->groups * ((double)p->group_c / least_n + 1);
    return clconv_nest_covers(p) && pixels < limit && terms < limit &&
           work < limit;
}

int64_t clconv_data_nest_run(const clconv_problem *p)
{
    return p->layout == CLCONV_NCHW ? clconv_min(p->stride_w, p->w) : 1;
}

int64_t clconv_data_nest_blocks(const clconv_problem *p, int64_t batch,
                                int tile_m, int tile_n)
{
    int64_t pixels = batch * clconv_data_nest_pixels(p);
    return clconv_data_nest_phases(p) * p->groups *
           clconv_divide_up(pixels, tile_m) *
           clconv_divide_up(p->group_c, tile_n);
}

double clconv_data_nest_waste(const clconv_problem *p, int tile_m, int tile_n)
{
    double blocks = (double)clconv_data_nest_blocks(p, p->n, tile_m, tile_n);
    double elements = (double)clconv_problem_elements(p, CLCONV_DX);
    return elements > 0 ? blocks * tile_m * tile_n / elements : 1;
}

void clconv_data_nest_pass(const clconv_task *t, const char *entry,
                           int64_t blocks, int items, clconv_pass *out)
{
    *out = (clconv_pass){
        .entry = entry,
        .groups = (size_t)blocks,
        .local = (size_t)items,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
}

/* ---- Text ------------------------------------------------------------- */

/* What is read: the tensors, W prepared, or packed copies. */
typedef enum form { PLAIN, PREPARED, PACKED } form;

static void emit_step_members(clconv_emit *e)
{
    clconv_emit_line(e, "    int y0, x0, y_step, x_step; /* where taps lead, "
                        "from the first on */");
    clconv_emit_line(e, "    int channel, r, t, y, x; /* of the step */");
}

static void emit_block_type(clconv_emit *e, clconv_data_order order)
{
    clconv_emit_line(e, "/* One work-group's tile of dX. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int group;");
    clconv_emit_line(e, "    int pixel0, c0; /* of the tile */");
    clconv_emit_line(e, "    int h0, w0; /* of the phase: h = h0 + stride_h * "
                        "line */");
    clconv_emit_line(e, "    int lines, columns; /* of the phase in an image "
                        "*/");
    clconv_emit_line(e, "    int r0, s0, r_step, s_step; /* taps that the "
                        "phase meets */");
    clconv_emit_line(e, "    int taps_s, taps; /* of them in a filter row, in "
                        "all */");
    clconv_emit_line(e, "    int begin, end; /* terms */");
    if (order == CLCONV_DATA_STEPS)
        emit_step_members(e);
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
}

static void emit_first_step(clconv_emit *e)
{
    clconv_emit_line(e, "b->channel = 0;");
    clconv_emit_line(e, "b->r = b->r0;");
    clconv_emit_line(e, "b->t = b->s0;");
    clconv_emit_line(e, "b->y0 = (y - b->r0 * s->dilation_h) / s->stride_h;");
    clconv_emit_line(e, "b->x0 = (x - b->s0 * s->dilation_w) / s->stride_w;");
    clconv_emit_line(e, "b->y_step = b->r_step * s->dilation_h / s->stride_h;");
    clconv_emit_line(e, "b->x_step = b->s_step * s->dilation_w / s->stride_w;");
    clconv_emit_line(e, "b->y = b->y0;");
    clconv_emit_line(e, "b->x = b->x0;");
}

/* On to the next tap, or the first one of the next channels: a step of dY is
 * whole where there is another tap. */
static void emit_next_step(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "void block_next(block_t *b, const sizes_t *s)");
    clconv_emit_line(e, "b->t += b->s_step;");
    clconv_emit_line(e, "b->x -= b->x_step;");
    clconv_emit_line(e, "if (b->t < s->s)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "b->t = b->s0;");
    clconv_emit_line(e, "b->x = b->x0;");
    clconv_emit_line(e, "b->r += b->r_step;");
    clconv_emit_line(e, "b->y -= b->y_step;");
    clconv_emit_line(e, "if (b->r < s->r)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "b->r = b->r0;");
    clconv_emit_line(e, "b->y = b->y0;");
    clconv_emit_line(e, "b->channel += $tile_k;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* r = r0 + i * r_step are all the taps whose dY row is whole. */
static void emit_taps(clconv_emit *e, clconv_data_order order)
{
    bool blocks = order != CLCONV_DATA_CHANNELS_FASTEST;
    clconv_nest_open_function(e,
                              "void block_taps(block_t *b, const sizes_t *s)");
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
    clconv_emit_line(e, "b->taps = taps_r * b->taps_s;");
    clconv_emit_line(e, "b->begin = 0;");
    clconv_emit_line(e, blocks ? "b->end = b->taps * ((s->group_k + $tile_k - "
                                 "1) / $tile_k * $tile_k);"
                               : "b->end = b->taps * $tap_terms;");
    if (order == CLCONV_DATA_STEPS)
        emit_first_step(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The columns of a phase that follow each other. */
static void emit_run(clconv_emit *e)
{
    clconv_nest_open_function(e, "int block_run(const sizes_t *s)");
    clconv_emit_line(e,
                     "return s->x_column == 1 ? min(s->stride_w, s->w) : 1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Takes the work-group's number apart: phases slowest and channels fastest, so that
 * neighbours read the same dY. But where columns are neighbours in memory, those of
 * a phase are fastest: who writes to the same lines of dX does it at about the same
 * time. */
static void emit_place(clconv_emit *e)
{
    emit_run(e);
    clconv_nest_open_function(e,
                              "void block_place(block_t *b, const sizes_t *s, "
                              "int number)");
    clconv_emit_line(e, "b->lines = (s->h - 1) / s->stride_h + 1;");
    clconv_emit_line(e, "b->columns = (s->w - 1) / s->stride_w + 1;");
    clconv_emit_line(e, "int pixel_tiles = (s->n * b->lines * b->columns + "
                        "$tile_m - 1) / $tile_m;");
    clconv_emit_line(e, "int c_tiles = (s->group_c + $tile_n - 1) / $tile_n;");
    clconv_emit_line(e, "int run = block_run(s);");
    clconv_emit_line(e, "b->w0 = number % run;");
    clconv_emit_line(e, "number /= run;");
    clconv_emit_line(e, "b->c0 = number % c_tiles * $tile_n;");
    clconv_emit_line(e, "number /= c_tiles;");
    clconv_emit_line(e, "b->pixel0 = number % pixel_tiles * $tile_m;");
    clconv_emit_line(e, "number /= pixel_tiles;");
    clconv_emit_line(e, "b->group = number % s->groups;");
    clconv_emit_line(e, "number /= s->groups;");
    clconv_emit_line(e, "int runs_w = min(s->stride_w, s->w) / run;");
    clconv_emit_line(e, "b->w0 += number % runs_w;");
    clconv_emit_line(e, "b->h0 = number / runs_w;");
    clconv_emit_line(e, "block_taps(b, s);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* image, line, column of a pixel of the tile; image -1: not in dX. */
static void emit_pixel(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "int3 pixel_at(const block_t *b, const sizes_t *s, "
           "int row)");
    clconv_emit_line(e, "int pixel = b->pixel0 + row;");
    clconv_emit_line(e, "int column = pixel % b->columns;");
    clconv_emit_line(e, "pixel /= b->columns;");
    clconv_emit_line(e, "int line = pixel % b->lines;");
    clconv_emit_line(e, "int image = pixel / b->lines;");
    clconv_emit_line(e, "int inside = image < s->n && "
                        "b->h0 + line * s->stride_h < s->h &&");
    clconv_emit_line(e, "             b->w0 + column * s->stride_w < s->w;");
    clconv_emit_line(e, "return (int3)(inside ? image : -1, line, column);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dy_row(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "spot_t dy_row(const block_t *b, const sizes_t *s, "
           "int row)");
    clconv_emit_line(e, "int3 pixel = pixel_at(b, s, row);");
    clconv_emit_line(e, "long at = pixel.x * $dy_image + pixel.y * $dy_row "
                        "+ pixel.z * $dy_column;");
    clconv_emit_line(e, "at += b->group * $dy_channels * $dy_channel;");
    clconv_emit_line(e, "return spot(pixel.x >= 0, at, pixel.y, pixel.z);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* channel, r, t of a term: the filter's position is (r, t). */
static void emit_term(clconv_emit *e, clconv_data_order order)
{
    bool blocks = order == CLCONV_DATA_CHANNEL_BLOCKS;
    clconv_nest_open_function(
        e, "int3 term_at(const block_t *b, const sizes_t *s, "
           "int k)");
    clconv_emit_line(e, blocks ? "int tap = k / $tile_k % b->taps;"
                               : "int tap = k / $tap_terms;");
    clconv_emit_line(e, blocks ? "int channel = k / $tile_k / b->taps * "
                                 "$tile_k + k % $tile_k;"
                               : "int channel = k % $tap_terms;");
    clconv_emit_line(e, "int r = b->r0 + tap / b->taps_s * b->r_step;");
    clconv_emit_line(e, "int t = b->s0 + tap % b->taps_s * b->s_step;");
    clconv_emit_line(e, "return (int3)(channel, r, t);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void open_term(clconv_emit *e, clconv_data_order order, const char *head)
{
    clconv_nest_open_function(e, head);
    clconv_emit_line(e, "if (k >= b->end)");
    clconv_emit_line(e, "    return spot(0, 0, 0, 0);");
    clconv_emit_line(e, "int3 term = term_at(b, s, k);");
    if (order != CLCONV_DATA_CHANNEL_BLOCKS)
        return;
    clconv_emit_line(e, "if (term.x >= s->group_k)");
    clconv_emit_line(e, "    return spot(0, 0, 0, 0);");
}

static void emit_dy_term(clconv_emit *e, clconv_data_order order)
{
    open_term(e, order,
              "spot_t dy_term(const block_t *b, const sizes_t *s, int k)");
    clconv_emit_line(e, "int y = (b->h0 + s->pad_top - term.y * s->dilation_h) "
                        "/ s->stride_h;");
    clconv_emit_line(e, "int x = (b->w0 + s->pad_left - term.z * "
                        "s->dilation_w) / s->stride_w;");
    clconv_emit_line(e, "long at = term.x * $dy_channel + y * $dy_row + x * "
                        "$dy_column;");
    clconv_emit_line(e, "return spot(1, at, y, x);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The strides of W. */
static void set_w(clconv_emit *e, form f)
{
    clconv_nest_set_strides(e, CLCONV_W, f == PACKED);
    if (f != PREPARED)
        return;
    clconv_emit_set_text(e, "w_row", "(long)s->s * s->group_c");
    clconv_emit_set_text(e, "w_column", "(long)s->group_c");
    clconv_emit_set_text(e, "w_channel", "1");
}

static void emit_w_row(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "spot_t w_row(const block_t *b, const sizes_t *s, "
           "int row)");
    clconv_emit_line(e, "int c = b->c0 + row;");
    clconv_emit_line(e, "long at = b->group * s->group_k * $w_image + c * "
                        "$w_channel;");
    clconv_emit_line(e, "return spot(c < s->group_c, at, 0, 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_w_term(clconv_emit *e, clconv_data_order order)
{
    open_term(e, order,
              "spot_t w_term(const block_t *b, const sizes_t *s, int k)");
    clconv_emit_line(e, "long at = term.x * $w_image + term.y * $w_row + "
                        "term.z * $w_column;");
    clconv_emit_line(e, "return spot(1, at, 0, 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* k: any term of the step, whichever step it is. */
static void emit_step_terms(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "spot_t dy_term(const block_t *b, const sizes_t *s, int k)");
    clconv_emit_line(e, "int channel = b->channel + k % $tile_k;");
    clconv_emit_line(e, "long at = channel * $dy_channel + b->y * $dy_row + "
                        "b->x * $dy_column;");
    clconv_emit_line(e, "return spot(channel < s->group_k, at, b->y, b->x);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "spot_t w_term(const block_t *b, const sizes_t *s, int k)");
    clconv_emit_line(e, "int channel = b->channel + k % $tile_k;");
    clconv_emit_line(e, "long at = channel * $w_image + b->r * $w_row + b->t "
                        "* $w_column;");
    clconv_emit_line(e, "return spot(channel < s->group_k, at, 0, 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_dx(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "long dx_row(const block_t *b, const sizes_t *s, "
                              "int m)");
    clconv_emit_line(e, "int3 pixel = pixel_at(b, s, m);");
    clconv_emit_line(e, "int h = b->h0 + pixel.y * s->stride_h;");
    clconv_emit_line(e, "int w = b->w0 + pixel.z * s->stride_w;");
    clconv_emit_line(e, "long at = pixel.x * s->x_image + h * s->x_row + "
                        "w * s->x_column;");
    clconv_emit_line(e, "return pixel.x >= 0 ? at : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "long dx_column(const block_t *b, const sizes_t *s, "
           "int n)");
    clconv_emit_line(e, "int c = b->c0 + n;");
    clconv_emit_line(e, "long at = (b->group * s->group_c + c) * "
                        "s->x_channel;");
    clconv_emit_line(e, "return c < s->group_c ? at : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_data_nest_emit_blocks(clconv_emit *e, clconv_data_order order,
                                  const char *tap_terms)
{
    clconv_emit_set_text(e, "tap_terms", tap_terms);
    clconv_sizes_emit(e);
    clconv_emit_part(e, "taps");
    emit_block_type(e, order);
    emit_taps(e, order);
    emit_place(e);
    emit_pixel(e);
    if (order == CLCONV_DATA_STEPS)
        emit_next_step(e);
    else
        emit_term(e, order);
    emit_dx(e);
}

static void emit_nest(clconv_emit *e, clconv_data_order order, form f)
{
    if (f == PACKED)
        clconv_emit_part(e, "padded");
    clconv_data_nest_emit_blocks(e, order, "s->group_k");
    clconv_emit_part(e, "spot");
    clconv_nest_set_strides(e, CLCONV_DY, f == PACKED);
    set_w(e, f);
    emit_dy_row(e);
    if (order != CLCONV_DATA_STEPS)
        emit_dy_term(e, order);
    emit_w_row(e);
    if (order != CLCONV_DATA_STEPS)
        emit_w_term(e, order);
    else
        emit_step_terms(e);
}

void clconv_data_nest_emit(clconv_emit *e, clconv_data_order order)
{
    emit_nest(e, order, PLAIN);
}

void clconv_data_nest_emit_prepared(clconv_emit *e, clconv_data_order order)
{
    emit_nest(e, order, PREPARED);
}

void clconv_data_nest_emit_packed(clconv_emit *e)
{
    emit_nest(e, CLCONV_DATA_STEPS, PACKED);
}

void clconv_data_nest_emit_count(clconv_emit *e)
{
    clconv_nest_open_function(e, "int block_count(const sizes_t *s)");
    clconv_emit_line(e, "int lines = (s->h - 1) / s->stride_h + 1;");
    clconv_emit_line(e, "int columns = (s->w - 1) / s->stride_w + 1;");
    clconv_emit_line(e, "int pixel_tiles = (s->n * lines * columns + $tile_m - "
                        "1) / $tile_m;");
    clconv_emit_line(e, "int c_tiles = (s->group_c + $tile_n - 1) / $tile_n;");
    clconv_emit_line(e,
                     "return min(s->stride_h, s->h) * min(s->stride_w, s->w) "
                     "* s->groups * pixel_tiles * c_tiles;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_data_nest_emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, (int)get_group_id(0));");
}
