/*
 * Which values the kernels on local memory take, what these cost, and which are
 * good without measuring. Numbers are an H200's (docs/perf-log.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "integers.h"
#include "local.h"

#define LEAST_ITEMS 64
#define MOST_ITEMS 256
#define MOST_LOCAL (48 * 1024)

/* Work-items of a compute unit, so that it is busy. */
#define ITEMS_WANTED 256.0

bool clconv_local_has_async(const clconv_device *d)
{
    return d->nv_sm >= 80;
}

bool clconv_local_is_async(const int *values)
{
    return values[CLCONV_LOCAL_COPY] == CLCONV_LOCAL_COPY_ASYNC;
}

bool clconv_local_is_half(const int *values)
{
    return values[CLCONV_LOCAL_STAGE] == CLCONV_LOCAL_STAGE_HALF;
}

int clconv_local_items(const int *values)
{
    return values[CLCONV_LOCAL_TILE_M] / values[CLCONV_LOCAL_REG_M] *
           (values[CLCONV_LOCAL_TILE_N] / values[CLCONV_LOCAL_REG_N]);
}

int clconv_local_sums(const int *values)
{
    return values[CLCONV_LOCAL_REG_M] * values[CLCONV_LOCAL_REG_N];
}

/* ---- Legal -------------------------------------------------------------- */

/* Of an operand in local memory. */
static size_t stage_bytes(const int *values, int rows)
{
    clconv_local_stage s = {
        .rows = rows,
        .tile_k = values[CLCONV_LOCAL_TILE_K],
        .half_tile = clconv_local_is_half(values),
        .tiles = values[CLCONV_LOCAL_TILES],
    };
    return clconv_local_stage_bytes(&s);
}

/* Work-group and local memory. */
static bool fits(const int *values, const clconv_device *d)
{
    size_t items = (size_t)clconv_local_items(values);
    size_t bytes = stage_bytes(values, values[CLCONV_LOCAL_TILE_M]) +
                   stage_bytes(values, values[CLCONV_LOCAL_TILE_N]);
    return items >= LEAST_ITEMS && items <= MOST_ITEMS &&
           items <= d->max_work_group && bytes <= MOST_LOCAL &&
           bytes <= d->local_memory;
}

/* Can an operand be copied as it is? */
static bool is_plain(const clconv_task *t, const clconv_nest_operand *o)
{
    return o->prepared || (!clconv_operand_is_half(t, o->tensor) &&
                           !clconv_operand_is_fused(t, o->tensor));
}

bool clconv_local_legal(const clconv_task *t, const clconv_nest *nest)
{
    const int *values = t->values;
    bool half_tile = clconv_local_is_half(values);
    bool plain = !half_tile && is_plain(t, &nest->a) && is_plain(t, &nest->b);
    return fits(values, t->device) &&
           (clconv_local_is_async(values) ? plain
                                          : values[CLCONV_LOCAL_TILES] == 2) &&
           (!half_tile || t->problem->math == CLCONV_MIXED);
}

bool clconv_local_promising(const clconv_task *t)
{
    return !clconv_local_is_async(t->values) ||
           clconv_local_has_async(t->device);
}

/* ---- Cost --------------------------------------------------------------- */

/* Of the peak: what a register tile reaches by the loads that it saves, and
 * what fetching an element costs, in multiply-adds. Fitted to 64 sums; those of
 * fewer stand to it as they were measured before. A CPU has no use for local
 * memory: 3 to 8 % measured, counted as less, since it is long to compile. */
static double share(const int *values, const clconv_device *d)
{
    const double per_element = 18;
    int sums = clconv_local_sums(values);
    double reached = sums >= 64 ? 0.65 : sums >= 32 ? 0.64 : 0.50;
    if (d->is_cpu)
        return 0.015;
    return 1 / (1 / reached + per_element / values[CLCONV_LOCAL_TILE_M] +
                per_element / values[CLCONV_LOCAL_TILE_N]);
}

double clconv_local_cost(const clconv_task *t, double waste, double bytes)
{
    return clconv_cost_multiply(t->problem) * waste /
               share(t->values, t->device) +
           clconv_cost_move(t->device, bytes) +
           clconv_cost_launch(t->device, bytes > 0 ? 2 : 1);
}

/* ---- Defaults ----------------------------------------------------------- */

/* What a shape is for: a register tile of 64 sums for NVIDIA's 255 registers,
 * since other GPUs have half of that or less; the largest tile for copies that
 * do not wait in registers. */
typedef enum shape_need { ANY, REGISTERS, ASYNC } shape_need;

/* What defaults choose from: the last fits wherever one fits. */
static const struct {
    int tile_m, tile_n, reg_m, reg_n;
    shape_need need;
} shapes[] = {
    {128, 128, 8, 8, ASYNC}, {128, 64, 8, 8, REGISTERS}, {64, 64, 8, 4, ANY},
    {64, 32, 4, 4, ANY},     {32, 64, 4, 4, ANY},        {128, 8, 4, 4, ANY},
    {64, 16, 4, 4, ANY},
};

#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

static void set_shape(int i, int *values)
{
    values[CLCONV_LOCAL_TILE_M] = shapes[i].tile_m;
    values[CLCONV_LOCAL_TILE_N] = shapes[i].tile_n;
    values[CLCONV_LOCAL_REG_M] = shapes[i].reg_m;
    values[CLCONV_LOCAL_REG_N] = shapes[i].reg_n;
}

/* The defaults, but for the shape. */
static void set_rest(bool async, int *values)
{
    values[CLCONV_LOCAL_TILE_K] = 16;
    values[CLCONV_LOCAL_STAGING] = CLCONV_LOCAL_STAGING_VECTOR;
    values[CLCONV_LOCAL_STAGE] = CLCONV_LOCAL_STAGE_FLOAT;
    values[CLCONV_LOCAL_CAST] = CLCONV_CAST_SEPARATE;
    values[CLCONV_LOCAL_COPY] =
        async ? CLCONV_LOCAL_COPY_ASYNC : CLCONV_LOCAL_COPY_REGISTERS;
    values[CLCONV_LOCAL_TILES] = 2;
    values[CLCONV_LOCAL_SHAPE] = CLCONV_SHAPE_ARGUMENTS;
}

bool clconv_local_covers(const clconv_device *d)
{
    int values[CLCONV_LOCAL_PARAMS];
    set_rest(false, values);
    set_shape(SHAPES - 1, values);
    return fits(values, d);
}

/* Of so many results of rows x columns: what is computed for nothing, what a
 * register tile reaches, and units left without work. */
static double time_of(const int *values, const clconv_device *d, int64_t rows,
                      int64_t columns, int64_t results)
{
    int tile_m = values[CLCONV_LOCAL_TILE_M];
    int tile_n = values[CLCONV_LOCAL_TILE_N];
    double groups = (double)results * (double)clconv_divide_up(rows, tile_m) *
                    (double)clconv_divide_up(columns, tile_n);
    double idle =
        ITEMS_WANTED * d->compute_units / (groups * clconv_local_items(values));
    return clconv_cost_waste(rows, tile_m) * clconv_cost_waste(columns, tile_n) /
           share(values, d) * (idle > 1 ? idle : 1);
}

static bool is_for(shape_need need, const int *values, const clconv_device *d)
{
    return need == ANY || (need == REGISTERS && d->nv_sm > 0) ||
           (need == ASYNC && clconv_local_is_async(values));
}

static int best_shape(const clconv_device *d, int64_t rows, int64_t columns,
                      int64_t results, int *values)
{
    double least = 0;
    int best = SHAPES - 1;
    for (int i = 0; i < SHAPES; ++i) {
        set_shape(i, values);
        if (!fits(values, d) || !is_for(shapes[i].need, values, d))
            continue;
        double time = time_of(values, d, rows, columns, results);
        if (least == 0 || time < least) {
            least = time;
            best = i;
        }
    }
    return best;
}

/* Are operands multiplied as they are stored, on a device that has the
 * instruction? */
static bool copies_asynchronously(const clconv_problem *p,
                                  const clconv_device *d)
{
    bool plain = p->math == CLCONV_FP32;
    for (int i = CLCONV_DY; i <= CLCONV_W; ++i)
        plain = plain && p->type[i] == CLCONV_F32;
    return plain && clconv_local_has_async(d);
}

void clconv_local_defaults(const clconv_problem *p, const clconv_device *d,
                           int64_t rows, int64_t columns, int64_t results,
                           int *values)
{
    set_rest(copies_asynchronously(p, d), values);
    set_shape(best_shape(d, rows, columns, results, values), values);
}

unsigned clconv_local_wants_copies(const clconv_task *t, unsigned operands)
{
    bool separate = t->values[CLCONV_LOCAL_CAST] == CLCONV_CAST_SEPARATE;
    return separate ? clconv_operand_cast_bits(t->problem, operands) : 0;
}
