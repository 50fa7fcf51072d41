/*
 * The facts of the matrix units: they tile the matrices, and say what the
 * instruction set's manual says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "planner.h"
#include "unit.h"

/* How often each element of a rows x columns matrix is held by some lane. */
static void count_owners(const clconv_unit *u, clconv_unit_fact row,
                         clconv_unit_fact column, int registers, int parts,
                         int columns, int *owners)
{
    for (int lane = 0; lane < u->lanes; ++lane)
        for (int reg = 0; reg < registers; ++reg)
            for (int part = 0; part < parts; ++part) {
                int r = row.value(lane, reg, part);
                int c = column.value(lane, reg, part);
                ++owners[r * columns + c];
            }
}

static void check_once(const char *what, const int *owners, int rows,
                       int columns)
{
    for (int i = 0; i < rows * columns; ++i)
        cr_assert_eq(owners[i], 1, "%s (%d, %d) is held %d times", what,
                     i / columns, i % columns, owners[i]);
}

static void check_tiling(const clconv_unit *u)
{
    int a[256] = {0}, b[256] = {0}, c[256] = {0};
    cr_assert(u->m * u->k <= 256 && u->k * u->n <= 256);
    count_owners(u, u->a_row, u->a_k, u->a_registers, 2, u->k, a);
    count_owners(u, u->b_k, u->b_column, u->b_registers, 2, u->n, b);
    count_owners(u, u->c_row, u->c_column, u->c_registers, 1, u->n, c);
    check_once("A", a, u->m, u->k);
    check_once("B", b, u->k, u->n);
    check_once("C", c, u->m, u->n);
}

Test(unit, every_element_of_a_b_and_c_is_held_once)
{
    for (int id = 0; id < CLCONV_UNITS; ++id) {
        const clconv_unit *u = clconv_unit_get((clconv_unit_id)id);
        if (u)
            check_tiling(u);
    }
}

/* What one 32-bit read from a tile with k innermost relies on. */
static void check_pairs(const clconv_unit *u, clconv_unit_fact row,
                        clconv_unit_fact k, int registers)
{
    for (int lane = 0; lane < u->lanes; ++lane)
        for (int reg = 0; reg < registers; ++reg) {
            cr_assert_eq(k.value(lane, reg, 0) % 2, 0);
            cr_assert_eq(k.value(lane, reg, 1), k.value(lane, reg, 0) + 1);
            cr_assert_eq(row.value(lane, reg, 1), row.value(lane, reg, 0));
        }
}

Test(unit, the_halves_of_a_register_are_neighbours_along_k)
{
    for (int id = 0; id < CLCONV_UNITS; ++id) {
        const clconv_unit *u = clconv_unit_get((clconv_unit_id)id);
        if (!u)
            continue;
        check_pairs(u, u->a_row, u->a_k, u->a_registers);
        check_pairs(u, u->b_column, u->b_k, u->b_registers);
    }
}

/* An element of a figure of the PTX ISA. */
typedef struct published {
    char matrix;
    int lane, reg, part, row, column;
} published;

static void check_published(clconv_unit_id id, const published *figures,
                            size_t count)
{
    const clconv_unit *u = clconv_unit_get(id);
    for (size_t i = 0; i < count; ++i) {
        published f = figures[i];
        char m = f.matrix;
        clconv_unit_fact row = m == 'A'   ? u->a_row
                               : m == 'B' ? u->b_k
                                          : u->c_row;
        clconv_unit_fact column = m == 'A'   ? u->a_k
                                  : m == 'B' ? u->b_column
                                             : u->c_column;
        cr_assert_eq(row.value(f.lane, f.reg, f.part), f.row,
                     "row of %c%d, lane %d of %s", m, f.reg, f.lane, u->name);
        cr_assert_eq(column.value(f.lane, f.reg, f.part), f.column,
                     "column of %c%d, lane %d of %s", m, f.reg, f.lane, u->name);
    }
}

Test(unit, mma_m16n8k16_is_as_published)
{
    static const published figures[] = {
        {'A', 0, 0, 0, 0, 0},   {'A', 0, 1, 0, 8, 0},  {'A', 0, 2, 0, 0, 8},
        {'A', 0, 3, 1, 8, 9},   {'A', 5, 0, 1, 1, 3},  {'A', 5, 1, 0, 9, 2},
        {'A', 5, 2, 0, 1, 10},  {'A', 31, 0, 0, 7, 6}, {'A', 31, 3, 1, 15, 15},
        {'A', 18, 2, 1, 4, 13}, {'B', 0, 0, 1, 1, 0},  {'B', 0, 1, 0, 8, 0},
        {'B', 5, 0, 0, 2, 1},   {'B', 5, 1, 1, 11, 1}, {'B', 31, 0, 0, 6, 7},
        {'B', 31, 1, 1, 15, 7}, {'C', 0, 0, 0, 0, 0},  {'C', 0, 1, 0, 0, 1},
        {'C', 0, 2, 0, 8, 0},   {'C', 5, 3, 0, 9, 3},  {'C', 31, 0, 0, 7, 6},
        {'C', 31, 3, 0, 15, 7},
    };
    check_published(CLCONV_UNIT_MMA_M16N8K16, figures,
                    sizeof figures / sizeof *figures);
}

Test(unit, mma_m16n8k8_is_as_published)
{
    static const published figures[] = {
        {'A', 0, 0, 0, 0, 0},   {'A', 0, 1, 0, 8, 0},   {'A', 5, 0, 1, 1, 3},
        {'A', 5, 1, 0, 9, 2},   {'A', 31, 1, 1, 15, 7}, {'A', 18, 0, 0, 4, 4},
        {'B', 0, 0, 1, 1, 0},   {'B', 5, 0, 0, 2, 1},   {'B', 31, 0, 1, 7, 7},
        {'C', 0, 1, 0, 0, 1},   {'C', 0, 2, 0, 8, 0},   {'C', 5, 3, 0, 9, 3},
        {'C', 31, 3, 0, 15, 7},
    };
    check_published(CLCONV_UNIT_MMA_M16N8K8, figures,
                    sizeof figures / sizeof *figures);
}

Test(unit, a_block_is_whole_fragments_for_every_warp)
{
    clconv_unit_block b = {
        .unit = clconv_unit_get(CLCONV_UNIT_MMA_M16N8K16),
        .warps = 4,
        .rows = 32,
        .columns = 16,
        .terms = 16,
    };
    cr_assert(clconv_unit_fits(&b));
    b.rows = 24;
    cr_assert_not(clconv_unit_fits(&b));
    b.rows = 32, b.columns = 24;
    cr_assert_not(clconv_unit_fits(&b));
    b.columns = 16, b.terms = 24;
    cr_assert_not(clconv_unit_fits(&b));
}

static bool covers(const char *kernel, const clconv_device *d)
{
    clconv_desc desc;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse("n2c8h9w9k8r3s3p1", &desc), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK);
    return clconv_kernel_find(kernel, strlen(kernel))->covers(&p, d);
}

Test(unit, kernels_ask_for_the_unit_and_for_an_instruction_set_that_has_it)
{
    static const char *const kernels[] = {"bwd_data_mma", "bwd_weight_mma"};
    for (int i = 0; i < 2; ++i) {
        clconv_device d;
        clconv_device_preset("sm_75", &d);
        cr_assert(covers(kernels[i], &d));
        d.nv_sm = 70;
        cr_assert_not(covers(kernels[i], &d));
        clconv_device_preset("sm_80", &d);
        cr_assert(covers(kernels[i], &d));
        d.nv_sm = 75;
        cr_assert_not(covers(kernels[i], &d));
        d.unit_emulated = true;
        cr_assert(covers(kernels[i], &d));
        d.units = CLCONV_BIT(CLCONV_UNIT_WGMMA);
        cr_assert_not(covers(kernels[i], &d));
    }
}

/* What the planner chooses for both gradients on a device. */
static clconv_steps plan_for(const char *problem, const clconv_device *d)
{
    clconv_desc desc;
    clconv_problem p;
    clconv_steps steps;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK);
    clconv_request request = {.ops = CLCONV_OP_DW | CLCONV_OP_DX,
                              .max_workspace = SIZE_MAX};
    cr_assert_eq(clconv_planner_choose(&p, d, &request, &steps), CLCONV_OK,
                 "%s", clconv_last_error());
    return steps;
}

/* Steps on the unit. */
static int unit_steps(const clconv_steps *steps)
{
    int on_unit = 0;
    for (int i = 0; i < steps->count; ++i) {
        const char *name = steps->step[i].kernel->name;
        on_unit += strcmp(name, "bwd_data_mma") == 0;
        on_unit += strcmp(name, "bwd_weight_mma") == 0;
    }
    return on_unit;
}

/* An emulated unit is asked for and used; a device's own where it is the
 * cheapest. */
Test(unit, the_default_plan_uses_the_unit_in_mixed_math)
{
    static const char small[] = "n2c32h14w14k64r3s3p1_nhwc";

    clconv_device d;
    clconv_device_preset("cpu", &d);
    clconv_steps steps = plan_for(small, &d);
    cr_assert_eq(unit_steps(&steps), 0);
    clconv_device_emulate(&d, CLCONV_UNIT_MMA_M16N8K16);
    steps = plan_for(small, &d);
    cr_assert_eq(unit_steps(&steps), 2);
    clconv_device_preset("sm_80", &d);
    steps = plan_for(small, &d);
    cr_assert_geq(unit_steps(&steps), 1);
    steps = plan_for("n2c32h14w14k64r3s3p1_nhwc_fp32", &d);
    cr_assert_eq(unit_steps(&steps), 0);
}

/* The source of a kernel for one problem; free() it. */
static char *source_of(const char *kernel, const char *preset, bool emulated)
{
    const clconv_kernel *k = clconv_kernel_find(kernel, strlen(kernel));
    int values[CLCONV_MAX_PARAMS];
    clconv_desc desc;
    clconv_problem p;
    clconv_device d;
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_device_preset(preset, &d);
    cr_assert_eq(clconv_desc_parse("n2c8h9w9k8r3s3p1", &desc), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK);
    k->defaults(&p, &d, values);
    d.unit_emulated = emulated;
    clconv_task t = {.problem = &p, .device = &d, .values = values};
    t.copies = k->wants_copies(&t);
    char *source = clconv_kernel_source(k, &t, &why);
    cr_assert_not_null(source, "%s", why.data);
    return source;
}

/* Up to the loads of fragments the two texts are the same: an emulation tests
 * the very copies, places and facts that the unit is given. */
static void check_emulation(const char *kernel, const char *preset,
                            const char *instruction)
{
    char *native = source_of(kernel, preset, false);
    char *emulated = source_of(kernel, preset, true);
    cr_assert_not_null(strstr(native, instruction));
    cr_assert_null(strstr(emulated, "asm"));
    cr_assert_null(strstr(native, "exchange_a"));
    const char *start = "int a_row(";
    const char *end = "void load_a(";
    const char *n = strstr(native, start), *m = strstr(emulated, start);
    cr_assert_not_null(n);
    cr_assert_not_null(m);
    size_t length = (size_t)(strstr(n, end) - n);
    cr_assert_eq(strncmp(n, m, length), 0, "%s on %s", kernel, preset);
    free(native);
    free(emulated);
}

Test(unit, emulation_changes_loads_and_multiplication_alone)
{
    static const char *const kernels[] = {"bwd_data_mma", "bwd_weight_mma"};
    for (int i = 0; i < 2; ++i) {
        check_emulation(kernels[i], "sm_75", "mma.sync.aligned.m16n8k8");
        check_emulation(kernels[i], "sm_80", "mma.sync.aligned.m16n8k16");
        check_emulation(kernels[i], "sm_90", "mma.sync.aligned.m16n8k16");
    }
}
