/*
 * A work-item's registers of D are an array with constant indices, which the
 * compiler keeps in registers: in text it is one operand of the instruction
 * each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "products.h"

#include <stdio.h>

#include "copies.h"

CLCONV_UNIT_DEFINE_FACT(d_row,
                        16 * (lane / 32) + lane % 32 / 4 + 8 * (reg / 2 % 2));
CLCONV_UNIT_DEFINE_FACT(d_column, 8 * (reg / 4) + 2 * (lane % 4) + reg % 2);

const clconv_unit_fact clconv_wgmma_row = CLCONV_UNIT_FACT(d_row);
const clconv_unit_fact clconv_wgmma_column = CLCONV_UNIT_FACT(d_column);

int clconv_products_registers(const clconv_products *p)
{
    return p->n / 2;
}

/* ---- The instruction -------------------------------------------------- */

/* Operands on a line of text. */
#define OPERANDS 4

/* Emits operands from first on, such as %0, %1, %2, %3 */
static void emit_operands(clconv_emit *e, const char *line, const char *format,
                          int first, const char *end)
{
    char list[96] = "";
    size_t length = 0;
    for (int i = first; i < first + OPERANDS; ++i)
        length += (size_t)snprintf(list + length, sizeof list - length, format,
                                   i, i + 1 < first + OPERANDS ? ", " : end);
    clconv_emit_set_text(e, "list", list);
    clconv_emit_line(e, line);
}

/* All of the registers, as text of the instruction. */
static void emit_registers(clconv_emit *e, int count)
{
    for (int i = 0; i < count; i += OPERANDS)
        emit_operands(e, "    \"$list\"", "%%%d%s", i,
                      i + OPERANDS < count ? ", " : "");
}

/* All of them, as operands that are read and written. */
static void emit_held(clconv_emit *e, int count)
{
    for (int i = 0; i < count; i += OPERANDS)
        emit_operands(e, i ? "      $list" : "    : $list", "\"+f\"(d[%d])%s",
                      i, i + OPERANDS < count ? "," : "");
}

static void set_operands(clconv_emit *e, const clconv_products *p)
{
    int count = clconv_products_registers(p);
    clconv_emit_set(e, "a_operand", count);
    clconv_emit_set(e, "b_operand", count + 1);
    clconv_emit_set(e, "product_n", p->n);
    clconv_emit_set(e, "a_transposed", !p->a_along_k);
    clconv_emit_set(e, "b_transposed", !p->b_along_k);
}

/* Arrays whose address leaves a function would be put in memory. */
#define INLINED "__attribute__((always_inline))"

static void open_product(clconv_emit *e, const clconv_products *p)
{
    clconv_emit_set_text(e, "products", p->name ? p->name : "");
    clconv_emit_line(e, INLINED);
    clconv_emit_open(e, "static void ${products}product(__local const uchar "
                        "*tiles, float *d, ulong a, ulong b, int lane)");
}

static void emit_native(clconv_emit *e, const clconv_products *p)
{
    set_operands(e, p);
    open_product(e, p);
    clconv_emit_line(e, "asm volatile(\"//@@{ .reg .pred add; setp.eq.u32 add, "
                        "0, 0; \"");
    clconv_emit_line(e, "    \"wgmma.mma_async.sync.aligned.m64n${product_n}"
                        "k16.f32.f16.f16 \"");
    clconv_emit_line(e, "    \"{\"");
    emit_registers(e, clconv_products_registers(p));
    clconv_emit_line(e, "    \"}, \"");
    clconv_emit_line(e, "    \"%$a_operand, %$b_operand, add, 1, 1, "
                        "$a_transposed, $b_transposed; }\"");
    emit_held(e, clconv_products_registers(p));
    clconv_emit_line(e, "    : \"l\"(a), \"l\"(b));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_line(e, INLINED);
    clconv_emit_open(e, "static void ${products}hold(float *d)");
    clconv_emit_line(e, "asm volatile(\"\"");
    emit_held(e, clconv_products_registers(p));
    clconv_emit_line(e, "    :: \"memory\");");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The emulation ---------------------------------------------------- */

static void emit_read(clconv_emit *e)
{
    clconv_emit_open(e, "static float tile_half(__local const uchar *tiles, "
                        "uint address)");
    clconv_emit_line(e, "return half_value(*(__local const ushort *)(tiles + "
                        "address));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Registers go by fours: two columns of two rows. */
static void emit_emulated(clconv_emit *e, const clconv_products *p)
{
    clconv_emit_set(e, "d_registers", clconv_products_registers(p));
    clconv_emit_set(e, "a_along_k", p->a_along_k);
    clconv_emit_set(e, "b_along_k", p->b_along_k);
    open_product(e, p);
    clconv_emit_open(e, "for (int k = 0; k < 16; ++k)");
    clconv_emit_line(e, "float x[2];");
    clconv_emit_line(e, "for (int i = 0; i < 2; ++i)");
    clconv_emit_line(e, "    x[i] = tile_half(tiles, matrix_half(a, $a_along_k,"
                        " d_row(lane, 2 * i, 0), k));");
    clconv_emit_open(e, "for (int reg = 0; reg < $d_registers; reg += 4)");
    clconv_emit_open(e, "for (int i = 0; i < 2; ++i)");
    clconv_emit_line(e, "float y = tile_half(tiles, matrix_half(b, $b_along_k, "
                        "d_column(lane, reg + i, 0), k));");
    clconv_emit_line(e, "d[reg + i] += x[0] * y;");
    clconv_emit_line(e, "d[reg + i + 2] += x[1] * y;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_products_emit_parts(clconv_emit *e, const clconv_products *p)
{
    clconv_copies_emit_parts(e, p->emulated, true);
    if (!p->emulated)
        clconv_emit_part(e, "halves2");
    clconv_emit_part(e, "wgmma_matrix");
    clconv_emit_part(e, p->emulated ? "wgmma_emulated" : "wgmma");
}

void clconv_products_emit_functions(clconv_emit *e, const clconv_products *p)
{
    clconv_emit_line(e, "/* Where a work-item's registers of D are. */");
    clconv_unit_emit_fact(e, "d_row", &clconv_wgmma_row);
    clconv_unit_emit_fact(e, "d_column", &clconv_wgmma_column);
    if (p->emulated) {
        clconv_emit_part(e, "half_value");
        emit_read(e);
    }
    clconv_products_emit_more(e, p);
}

void clconv_products_emit_more(clconv_emit *e, const clconv_products *p)
{
    if (p->emulated)
        emit_emulated(e, p);
    else
        emit_native(e, p);
}
