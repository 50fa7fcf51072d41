/*
 * No chain of additions is longer than about a thousand, so that the error of a
 * dbias over 10^6 elements stays near fp32's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_flat.h"

#include "cast_pack.h"
#include "cast_tiles.h"
#include "counts.h"
#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "output.h"
#include "sizes.h"

/* Work-items of a group of the last pass; each sums one channel. */
#define BIAS_LWS_GPU 64
/* A work-group takes at least so many pixels, which bounds the scratch to a
 * sixteenth of the tensor. */
#define MIN_PIXELS 16

/* ---- The parts of a task ---------------------------------------------- */

clconv_cast_part clconv_cast_part_of(const clconv_task *t, clconv_tensor tensor)
{
    return (clconv_cast_part){
        .tensor = tensor,
        .copies = (t->copies & CLCONV_BIT(tensor)) != 0,
        .bias = t->bias && tensor == CLCONV_DY,
    };
}

unsigned clconv_cast_flat_reads(const clconv_task *t)
{
    unsigned bits = t->reads;
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        if (clconv_cast_packs(t, tensor))
            bits &= ~CLCONV_BIT(tensor);
    return bits;
}

/* W goes through the entry point of X where only names would differ. */
bool clconv_cast_is_like_x(const clconv_task *t, clconv_cast_part w)
{
    const clconv_type *type = t->problem->type;
    return w.tensor == CLCONV_W && !clconv_cast_packs(t, CLCONV_X) &&
           type[CLCONV_W] == type[CLCONV_X] &&
           (!(clconv_cast_flat_reads(t) & CLCONV_BIT(CLCONV_X)) ||
            w.copies == clconv_cast_part_of(t, CLCONV_X).copies);
}

bool clconv_cast_counts_w_beside(const clconv_task *t, clconv_cast_part a)
{
    unsigned reads = clconv_cast_flat_reads(t);
    return a.bias && (reads & CLCONV_BIT(CLCONV_DY)) &&
           (reads & CLCONV_BIT(CLCONV_W)) &&
           !((t->copies | t->counts) & CLCONV_BIT(CLCONV_W));
}

/* Whose functions count W there. */
static clconv_tensor counter_of_w(const clconv_task *t)
{
    bool has_x = clconv_cast_flat_reads(t) & CLCONV_BIT(CLCONV_X);
    clconv_cast_part w = clconv_cast_part_of(t, CLCONV_W);
    return has_x && clconv_cast_is_like_x(t, w) ? CLCONV_X : CLCONV_W;
}

static const char *entry_of(const clconv_task *t, clconv_cast_part a)
{
    if (a.bias)
        return t->problem->layout == CLCONV_NCHW ? "cast_planes" : "cast_pixels";
    if (a.tensor == CLCONV_DY)
        return "cast_flat_dy";
    return a.tensor == CLCONV_X || clconv_cast_is_like_x(t, a) ? "cast_flat"
                                                               : "cast_flat_w";
}

/* ---- Geometry --------------------------------------------------------- */

/* The emitted text repeats this arithmetic. */
int64_t clconv_cast_flat_sums(const clconv_task *t, int64_t batch,
                              int64_t *groups)
{
    const clconv_problem *p = t->problem;
    int64_t chunk = t->values[CLCONV_CAST_CHUNK];
    if (p->layout == CLCONV_NHWC) {
        int64_t pixels = clconv_max(MIN_PIXELS, chunk / p->k);
        *groups = clconv_divide_up(batch * p->p * p->q, pixels);
        return *groups * p->k;
    }
    int64_t plane = p->p * p->q;
    int64_t units = batch * p->k * clconv_divide_up(plane, chunk);
    *groups = clconv_divide_up(units, clconv_max(1, chunk / plane));
    return units;
}

/* What a copy of the tensor, and dbias, are good for. */
unsigned clconv_cast_serves(clconv_cast_part a)
{
    static const unsigned copy_serves[] = {
        [CLCONV_DY] = CLCONV_OP_DW | CLCONV_OP_DX,
        [CLCONV_X] = CLCONV_OP_DW | CLCONV_OP_FORWARD,
        [CLCONV_W] = CLCONV_OP_DX | CLCONV_OP_FORWARD,
    };
    return (a.copies ? copy_serves[a.tensor] : 0) |
           (a.bias ? (unsigned)CLCONV_OP_DB : 0);
}

/* The outputs whose kernels count this tensor as they read it. */
static unsigned counted_elsewhere(const clconv_task *t, clconv_cast_part a)
{
    static const unsigned readers[] = {
        [CLCONV_DY] = 0,
        [CLCONV_X] = CLCONV_OP_DW,
        [CLCONV_W] = CLCONV_OP_DX,
    };
    return t->counts & CLCONV_BIT(a.tensor) ? readers[a.tensor] : 0;
}

static int64_t elements_of(const clconv_problem *p, clconv_tensor tensor,
                           int64_t batch)
{
    if (tensor == CLCONV_DY)
        return batch * p->k * p->p * p->q;
    if (tensor == CLCONV_X)
        return batch * p->c * p->h * p->w;
    return clconv_problem_elements(p, CLCONV_W);
}

static int64_t chunks_of(const clconv_task *t, clconv_tensor tensor,
                         int64_t batch)
{
    return clconv_divide_up(elements_of(t->problem, tensor, batch),
                            t->values[CLCONV_CAST_CHUNK]);
}

static void add_w_beside(const clconv_task *t, clconv_pass *pass)
{
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_W);
    clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_W);
    clconv_entry_arg(pass, CLCONV_ARG_ELEMENTS, CLCONV_W);
    pass->groups += (size_t)chunks_of(t, CLCONV_W, 0);
}

clconv_pass clconv_cast_flat_pass(const clconv_task *t, clconv_cast_part a,
                                  int64_t batch)
{
    clconv_pass pass = {
        .entry = entry_of(t, a),
        .serves = clconv_cast_serves(a),
        .counts = true,
        .unless = counted_elsewhere(t, a),
    };
    int64_t groups;
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, a.tensor);
    if (a.copies)
        clconv_entry_arg(&pass, CLCONV_ARG_COPY, a.tensor);
    clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, a.tensor);
    if (a.bias) {
        clconv_cast_flat_sums(t, batch, &groups);
        clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DY);
        clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DY);
    } else {
        groups = chunks_of(t, a.tensor, batch);
        clconv_entry_arg(&pass, CLCONV_ARG_ELEMENTS, a.tensor);
    }
    pass.groups = (size_t)groups;
    pass.local = (size_t)t->values[CLCONV_CAST_LWS];
    if (clconv_cast_counts_w_beside(t, a))
        add_w_beside(t, &pass);
    return pass;
}

clconv_pass clconv_cast_flat_bias_pass(const clconv_task *t)
{
    clconv_pass pass = {.entry = "cast_bias", .serves = CLCONV_OP_DB};
    pass.local = t->values[CLCONV_CAST_LWS] > 1 ? BIAS_LWS_GPU : 1;
    pass.groups = (size_t)clconv_divide_up(t->problem->k, (int64_t)pass.local);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DB);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DB);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DB);
    if (clconv_output_is_counted(t->problem, CLCONV_DB))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DB);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DB);
    return pass;
}

/* ---- The element ------------------------------------------------------ */

static bool sums_pixels(const clconv_task *t, clconv_cast_part a)
{
    return a.bias && t->problem->layout == CLCONV_NHWC;
}

/* Does a work-item take all elements of a chunk, in the vectors of a run? */
static bool takes_runs(const clconv_task *t)
{
    return t->values[CLCONV_CAST_LWS] == 1 &&
           t->values[CLCONV_CAST_VEC] == CLCONV_COUNTS_RUN;
}

static bool counts_runs(const clconv_task *t, clconv_cast_part a)
{
    return takes_runs(t) && !sums_pixels(t, a);
}

static void emit_read_and_see(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor, int width)
{
    clconv_operand_emit_read(e, t, tensor, width);
    clconv_counts_emit_see(e, t->problem, tensor, width);
}

/* read_ and see_ of the widths that are cast; or a run's, with its reads. */
static void emit_counting(clconv_emit *e, const clconv_task *t,
                          clconv_cast_part a)
{
    int vec = t->values[CLCONV_CAST_VEC];
    if (counts_runs(t, a)) {
        clconv_counts_emit_run(e, t, a.tensor);
        return;
    }
    emit_read_and_see(e, t, a.tensor, 1);
    if (vec > 1)
        emit_read_and_see(e, t, a.tensor, vec);
}

static void emit_copy(clconv_emit *e, int width)
{
    clconv_emit_line(e, "$float after = round_$tensor$vn(before);");
    clconv_emit_line(e, width > 1 ? "vstore_half$vn(after, 0, out + i);"
                                  : "vstore_half(after, i, out);");
}

/* Casts one vector, if there is a copy to write, and returns it as it was. */
static void emit_cast(clconv_emit *e, const clconv_task *t, clconv_cast_part a,
                      int width)
{
    if (a.copies)
        clconv_operand_emit_round(e, t->problem, a.tensor, width);
    clconv_operand_set_width(e, width);
    clconv_emit_open(e, "static $float cast_$tensor$vn($parameters, long i)");
    clconv_emit_line(e, "$float before = read_$tensor$vn(in, i);");
    if (a.copies)
        emit_copy(e, width);
    clconv_emit_line(e, "return before;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* $parameters of the functions that cast, $in to pass them on, $arguments
 * for calls of an entry point: the tensor and, where one is written, its
 * copy. */
static void set_parameters(clconv_emit *e, const clconv_task *t,
                           clconv_cast_part a)
{
    static const char *const with_copy[] = {
        [CLCONV_DY] = "dy, dy_copy",
        [CLCONV_X] = "x, x_copy",
        [CLCONV_W] = "w, w_copy",
    };
    const char *parameters = "__global const float *in";
    if (t->problem->type[a.tensor] == CLCONV_F16)
        parameters = "__global const half *in";
    if (a.copies)
        parameters = "__global const float *in, __global half *out";
    const char *name = clconv_tensor_name(a.tensor);
    clconv_emit_set_text(e, "parameters", parameters);
    clconv_emit_set_text(e, "in", a.copies ? "in, out" : "in");
    clconv_emit_set_text(e, "arguments", a.copies ? with_copy[a.tensor] : name);
    clconv_emit_set_text(e, "tensor", name);
}

/* ---- A range of consecutive elements ---------------------------------- */

/* Elements that are looked at together: so few that numbers which are special
 * once in ten thousand seldom make them be read again. */
#define BLOCK 512

/* Whole vectors from i to stop. */
static void emit_block(clconv_emit *e)
{
    clconv_emit_line(e, "const long from = i;");
    clconv_emit_line(e, "const long stop = min(whole, i + $block);");
    clconv_emit_line(e, "uint16 above = 0;");
    clconv_emit_open(e, "for (; i < stop; i += 16)");
    clconv_emit_line(e, "const float16 before = cast_${tensor}16($in, i);");
    clconv_emit_line(e, "sum16 += before;");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    above = beyond_$tensor(above, before);");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (counting && is_ordinary_$tensor(above))");
    clconv_emit_line(e, "    seen.nonzero += (int)(stop - from) / 16;");
    clconv_emit_line(e, "else if (counting)");
    clconv_emit_line(e, "    see_${tensor}_run(&seen, in, from, stop, stop);");
}

/* A work-item takes all elements, a block after the other. */
static void emit_runs(clconv_emit *e)
{
    clconv_emit_set(e, "block", BLOCK);
    clconv_emit_line(e, "const long whole = begin + (end - begin) / 16 * 16;");
    clconv_emit_line(e, "long i = begin;");
    clconv_emit_line(e, "seen16_t seen = { 0 };");
    clconv_emit_line(e, "float16 sum16 = 0.0f;");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_open(e, "while (i < whole)");
    emit_block(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "for (; i < end; ++i)");
    clconv_emit_line(e, "    sum += cast_$tensor($in, i);");
    clconv_emit_open(e, "if (counting)");
    clconv_emit_line(e, "see_${tensor}_run(&seen, in, whole, end, end);");
    clconv_emit_line(e, "fold16(tally, &seen);");
    clconv_emit_close(e);
}

/* Work-items take vectors in turns, steps of width elements from i to end. */
static void emit_turns(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_set(e, "past", width - 1);
    clconv_emit_line(e, "seen${vn}_t seen$vn = { 0 };");
    clconv_emit_line(e, "$float sum$vn = 0.0f;");
    clconv_emit_open(e, "for (; i + $past < end; i += $lws * $width)");
    clconv_emit_line(e, "const $float before = cast_$tensor$vn($in, i);");
    clconv_emit_line(e, "sum$vn += before;");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    see_$tensor$vn(&seen$vn, before);");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    fold$vn(tally, &seen$vn);");
}

static void emit_all_turns(clconv_emit *e, const clconv_task *t)
{
    bool alone = t->values[CLCONV_CAST_LWS] == 1;
    clconv_emit_line(e, alone ? "long i = begin;"
                              : "long i = begin + get_local_id(0) * $vec;");
    emit_turns(e, t->values[CLCONV_CAST_VEC]);
    if (t->values[CLCONV_CAST_VEC] == 1)
        return;
    clconv_emit_line(e, alone ? "i = begin + (end - begin) / $vec * $vec;"
                              : "i = begin + (end - begin) / $vec * $vec + "
                                "get_local_id(0);");
    emit_turns(e, 1);
}

/* Casts [begin, end) by all work-items and returns the sum of this one's
 * elements. */
static void emit_range(clconv_emit *e, const clconv_task *t, clconv_cast_part a)
{
    int vec = t->values[CLCONV_CAST_VEC];
    clconv_entry_emit_apart(e, t, t->values[CLCONV_CAST_LWS]);
    clconv_emit_line(e, "static float cast_${tensor}_range($parameters,");
    clconv_emit_open(e, "    long begin, long end, int counting, "
                        "counts_t *tally)");
    if (counts_runs(t, a))
        emit_runs(e);
    else
        emit_all_turns(e, t);
    clconv_operand_set_width(e, vec);
    clconv_emit_line(e,
                     vec > 1 ? "return fsum$vn(sum$vn) + sum;" : "return sum;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_begin(clconv_emit *e)
{
    clconv_emit_line(e, "int counting = ${tensor}_counts != 0;");
    clconv_emit_line(e, "counts_t tally = { 0 };");
}

static void emit_flat(clconv_emit *e, const clconv_task *t, clconv_cast_part a)
{
    clconv_pass pass = clconv_cast_flat_pass(t, a, t->problem->n);
    emit_range(e, t, a);
    clconv_entry_open(e, t, &pass, NULL);
    emit_begin(e);
    clconv_emit_line(e, "long begin = (long)get_group_id(0) * $chunk;");
    clconv_emit_line(e, "long end = min(begin + $chunk, elements);");
    clconv_emit_line(e, "cast_${tensor}_range($arguments, begin, end, "
                        "counting, &tally);");
    clconv_emit_line(e, "counts_flush(${tensor}_counts, &tally);");
    clconv_emit_close(e);
}

/* ---- dbias: planes and pixels ----------------------------------------- */

/* The last work-groups count W, if a report is wanted. */
static void emit_w_beside(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_set_text(e, "counter", clconv_tensor_name(counter_of_w(t)));
    clconv_emit_line(e, "const long w_groups = (elements + $chunk - 1) / "
                        "$chunk;");
    clconv_emit_line(e, "const long w_group = (long)get_group_id(0) - "
                        "(long)get_num_groups(0) + w_groups;");
    clconv_emit_open(e, "if (w_group >= 0)");
    clconv_emit_open(e, "if (w && w_counts)");
    clconv_emit_line(e, "const long w_begin = w_group * $chunk;");
    clconv_emit_line(e,
                     "cast_${counter}_range(w, w_begin, min(w_begin + $chunk, "
                     "elements), 1, &tally);");
    clconv_emit_line(e, "counts_flush(w_counts, &tally);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
}

/* One unit of a group: sum becomes scratch[unit]. */
static void emit_unit(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "long begin = unit / parts * plane + unit % parts * "
                        "$chunk;");
    clconv_emit_line(e, "long end = min(begin + $chunk, "
                        "(unit / parts + 1) * plane);");
    clconv_emit_line(e, "float sum = cast_${tensor}_range($arguments, begin, "
                        "end, counting, &tally);");
    if (t->values[CLCONV_CAST_LWS] > 1) {
        clconv_emit_line(e, "sum = reduce_sum(sums, sum);");
        clconv_emit_line(e, "if (get_local_id(0) == 0)");
        clconv_emit_line(e, "    scratch[unit] = sum;");
    } else {
        clconv_emit_line(e, "scratch[unit] = sum;");
    }
}

static void emit_planes(clconv_emit *e, const clconv_task *t, clconv_cast_part a)
{
    clconv_pass pass = clconv_cast_flat_pass(t, a, t->problem->n);
    if (t->values[CLCONV_CAST_LWS] > 1)
        clconv_emit_part(e, "reduce");
    emit_range(e, t, a);
    clconv_entry_open(e, t, &pass, NULL);
    if (t->values[CLCONV_CAST_LWS] > 1)
        clconv_emit_line(e, "__local float sums[$lws];");
    emit_begin(e);
    if (clconv_cast_counts_w_beside(t, a))
        emit_w_beside(e, t);
    clconv_emit_line(e, "long plane = (long)sizes.p * sizes.q;");
    clconv_emit_line(e, "long parts = (plane + $chunk - 1) / $chunk;");
    clconv_emit_line(e, "long units = (long)sizes.n * sizes.k * parts;");
    clconv_emit_line(e, "long share = max(1L, $chunk / plane);");
    clconv_emit_line(e, "long unit = (long)get_group_id(0) * share;");
    clconv_emit_line(e, "long last = min(unit + share, units);");
    clconv_emit_open(e, "for (; unit < last; ++unit)");
    emit_unit(e, t);
    clconv_emit_close(e);
    clconv_emit_line(e, "counts_flush(${tensor}_counts, &tally);");
    clconv_emit_close(e);
}

/* Casts a column of the rows of some pixels, width channels wide from k, and
 * sums it; the sums of 256 pixels each are added to the total. */
static void emit_column(clconv_emit *e, const clconv_task *t, int width)
{
    clconv_operand_set_width(e, width);
    clconv_entry_emit_apart(e, t, t->values[CLCONV_CAST_LWS]);
    clconv_emit_line(e, "static $float cast_column$vn($parameters,");
    clconv_emit_open(e, "    long i, int rows, int channels, int counting, "
                        "counts_t *tally)");
    clconv_emit_line(e, "seen${vn}_t seen = { 0 };");
    clconv_emit_line(e, "$float total = 0.0f;");
    clconv_emit_open(e, "while (rows > 0)");
    clconv_emit_line(e, "$float sum = 0.0f;");
    clconv_emit_line(e, "int block = min(rows, 256);");
    clconv_emit_line(e, "rows -= block;");
    clconv_emit_open(e, "for (; block > 0; --block, i += channels)");
    clconv_emit_line(e, "const $float before = cast_$tensor$vn($in, i);");
    clconv_emit_line(e, "sum += before;");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    see_$tensor$vn(&seen, before);");
    clconv_emit_close(e);
    clconv_emit_line(e, "total += sum;");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    fold$vn(tally, &seen);");
    clconv_emit_line(e, "return total;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The columns of width channels from k on that are whole. */
static void emit_columns(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_set(e, "past", width - 1);
    clconv_emit_open(e, "for (; k + $past < sizes.k; k += $lws * $width)");
    clconv_emit_line(e, "$float sum = cast_column$vn($arguments,");
    clconv_emit_line(e, "    first * sizes.k + k, rows, sizes.k, counting, "
                        "&tally);");
    clconv_emit_line(e, width > 1 ? "vstore$vn(sum, 0, sums + k);"
                                  : "sums[k] = sum;");
    clconv_emit_close(e);
}

static void emit_pixels(clconv_emit *e, const clconv_task *t, clconv_cast_part a)
{
    int vec = t->values[CLCONV_CAST_VEC];
    clconv_pass pass = clconv_cast_flat_pass(t, a, t->problem->n);
    clconv_emit_set(e, "min_pixels", MIN_PIXELS);
    emit_column(e, t, 1);
    if (vec > 1)
        emit_column(e, t, vec);
    clconv_entry_open(e, t, &pass, NULL);
    emit_begin(e);
    if (clconv_cast_counts_w_beside(t, a))
        emit_w_beside(e, t);
    clconv_emit_line(e, "long pixels = (long)sizes.n * sizes.p * sizes.q;");
    clconv_emit_line(e, "int share = max($min_pixels, $chunk / sizes.k);");
    clconv_emit_line(e, "long first = (long)get_group_id(0) * share;");
    clconv_emit_line(e, "int rows = (int)min((long)share, pixels - first);");
    clconv_emit_line(e, "__global float *sums = scratch + "
                        "(long)get_group_id(0) * sizes.k;");
    clconv_emit_line(e, "int k = (int)get_local_id(0) * $vec;");
    emit_columns(e, vec);
    if (vec > 1) {
        clconv_emit_line(e, "k = sizes.k / $vec * $vec + "
                            "(int)get_local_id(0);");
        emit_columns(e, 1);
    }
    clconv_emit_line(e, "counts_flush(${tensor}_counts, &tally);");
    clconv_emit_close(e);
}

/* ---- dbias: the last sum ---------------------------------------------- */

/* count partial sums of channel k, the i-th at $partial. */
static void emit_partials(clconv_emit *e, const clconv_task *t)
{
    if (t->problem->layout == CLCONV_NHWC) {
        clconv_emit_line(e, "long pixels = (long)sizes.n * sizes.p * sizes.q;");
        clconv_emit_line(e, "long share = max($min_pixels, $chunk / sizes.k);");
        clconv_emit_line(e, "long count = (pixels + share - 1) / share;");
        clconv_emit_set_text(e, "partial", "i * sizes.k + k");
    } else {
        clconv_emit_line(e, "long plane = (long)sizes.p * sizes.q;");
        clconv_emit_line(e, "long parts = (plane + $chunk - 1) / $chunk;");
        clconv_emit_line(e, "long count = sizes.n * parts;");
        clconv_emit_set_text(e, "partial",
                             "(i / parts * sizes.k + k) * parts "
                             "+ i % parts");
    }
}

/* The sum of channel k: sums of 64 partial sums each are added to the total. */
static void emit_bias_sum(clconv_emit *e, const clconv_task *t, int local)
{
    clconv_entry_emit_apart(e, t, local);
    clconv_emit_line(e, "static float bias(__global const float *scratch, "
                        "sizes_t sizes,");
    clconv_emit_open(e, "    int k)");
    emit_partials(e, t);
    clconv_emit_line(e, "float total = 0.0f;");
    clconv_emit_open(e, "for (long i = 0; i < count;)");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_line(e, "long end = min(count, i + 64);");
    clconv_emit_line(e, "for (; i < end; ++i)");
    clconv_emit_line(e, "    sum += scratch[$partial];");
    clconv_emit_line(e, "total += sum;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return total;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_cast_flat_emit_bias(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = clconv_cast_flat_bias_pass(t);
    emit_bias_sum(e, t, (int)pass.local);
    clconv_output_emit_store(e, t->problem, CLCONV_DB, 1);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_emit_line(e, "int k = (int)get_global_id(0);");
    clconv_emit_line(e, "if (k >= sizes.k)");
    clconv_emit_line(e, "    return;");
    clconv_output_emit_tally(e, t->problem, CLCONV_DB);
    clconv_emit_line(e, "store_db(db, k, bias(scratch, sizes, k), "
                        "beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DB);
    clconv_emit_close(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           clconv_cast_part a)
{
    set_parameters(e, t, a);
    emit_counting(e, t, a);
    emit_cast(e, t, a, 1);
    if (t->values[CLCONV_CAST_VEC] > 1)
        emit_cast(e, t, a, t->values[CLCONV_CAST_VEC]);
}

/* One tensor's functions and its entry point. */
void clconv_cast_flat_emit(clconv_emit *e, const clconv_task *t,
                           clconv_cast_part a)
{
    if (clconv_cast_counts_w_beside(t, a) && counter_of_w(t) == CLCONV_W) {
        clconv_cast_part w = clconv_cast_part_of(t, CLCONV_W);
        emit_functions(e, t, w);
        emit_range(e, t, w);
    }
    emit_functions(e, t, a);
    if (!a.bias)
        emit_flat(e, t, a);
    else if (t->problem->layout == CLCONV_NCHW)
        emit_planes(e, t, a);
    else
        emit_pixels(e, t, a);
    clconv_emit_blank(e);
}

/* Of the widths that elements are seen in; runs are seen in that of a vector. */
void clconv_cast_flat_emit_seen(clconv_emit *e, const clconv_task *t)
{
    int vec = t->values[CLCONV_CAST_VEC];
    if (sums_pixels(t, clconv_cast_part_of(t, CLCONV_DY)) || !takes_runs(t))
        clconv_counts_emit_seen(e, 1);
    if (clconv_cast_packs_any(t) && vec != CLCONV_TILES_VEC)
        clconv_counts_emit_seen(e, CLCONV_TILES_VEC);
    if (vec > 1)
        clconv_counts_emit_seen(e, vec);
}
