/*
 * The order of the additions is fixed: lanes by halves, then shares from the
 * first to the last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_partials.h"

#include "entry.h"
#include "integers.h"
#include "output.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

static void emit_lane_sum(clconv_emit *e)
{
    clconv_emit_open(e, "static float lane_sum(float16 v)");
    clconv_emit_line(e, "const float8 a = v.lo + v.hi;");
    clconv_emit_line(e, "const float4 b = a.lo + a.hi;");
    clconv_emit_line(e, "const float2 c = b.lo + b.hi;");
    clconv_emit_line(e, "return c.x + c.y;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The sums of the tile's channels that there are -> partial; k and c within
 * the group. */
static void emit_store_partials(clconv_emit *e)
{
    clconv_emit_open(
        e, "static void store_partials(__global float *partial, shape_t "
           "shape, int k, int c, int taps, const float16 *sums)");
    clconv_emit_line(e, "const int k_count = min($tile_k, (int)shape.group_k - "
                        "k);");
    clconv_emit_line(e, "const int c_count = min($tile_c, (int)shape.group_c - "
                        "c);");
    clconv_emit_open(e, "for (int i = 0; i < k_count; ++i)");
    clconv_emit_open(e, "for (int j = 0; j < c_count; ++j)");
    clconv_emit_line(e, "__global float *to = partial + ((k + i) * "
                        "shape.group_c + c + j) * shape.filter;");
    clconv_emit_open(e, "for (int tap = 0; tap < taps; ++tap)");
    clconv_emit_line(e, "to[tap] = lane_sum(sums[tap * $tile + i * $tile_c + "
                        "j]);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_tile_partials_emit_store(clconv_emit *e)
{
    emit_lane_sum(e);
    emit_store_partials(e);
}

/* Vectors of dW that a work-item sums. */
#define SUM_VECTORS 32

void clconv_tile_partials_pass(const clconv_task *t, const clconv_shape *s,
                               clconv_pass *pass)
{
    int64_t weights = clconv_problem_elements(t->problem, CLCONV_DW);
    *pass = (clconv_pass){
        .entry = "bwd_weight_tile_sum",
        .groups = (size_t)clconv_divide_up(weights, SUM_VECTORS * LANES),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_shape_arg(s, pass);
}

/* The other shares in order; load adds a vector or an element of one. */
static void emit_add_shares(clconv_emit *e, const char *load)
{
    clconv_emit_open(e, "for (int share = 1; share < shape.split_k; ++share)");
    clconv_emit_line(e, load);
    clconv_emit_close(e);
}

/* The last pass: one vector or element of dW at a time. */
void clconv_tile_partials_emit(clconv_emit *e, const clconv_task *t,
                               const clconv_shape *s, const clconv_pass *pass)
{
    clconv_emit_set(e, "sum_vectors", SUM_VECTORS);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, LANES);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_shape_open(e, t, pass, s);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "const long weights = shape.weights;");
    clconv_emit_line(e, "__global const float *partial = scratch + "
                        "shape.partials;");
    clconv_emit_line(e, "long i = get_group_id(0) * $sum_vectors * 16L;");
    clconv_emit_line(e, "const long end = min(i + $sum_vectors * 16L, "
                        "weights);");
    clconv_emit_open(e, "for (; i + 16 <= end; i += 16)");
    clconv_emit_line(e, "float16 sum = vload16(0, partial + i);");
    emit_add_shares(e, "sum += vload16(0, partial + share * weights + i);");
    clconv_emit_line(e, "store_dw16(dw, i, sum, beta$tally);");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (; i < end; ++i)");
    clconv_emit_line(e, "float sum = partial[i];");
    emit_add_shares(e, "sum += partial[share * weights + i];");
    clconv_emit_line(e, "store_dw(dw, i, sum, beta$tally);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}
