/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "nest.h"

/* A filter with its holes is no larger than the padded image. */
bool clconv_nest_covers(const clconv_problem *p)
{
    int64_t height = p->h + p->pad_top + p->pad_bottom;
    int64_t width = p->w + p->pad_left + p->pad_right;
    return height < CLCONV_NEST_LIMIT && width < CLCONV_NEST_LIMIT;
}

void clconv_nest_open_function(clconv_emit *e, const char *head)
{
    clconv_emit_line(e, "__attribute__((always_inline))");
    clconv_emit_open(e, head);
}

void clconv_nest_emit_at(clconv_emit *e, const clconv_nest_operand *o)
{
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_set_text(e, "limit_y", o->limit_y);
    clconv_emit_set_text(e, "limit_x", o->limit_x);
    clconv_emit_open(e, "long ${operand}_at(const block_t *b, "
                        "const sizes_t *sizes, int row, int k)");
    clconv_emit_line(e, "spot_t r = ${operand}_row(b, sizes, row);");
    clconv_emit_line(e, "spot_t t = ${operand}_term(b, sizes, k);");
    clconv_emit_line(e, "return spot_inside(r, t, $limit_y, $limit_x) ? "
                        "spot_index(r, t) : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
