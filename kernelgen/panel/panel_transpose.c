/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_transpose.h"

#define LANES 16

/*
 * Seen as 256 elements one behind the other, a stage moves the element at i
 * to the place that i's eight bits, rotated by one, name: after four, rows
 * and columns have changed places. Each line is one permutation of two
 * vectors. Values have names: of arrays compilers keep some in memory.
 */
static void emit_stage(clconv_emit *e, char from, char to)
{
    clconv_emit_set_text(e, "from", (char[]){from, '\0'});
    clconv_emit_set_text(e, "to", (char[]){to, '\0'});
    for (int i = 0; i < LANES / 2; ++i) {
        clconv_emit_set(e, "row", i);
        clconv_emit_set(e, "other_row", i + LANES / 2);
        clconv_emit_set(e, "first", 2 * i);
        clconv_emit_set(e, "second", 2 * i + 1);
        clconv_emit_line(e, "const float16 $to$row = (float16)($from$first"
                            ".even, $from$second.even);");
        clconv_emit_line(e, "const float16 $to$other_row = (float16)"
                            "($from$first.odd, $from$second.odd);");
    }
}

void clconv_panel_emit_transpose(clconv_emit *e, const char *name,
                                 const char *type, const char *load)
{
    clconv_emit_set_text(e, "name", name);
    clconv_emit_set_text(e, "from_type", type);
    clconv_emit_set_text(e, "load", load);
    clconv_emit_open(e, "static void $name($from_type *from, long from_step, "
                        "float *to, int to_step)");
    for (int row = 0; row < LANES; ++row) {
        clconv_emit_set(e, "row", row);
        clconv_emit_line(e, "const float16 a$row = ${load}from + $row * "
                            "from_step);");
    }
    for (char stage = 'a'; stage < 'e'; ++stage)
        emit_stage(e, stage, (char)(stage + 1));
    for (int row = 0; row < LANES; ++row) {
        clconv_emit_set(e, "row", row);
        clconv_emit_line(e, "vstore16($to$row, 0, to + $row * to_step);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
