/*
 * The cast: reads each element of dY, X and W once; writes its fp16 copy,
 * counts what rounding did and, of dY, sums dbias from the values before
 * rounding. Every step is optional, so this is also what counts a tensor that
 * no other kernel counts and what sums the dbias of an fp16 or fp32 plan. One
 * program has an entry point for each tensor, as some drivers take a tenth of
 * a second a program, whatever is in it.
 *
 * Tensors that are packed go through one pass of cast_pack.c, all others
 * through one each of cast_flat.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_flat.h"
#include "cast_pack.h"
#include "cost.h"
#include "integers.h"
#include "sizes.h"

static const clconv_param params[CLCONV_CAST_PARAMS] = {
    [CLCONV_CAST_VEC] = {"vec", CLCONV_VALUES(16, 4, 1), "elements of a vector"},
    [CLCONV_CAST_LWS] = {"lws", CLCONV_VALUES(1, 64, 256),
                         "work-items of a group"},
    [CLCONV_CAST_CHUNK] = {"chunk", CLCONV_VALUES(16384, 1024, 4096, 65536),
                           "elements of a work-group"},
    [CLCONV_CAST_SHAPE] = CLCONV_SHAPE_PARAM,
};

/* A GPU's work-group sums planes one after the other: few of them, and by few
 * work-items, if they are small. */
#define SMALL_PLANE 512

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    (void)p;
    (void)d;
    return true;
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, CLCONV_CAST_PARAMS, values);
    if (d->is_cpu)
        return;
    bool small = p->layout == CLCONV_NCHW && p->p * p->q <= SMALL_PLANE;
    int lws = small ? 64 : 256;
    if (d->units != 0 && !d->unit_emulated) /* whose kernels are so too */
        values[CLCONV_CAST_SHAPE] = CLCONV_SHAPE_BAKED;
    values[CLCONV_CAST_VEC] = 4;
    values[CLCONV_CAST_LWS] = d->max_work_group >= (size_t)lws ? lws : 1;
    if (small)
        values[CLCONV_CAST_CHUNK] = 1024;
}

/* Work-items of a group that packs, unless it is one. */
#define PACK_LWS 256

static int pack_lws(const clconv_task *t)
{
    bool one =
        t->values[CLCONV_CAST_LWS] == 1 || t->device->max_work_group < PACK_LWS;
    return one ? 1 : PACK_LWS;
}

static size_t local_memory(const clconv_task *t)
{
    if (clconv_cast_packs_any(t))
        return clconv_cast_pack_local(t, pack_lws(t));
    return t->values[CLCONV_CAST_LWS] > 1
               ? (size_t)t->values[CLCONV_CAST_LWS] * sizeof(float)
               : 0;
}

static bool legal(const clconv_task *t)
{
    return (size_t)t->values[CLCONV_CAST_LWS] <= t->device->max_work_group &&
           local_memory(t) <= t->device->local_memory;
}

static unsigned wants_copies(const clconv_task *t)
{
    (void)t;
    return 0;
}

/* ---- Passes ----------------------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    int64_t groups;
    if (!t->bias)
        return 0;
    if (clconv_cast_pack_sums(t))
        return clconv_cast_pack_scratch(t, pack_lws(t));
    return (size_t)clconv_cast_flat_sums(t, t->problem->n, &groups) *
           sizeof(float);
}

static clconv_pass pack_pass(const clconv_task *t, int64_t batch)
{
    clconv_pass pass = clconv_cast_pack_pass(t, pack_lws(t), batch);
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        clconv_cast_part a = {.tensor = tensor, .copies = true};
        if (clconv_cast_packs(t, tensor))
            pass.serves |= clconv_cast_serves(a);
    }
    if (clconv_cast_pack_sums(t))
        pass.serves |= CLCONV_OP_DB;
    return pass;
}

static clconv_bias_sums bias_sums(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    int64_t groups;
    if (clconv_cast_pack_sums(t))
        return clconv_cast_pack_bias_sums(t, pack_lws(t), batch);
    int64_t count = clconv_cast_flat_sums(t, batch, &groups) / p->k;
    bool pixels = p->layout == CLCONV_NHWC;
    int64_t parts = clconv_divide_up(p->p * p->q, t->values[CLCONV_CAST_CHUNK]);
    return (clconv_bias_sums){.count = count, .run = pixels ? 1 : parts};
}

/* Is it a pass of the cast? */
static bool has_last_sum(const clconv_task *t)
{
    return t->bias && !t->finishes_bias;
}

static clconv_pass last_sum_pass(const clconv_task *t, int64_t batch)
{
    return clconv_cast_pack_sums(t)
               ? clconv_cast_pack_bias_pass(t, pack_lws(t), batch)
               : clconv_cast_flat_bias_pass(t);
}

/* The tensors (bits) with a flat pass of their own. */
static unsigned flat_passes(const clconv_task *t)
{
    clconv_cast_part dy = clconv_cast_part_of(t, CLCONV_DY);
    unsigned bits = clconv_cast_flat_reads(t);
    return clconv_cast_counts_w_beside(t, dy) ? bits & ~CLCONV_BIT(CLCONV_W)
                                              : bits;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    int count = 0;
    if (clconv_cast_packs_any(t))
        out[count++] = pack_pass(t, batch);
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        if (flat_passes(t) & CLCONV_BIT(tensor))
            out[count++] =
                clconv_cast_flat_pass(t, clconv_cast_part_of(t, tensor), batch);
    if (has_last_sum(t))
        out[count++] = last_sum_pass(t, batch);
    return count;
}

/* ---- How long --------------------------------------------------------- */

/* Packing beside a copy of as many bytes, measured on an H200: what it writes
 * stays in part in a cache. */
static double pack_share(const clconv_task *t)
{
    return t->baked ? 0.9 : 1.25;
}

/* Counting alone is left out: a call may want no report. */
static double cost(const clconv_task *t)
{
    double bytes = 0;
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = passes(t, t->problem->n, pass), launches = 0;
    for (int i = 0; i < count; ++i)
        launches += pass[i].serves != 0;
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        clconv_cast_part a = clconv_cast_part_of(t, tensor);
        bool packs = clconv_cast_packs(t, tensor);
        double elements = (double)clconv_problem_elements(t->problem, tensor);
        double read = t->problem->type[tensor] == CLCONV_F16 ? 2 : 4;
        if (!(t->reads & CLCONV_BIT(tensor)) || !(a.copies || a.bias || packs))
            continue;
        bytes += elements * (read + (a.copies ? 2 : 0) + (packs ? 2 : 0)) *
                 (packs ? pack_share(t) : 1);
    }
    return clconv_cost_move(t->device, bytes) +
           clconv_cost_launch(t->device, launches);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    unsigned rest = flat_passes(t);
    bool sums = t->bias && !clconv_cast_pack_sums(t);
    clconv_cast_flat_emit_seen(e, t);
    if (clconv_cast_packs_any(t))
        clconv_cast_pack_emit(e, t, pack_lws(t));
    if (sums)
        clconv_sizes_emit(e);
    clconv_cast_part w = clconv_cast_part_of(t, CLCONV_W);
    if (rest & (CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W)) &&
        clconv_cast_is_like_x(t, w)) {
        rest &= ~(CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W));
        clconv_cast_flat_emit(
            e, t, (clconv_cast_part){.tensor = CLCONV_X, .copies = w.copies});
    }
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        if (rest & CLCONV_BIT(tensor))
            clconv_cast_flat_emit(e, t, clconv_cast_part_of(t, tensor));
    if (sums && has_last_sum(t))
        clconv_cast_flat_emit_bias(e, t);
}

const clconv_kernel clconv_cast = {
    .name = "cast",
    .role = CLCONV_ROLE_CAST,
    .revision = 3,
    .summary = "rounds an operand to fp16, counts, sums dbias",
    .params = params,
    .param_count = CLCONV_CAST_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .bias_sums = bias_sums,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};
