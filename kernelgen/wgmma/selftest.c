/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "selftest.h"

#include "integers.h"
#include "products.h"
#include "ring.h"

#define ATTRIBUTE "__attribute__((reqd_work_group_size(128, 1, 1)))"

static char *take(clconv_emit *e)
{
    char *source = clconv_emit_take(e);
    clconv_emit_free(e);
    return source;
}

/* ---- A product ---------------------------------------------------------- */

#define MATRICES_BYTES (2 * 64 * 128)

static void emit_tiles(clconv_emit *e)
{
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes];");
    clconv_emit_line(e, "const int lane = (int)get_local_id(0);");
    clconv_emit_line(e, "const uint base = (shared_address(tiles) + "
                        "$matrices_at) & ~1023u;");
    clconv_emit_open(e, "for (int i = lane; i < 64 * 8; i += 128)");
    clconv_emit_line(e, "const uint at = swizzled(base + 16 * i, 128);");
    clconv_emit_line(e, "copy16(tiles, at, (__global const half *)a + 8 * i, "
                        "1);");
    clconv_emit_line(e, "copy16(tiles, at + 8192, (__global const half *)b + "
                        "8 * i, 1);");
    clconv_emit_close(e);
    clconv_emit_line(e, "copies_commit();");
    clconv_emit_line(e, "asm volatile(\"cp.async.wait_group 0;\" ::: "
                        "\"memory\");");
    clconv_emit_line(e, "publish();");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

static void emit_product(clconv_emit *e, const clconv_products *p)
{
    clconv_products_emit_parts(e, p);
    clconv_products_emit_functions(e, p);
    clconv_emit_line(e, "__kernel " ATTRIBUTE);
    clconv_emit_line(e, "void wgmma_selftest(__global const ushort *a,");
    clconv_emit_open(e, "    __global const ushort *b, __global float *d)");
    emit_tiles(e);
    clconv_emit_line(e, "float sum[32];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int reg = 0; reg < 32; ++reg)");
    clconv_emit_line(e, "    sum[reg] = 0.0f;");
    clconv_emit_line(e, "hold(sum);");
    clconv_emit_line(e, "products_begin();");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int k = 0; k < 4; ++k)");
    clconv_emit_line(
        e, "    product(tiles, sum, matrix_at(base, 128, 16) + 2 * k, "
           "matrix_at(base + 8192, 128, 8192) + 128 * k, lane);");
    clconv_emit_line(e, "products_end();");
    clconv_emit_line(e, "hold(sum);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int reg = 0; reg < 32; ++reg)");
    clconv_emit_line(e, "    d[64 * d_row(lane, reg, 0) + d_column(lane, reg, "
                        "0)] = sum[reg];");
    clconv_emit_close(e);
}

char *clconv_wgmma_selftest_source(size_t local_memory)
{
    const clconv_products p = {.n = 64, .a_along_k = true};
    clconv_emit *e = clconv_emit_new();
    if (!e)
        return NULL;
    clconv_emit_set(e, "tile_bytes", (int64_t)local_memory);
    clconv_emit_set(e, "matrices_at", (int64_t)local_memory - MATRICES_BYTES);
    emit_product(e, &p);
    return take(e);
}

/* ---- Loads -------------------------------------------------------------- */

/* Lines of box[0] channels. */
static int lines_of(const clconv_tensor_map *m)
{
    return m->im2col ? m->box[1] : m->box[1] * m->box[2] * m->box[3];
}

int clconv_selftest_load_halves(const clconv_selftest_load *load)
{
    return lines_of(load->map) * load->map->box[0];
}

static int64_t load_bytes(const clconv_selftest_load *load)
{
    return 2 * (int64_t)clconv_selftest_load_halves(load);
}

/* Of the tiles, where what the second load brings begins. */
static int64_t second_at(const clconv_selftest_load loads[2])
{
    return clconv_round_up(load_bytes(&loads[0]), CLCONV_RING_ALIGNMENT);
}

static void set_holes(clconv_emit *e, const clconv_selftest_load loads[2])
{
    int64_t end = second_at(loads) + load_bytes(&loads[1]);
    clconv_emit_set(e, "second_at", second_at(loads));
    clconv_emit_set(e, "loaded", load_bytes(&loads[0]) + load_bytes(&loads[1]));
    clconv_emit_set(e, "tile_bytes", end + CLCONV_RING_ALIGNMENT);
}

/* $column, $row, $image, $tap_column, $tap_row */
static void set_from(clconv_emit *e, const clconv_selftest_load *load)
{
    clconv_emit_set(e, "column", load->from[0]);
    clconv_emit_set(e, "row", load->from[1]);
    clconv_emit_set(e, "image", load->from[2]);
    clconv_emit_set(e, "tap_column", load->tap[0]);
    clconv_emit_set(e, "tap_row", load->tap[1]);
}

static void emit_loads(clconv_emit *e, const clconv_selftest_load loads[2])
{
    set_from(e, &loads[0]);
    clconv_emit_line(e, "load_tiled(tiles, base, tiled_source, full, (int4)(0, "
                        "$column, $row, $image), 0);");
    set_from(e, &loads[1]);
    clconv_emit_line(e, "load_im2col(tiles, base + $second_at, im2col_source, "
                        "full, (int4)(0, $column, $row, $image), "
                        "(int2)($tap_column, $tap_row), 0);");
}

/* The last line makes this a program for sm_90a (ptx.h), as the kernels are. */
static void emit_unit(clconv_emit *e, const clconv_selftest_load loads[2])
{
    clconv_emit_line(e, "__local ulong barriers[1];");
    clconv_emit_line(e, "const uint start = shared_address(tiles);");
    clconv_emit_line(e, "const uint base = (start + 1023) & ~1023u;");
    clconv_emit_line(e, "const uint full = shared_address(barriers);");
    clconv_emit_open(e, "if (item == 0)");
    clconv_emit_line(e, "barrier_init(full, 1);");
    clconv_emit_line(e, "publish();");
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (item == 0)");
    clconv_emit_line(e, "__global const ulong *tiled_source = "
                        "map_source(memory, &tiled_map, x);");
    clconv_emit_line(e, "__global const ulong *im2col_source = "
                        "map_source(memory + 16, &im2col_map, x);");
    clconv_emit_line(e, "barrier_expect(full, $loaded);");
    emit_loads(e, loads);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier_wait(full, 0);");
    clconv_emit_line(e, "products_begin();");
}

/* The halves of a load, whose lines are swizzled: from this byte on of the
 * tiles, and from this half on of out. */
static void emit_out(clconv_emit *e, const clconv_selftest_load *load,
                     int64_t from, int64_t to)
{
    clconv_emit_set(e, "halves", clconv_selftest_load_halves(load));
    clconv_emit_set(e, "from", from);
    clconv_emit_set(e, "to", to);
    clconv_emit_set(e, "line", load->map->swizzle);
    clconv_emit_line(e, "for (int i = item; i < $halves; i += 128)");
    clconv_emit_line(e, "    out[$to + i] = *(__local const ushort *)(tiles + "
                        "(swizzled(base + $from + 2 * i, $line) - start));");
}

static void emit_maps(clconv_emit *e, const clconv_selftest_load loads[2])
{
    clconv_emit_line(e, "__kernel " ATTRIBUTE);
    clconv_emit_line(e, "void maps_selftest(__global const half *x, __global "
                        "ulong *memory,");
    clconv_emit_open(e,
                     "    map_t tiled_map, map_t im2col_map, __global ushort "
                     "*out)");
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    emit_unit(e, loads);
    emit_out(e, &loads[0], 0, 0);
    emit_out(e, &loads[1], second_at(loads),
             clconv_selftest_load_halves(&loads[0]));
    clconv_emit_close(e);
}

char *clconv_maps_selftest_source(const clconv_selftest_load loads[2])
{
    const clconv_products p = {.n = 64};
    clconv_emit *e = clconv_emit_new();
    if (!e)
        return NULL;
    set_holes(e, loads);
    clconv_products_emit_parts(e, &p);
    emit_maps(e, loads);
    return take(e);
}
