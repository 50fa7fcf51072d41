/*
 * Emits, for any unit, how fragments are loaded from the tiles, multiplied
 * and walked, all from its facts.
 *
 * The emulation keeps the unit's division of labour: each lane puts the
 * fragments that it loaded into the warp's exchange area, as floats, at the
 * coordinates that the facts give; then each lane sums the elements of C that
 * are its own. So a wrong fact or a wrong load shows on any device. Products
 * of two halves are exact in fp32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit.h"

extern const clconv_unit clconv_unit_mma_m16n8k16;

const clconv_unit *clconv_unit_get(clconv_unit_id id)
{
    switch (id) {
    case CLCONV_UNIT_MMA_M16N8K16: return &clconv_unit_mma_m16n8k16;
    default: return NULL;
    }
}

bool clconv_unit_fits(const clconv_unit_block *b)
{
    const clconv_unit *u = b->unit;
    return b->tile_m % (b->warps * u->m) == 0 && b->tile_n % u->n == 0 &&
           b->tile_k % u->k == 0;
}

/* Floats of the exchange areas of all warps. */
static int exchange_a(const clconv_unit_block *b)
{
    return b->tile_m * b->unit->k;
}

static int exchange_b(const clconv_unit_block *b)
{
    return b->warps * b->tile_n * b->unit->k;
}

size_t clconv_unit_local_bytes(const clconv_unit_block *b)
{
    if (!b->emulated)
        return 0;
    return (size_t)(exchange_a(b) + exchange_b(b)) * sizeof(float);
}

static void set_holes(clconv_emit *e, const clconv_unit_block *b)
{
    const clconv_unit *u = b->unit;
    clconv_emit_set(e, "unit_m", u->m);
    clconv_emit_set(e, "unit_n", u->n);
    clconv_emit_set(e, "unit_k", u->k);
    clconv_emit_set(e, "lanes", u->lanes);
    clconv_emit_set(e, "a_registers", u->a_registers);
    clconv_emit_set(e, "b_registers", u->b_registers);
    clconv_emit_set(e, "c_registers", u->c_registers);
    clconv_emit_set(e, "m_tiles", b->tile_m / (b->warps * u->m));
    clconv_emit_set(e, "n_tiles", b->tile_n / u->n);
    clconv_emit_set(e, "tile_m", b->tile_m);
    clconv_emit_set(e, "tile_n", b->tile_n);
    clconv_emit_set(e, "tile_k", b->tile_k);
    clconv_emit_set(e, "warp_rows", b->tile_m / b->warps);
    clconv_emit_set(e, "pitch", b->pitch);
    clconv_emit_set(e, "exchange_a", exchange_a(b));
    clconv_emit_set(e, "exchange_b", exchange_b(b));
}

void clconv_unit_emit_fact(clconv_emit *e, const char *name,
                           const clconv_unit_fact *fact)
{
    clconv_emit_set_text(e, "fact", name);
    clconv_emit_set_text(e, "expression", fact->text);
    clconv_emit_open(e, "int $fact(int lane, int reg, int part)");
    clconv_emit_line(e, "return $expression;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The halves of a register are neighbours along k and lie at an even k, so
 * that one 32-bit read fetches both. */
static void emit_load(clconv_emit *e)
{
    clconv_emit_open(e, "uint load_pair(__local const ushort *tile, int row, "
                        "int k)");
    clconv_emit_line(e, "return as_uint(*(__local const ushort2 *)"
                        "(tile + row * $pitch + k));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The sum of unit_k products, by halving a vector: what a CPU does fast, and
 * about the order of a unit, which adds its products before the old sum. */
static void emit_dot(clconv_emit *e, int terms)
{
    clconv_emit_open(e, "float unit_dot(__local const float *x, "
                        "__local const float *y)");
    clconv_emit_set(e, "terms", terms);
    clconv_emit_line(e, "float$terms sum$terms = vload$terms(0, x) * "
                        "vload$terms(0, y);");
    for (; terms > 2; terms /= 2) {
        clconv_emit_set(e, "terms", terms);
        clconv_emit_set(e, "half_of", terms / 2);
        clconv_emit_line(e, "float$half_of sum$half_of = sum$terms.lo + "
                            "sum$terms.hi;");
    }
    clconv_emit_line(e, "return sum2.lo + sum2.hi;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_unit_emit_functions(clconv_emit *e, const clconv_unit_block *b)
{
    const clconv_unit *u = b->unit;
    set_holes(e, b);
    clconv_emit_part(e, b->emulated ? "half_value" : u->native_part);
    if (b->emulated)
        emit_dot(e, u->k);
    clconv_emit_line(e, "/* Where the unit keeps its elements. */");
    clconv_unit_emit_fact(e, "a_row", &u->a_row);
    clconv_unit_emit_fact(e, "a_k", &u->a_k);
    clconv_unit_emit_fact(e, "b_k", &u->b_k);
    clconv_unit_emit_fact(e, "b_column", &u->b_column);
    clconv_unit_emit_fact(e, "c_row", &u->c_row);
    clconv_unit_emit_fact(e, "c_column", &u->c_column);
    emit_load(e);
}

/* A small fixed loop. The unit's operands are registers, which no loop can
 * index; an emulation's stay an array, and its text short to compile. */
static void open_fixed(clconv_emit *e, bool emulated, const char *head)
{
    if (!emulated)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, head);
}

static void open_accumulators(clconv_emit *e, bool emulated)
{
    open_fixed(e, emulated, "for (int i = 0; i < $m_tiles; ++i)");
    open_fixed(e, emulated, "for (int j = 0; j < $n_tiles; ++j)");
    open_fixed(e, emulated, "for (int reg = 0; reg < $c_registers; ++reg)");
}

static void close_three(clconv_emit *e)
{
    for (int i = 0; i < 3; ++i)
        clconv_emit_close(e);
}

void clconv_unit_emit_start(clconv_emit *e, const clconv_unit_block *b)
{
    set_holes(e, b);
    if (b->emulated) {
        clconv_emit_line(e, "__local float exchange_a[$exchange_a];");
        clconv_emit_line(e, "__local float exchange_b[$exchange_b];");
    }
    clconv_emit_line(e, "int lane = item % $lanes;");
    clconv_emit_line(e, "int warp = item / $lanes;");
    clconv_emit_line(e, "float acc[$m_tiles][$n_tiles][$c_registers];");
    open_accumulators(e, b->emulated);
    clconv_emit_line(e, "acc[i][j][reg] = 0.0f;");
    close_three(e);
}

/* a[i], b[j]: the fragments of this lane at step k of the tiles. */
static void emit_fragments(clconv_emit *e, bool emulated)
{
    clconv_emit_line(e, "uint a[$m_tiles][$a_registers];");
    clconv_emit_line(e, "uint b[$n_tiles][$b_registers];");
    open_fixed(e, emulated, "for (int i = 0; i < $m_tiles; ++i)");
    open_fixed(e, emulated, "for (int reg = 0; reg < $a_registers; ++reg)");
    clconv_emit_line(e, "a[i][reg] = load_pair(tile_a, warp * $warp_rows + "
                        "i * $unit_m +");
    clconv_emit_line(e, "    a_row(lane, reg, 0), k + a_k(lane, reg, 0));");
    clconv_emit_close(e);
    clconv_emit_close(e);
    open_fixed(e, emulated, "for (int j = 0; j < $n_tiles; ++j)");
    open_fixed(e, emulated, "for (int reg = 0; reg < $b_registers; ++reg)");
    clconv_emit_line(e, "b[j][reg] = load_pair(tile_b, j * $unit_n +");
    clconv_emit_line(e, "    b_column(lane, reg, 0), k + b_k(lane, reg, 0));");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_native(clconv_emit *e)
{
    open_fixed(e, false, "for (int i = 0; i < $m_tiles; ++i)");
    open_fixed(e, false, "for (int j = 0; j < $n_tiles; ++j)");
    clconv_emit_line(e, "unit_multiply(acc[i][j], a[i], b[j]);");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* Both exchange areas are [row or column][k] a warp. */
static void emit_exchange(clconv_emit *e)
{
    clconv_emit_line(e, "/* Each lane shows its fragments to its warp. */");
    clconv_emit_line(e, "__local float *warp_a = exchange_a + "
                        "warp * $warp_rows * $unit_k;");
    clconv_emit_line(e, "__local float *warp_b = exchange_b + "
                        "warp * $tile_n * $unit_k;");
    clconv_emit_open(e, "for (int i = 0; i < $m_tiles; ++i)");
    clconv_emit_open(e, "for (int reg = 0; reg < $a_registers; ++reg)");
    clconv_emit_open(e, "for (int part = 0; part < 2; ++part)");
    clconv_emit_line(e, "warp_a[(i * $unit_m + a_row(lane, reg, part)) * "
                        "$unit_k + a_k(lane, reg, part)] =");
    clconv_emit_line(e, "    half_value(a[i][reg] >> 16 * part & 0xffff);");
    close_three(e);
    clconv_emit_open(e, "for (int j = 0; j < $n_tiles; ++j)");
    clconv_emit_open(e, "for (int reg = 0; reg < $b_registers; ++reg)");
    clconv_emit_open(e, "for (int part = 0; part < 2; ++part)");
    clconv_emit_line(e, "warp_b[(j * $unit_n + b_column(lane, reg, part)) * "
                        "$unit_k + b_k(lane, reg, part)] =");
    clconv_emit_line(e, "    half_value(b[j][reg] >> 16 * part & 0xffff);");
    close_three(e);
}

static void emit_products(clconv_emit *e)
{
    clconv_emit_line(e, "/* And sums the elements of C that are its own. */");
    clconv_emit_open(e, "for (int i = 0; i < $m_tiles; ++i)");
    clconv_emit_open(e, "for (int j = 0; j < $n_tiles; ++j)");
    clconv_emit_open(e, "for (int reg = 0; reg < $c_registers; ++reg)");
    clconv_emit_line(e, "__local const float *x = warp_a + (i * $unit_m + "
                        "c_row(lane, reg, 0)) * $unit_k;");
    clconv_emit_line(e, "__local const float *y = warp_b + (j * $unit_n + "
                        "c_column(lane, reg, 0)) * $unit_k;");
    clconv_emit_line(e, "acc[i][j][reg] += unit_dot(x, y);");
    close_three(e);
}

static void emit_emulation(clconv_emit *e)
{
    emit_exchange(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    emit_products(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

void clconv_unit_emit_multiply(clconv_emit *e, const clconv_unit_block *b)
{
    set_holes(e, b);
    open_fixed(e, b->emulated, "for (int k = 0; k < $tile_k; k += $unit_k)");
    emit_fragments(e, b->emulated);
    if (b->emulated)
        emit_emulation(e);
    else
        emit_native(e);
    clconv_emit_close(e);
}

void clconv_unit_open_walk(clconv_emit *e, const clconv_unit_block *b)
{
    set_holes(e, b);
    open_accumulators(e, b->emulated);
    clconv_emit_line(e, "int m = warp * $warp_rows + i * $unit_m + "
                        "c_row(lane, reg, 0);");
    clconv_emit_line(e, "int n = j * $unit_n + c_column(lane, reg, 0);");
    clconv_emit_line(e, "float value = acc[i][j][reg];");
}

void clconv_unit_close_walk(clconv_emit *e)
{
    close_three(e);
}
