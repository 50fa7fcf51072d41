/*
 * Emits, for any unit, how fragments are multiplied, all from its facts.
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

#include "fragments.h"

extern const clconv_unit clconv_unit_mma_m16n8k8, clconv_unit_mma_m16n8k16;

const clconv_unit *clconv_unit_get(clconv_unit_id id)
{
    switch (id) {
    case CLCONV_UNIT_MMA_M16N8K8: return &clconv_unit_mma_m16n8k8;
    case CLCONV_UNIT_MMA_M16N8K16: return &clconv_unit_mma_m16n8k16;
    default: return NULL;
    }
}

bool clconv_unit_fits(const clconv_unit_block *b)
{
    const clconv_unit *u = b->unit;
    return b->rows % CLCONV_FRAGMENT == 0 && b->columns % CLCONV_FRAGMENT == 0 &&
           b->terms % CLCONV_FRAGMENT == 0 && CLCONV_FRAGMENT % u->m == 0 &&
           CLCONV_FRAGMENT % u->n == 0 && CLCONV_FRAGMENT % u->k == 0;
}

/* Floats of a warp's exchange areas. */
static int exchange_a(const clconv_unit_block *b)
{
    return b->rows * CLCONV_FRAGMENT;
}

static int exchange_b(const clconv_unit_block *b)
{
    return b->columns * CLCONV_FRAGMENT;
}

size_t clconv_unit_local_bytes(const clconv_unit_block *b)
{
    if (!b->emulated)
        return 0;
    return (size_t)(b->warps * (exchange_a(b) + exchange_b(b))) * sizeof(float);
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
    clconv_emit_set(e, "m_tiles", b->rows / u->m);
    clconv_emit_set(e, "n_tiles", b->columns / u->n);
    clconv_emit_set(e, "k_tiles", CLCONV_FRAGMENT / u->k);
    clconv_emit_set(e, "b_fragments", b->columns / CLCONV_FRAGMENT);
    clconv_emit_set(e, "terms", b->terms);
    clconv_emit_set(e, "warps", b->warps);
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

/* The sum of a fragment's products, by halving a vector: what a CPU does fast, and
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

/* In the warpgroup: lane / 32 is the warp, registers go by tiles of columns. */
static void emit_sums(clconv_emit *e)
{
    clconv_emit_open(e, "int d_row(int lane, int reg, int part)");
    clconv_emit_line(e, "return lane / $lanes * $unit_m + c_row(lane % $lanes, "
                        "reg % $c_registers, part);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int d_column(int lane, int reg, int part)");
    clconv_emit_line(e, "return reg / $c_registers * $unit_n + c_column(lane % "
                        "$lanes, reg % $c_registers, part);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_unit_emit_functions(clconv_emit *e, const clconv_unit_block *b)
{
    const clconv_unit *u = b->unit;
    set_holes(e, b);
    clconv_emit_part(e, b->emulated ? "half_value" : u->native_part);
    if (b->emulated)
        emit_dot(e, CLCONV_FRAGMENT);
    clconv_emit_line(e, "/* Where the unit keeps its elements. */");
    clconv_unit_emit_fact(e, "a_row", &u->a_row);
    clconv_unit_emit_fact(e, "a_k", &u->a_k);
    clconv_unit_emit_fact(e, "b_k", &u->b_k);
    clconv_unit_emit_fact(e, "b_column", &u->b_column);
    clconv_unit_emit_fact(e, "c_row", &u->c_row);
    clconv_unit_emit_fact(e, "c_column", &u->c_column);
    emit_sums(e);
}

/* A small fixed loop. The unit's operands are registers, which no loop can
 * index; an emulation's stay an array, and its text short to compile. */
static void open_fixed(clconv_emit *e, bool emulated, const char *head)
{
    if (!emulated)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, head);
}

static void close_several(clconv_emit *e, int count)
{
    for (int i = 0; i < count; ++i)
        clconv_emit_close(e);
}

void clconv_unit_emit_start(clconv_emit *e, const clconv_unit_block *b)
{
    if (!b->emulated)
        return;
    set_holes(e, b);
    clconv_emit_line(e, "__local float exchange_a[$warps * $exchange_a];");
    clconv_emit_line(e, "__local float exchange_b[$warps * $exchange_b];");
    clconv_emit_line(e, "__local float *warp_a = exchange_a + item / $lanes * "
                        "$exchange_a;");
    clconv_emit_line(e, "__local float *warp_b = exchange_b + item / $lanes * "
                        "$exchange_b;");
}

/* a[i], b[j]: the fragments of this lane at step k of the stage. */
static void emit_fragments(clconv_emit *e, bool emulated)
{
    clconv_emit_line(e, "uint a[$m_tiles][4], b[$b_fragments][4];");
    open_fixed(e, emulated, "for (int i = 0; i < $m_tiles; ++i)");
    clconv_emit_line(e, "load_a(a[i], tiles, at, a_row0 + 64 * i, k, lane);");
    clconv_emit_close(e);
    open_fixed(e, emulated, "for (int j = 0; j < $b_fragments; ++j)");
    clconv_emit_line(e,
                     "load_b(b[j], tiles, at + $a_bytes, b_column0 + 16 * j, "
                     "k, lane);");
    clconv_emit_close(e);
}

/* One multiplication: a[i] + q * $a_registers and what follows are A, and so
 * on. */
static void open_products(clconv_emit *e, bool emulated)
{
    open_fixed(e, emulated, "for (int q = 0; q < $k_tiles; ++q)");
    open_fixed(e, emulated, "for (int i = 0; i < $m_tiles; ++i)");
    open_fixed(e, emulated, "for (int j = 0; j < $n_tiles; ++j)");
}

static void emit_native(clconv_emit *e)
{
    open_products(e, false);
    clconv_emit_line(e, "unit_multiply(sum[i] + j * $c_registers, a[i] + q * "
                        "$a_registers, b[j / 2] + j % 2 * 2 + q * "
                        "$b_registers);");
    close_several(e, 3);
}

/* Both exchange areas are [row or column][k] a warp. */
static void emit_exchange(clconv_emit *e)
{
    clconv_emit_line(e, "/* Each lane shows its fragments to its warp. */");
    clconv_emit_open(e, "for (int q = 0; q < $k_tiles; ++q)");
    clconv_emit_open(e, "for (int part = 0; part < 2; ++part)");
    clconv_emit_open(e, "for (int i = 0; i < $m_tiles; ++i)");
    clconv_emit_open(e, "for (int reg = 0; reg < $a_registers; ++reg)");
    clconv_emit_line(e, "warp_a[(i * $unit_m + a_row(lane % $lanes, reg, "
                        "part)) * 16 + q * $unit_k + a_k(lane % $lanes, reg, "
                        "part)] =");
    clconv_emit_line(e, "    half_value(a[i][q * $a_registers + reg] >> 16 * "
                        "part & 0xffff);");
    close_several(e, 2);
    clconv_emit_open(e, "for (int j = 0; j < $n_tiles; ++j)");
    clconv_emit_open(e, "for (int reg = 0; reg < $b_registers; ++reg)");
    clconv_emit_line(e, "warp_b[(j * $unit_n + b_column(lane % $lanes, reg, "
                        "part)) * 16 + q * $unit_k + b_k(lane % $lanes, reg, "
                        "part)] =");
    clconv_emit_line(e, "    half_value(b[j / 2][j % 2 * 2 + q * $b_registers "
                        "+ reg] >> 16 * part & 0xffff);");
    close_several(e, 4);
}

static void emit_products(clconv_emit *e)
{
    clconv_emit_line(e, "/* And sums the elements of C that are its own. */");
    clconv_emit_open(e, "for (int i = 0; i < $m_tiles; ++i)");
    clconv_emit_open(e, "for (int j = 0; j < $n_tiles; ++j)");
    clconv_emit_open(e, "for (int reg = 0; reg < $c_registers; ++reg)");
    clconv_emit_line(e, "__local const float *x = warp_a + (i * $unit_m + "
                        "c_row(lane % $lanes, reg, 0)) * 16;");
    clconv_emit_line(e, "__local const float *y = warp_b + (j * $unit_n + "
                        "c_column(lane % $lanes, reg, 0)) * 16;");
    clconv_emit_line(e, "sum[i][j * $c_registers + reg] += unit_dot(x, y);");
    close_several(e, 3);
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
    open_fixed(e, b->emulated, "for (int k = 0; k < $terms; k += 16)");
    emit_fragments(e, b->emulated);
    if (b->emulated)
        emit_emulation(e);
    else
        emit_native(e);
    clconv_emit_close(e);
}
