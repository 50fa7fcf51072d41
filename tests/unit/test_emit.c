/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "parts.h"

static void expect(clconv_emit *e, const char *text)
{
    char *source = clconv_emit_take(e);
    cr_assert_not_null(source, "%s", clconv_emit_error(e));
    cr_assert_str_eq(source, text);
    free(source);
    clconv_emit_free(e);
}

static void expect_failure(clconv_emit *e, const char *word)
{
    cr_assert_null(clconv_emit_take(e));
    cr_assert_not_null(strstr(clconv_emit_error(e), word), "%s",
                       clconv_emit_error(e));
    clconv_emit_free(e);
}

Test(emit, indents_by_nesting)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_open(e, "if (a)");
    clconv_emit_line(e, "b();");
    clconv_emit_else(e);
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "c();");
    clconv_emit_close(e);
    clconv_emit_close(e);
    expect(e, "if (a) {\n"
              "    b();\n"
              "} else {\n"
              "    {\n"
              "        c();\n"
              "    }\n"
              "}\n");
}

Test(emit, fills_holes)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_set(e, "tile", 4);
    clconv_emit_set(e, "big", INT64_C(4294967296));
    clconv_emit_set_text(e, "type", "float16");
    clconv_emit_set_exp2(e, "scale", -10);
    clconv_emit_line(e, "$type acc[$tile] = {$scale * 100%};");
    clconv_emit_line(e, "vload_half${tile}x $$ $big");
    clconv_emit_set(e, "tile", 8);
    clconv_emit_line(e, "$tile");
    expect(e, "float16 acc[4] = {0x1p-10f * 100%};\n"
              "vload_half4x $ 4294967296L\n"
              "8\n");
}

Test(emit, unknown_hole_fails_at_take)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_set(e, "tile", 4);
    clconv_emit_line(e, "float acc[$tiel];");
    clconv_emit_line(e, "fine();");
    expect_failure(e, "$tiel");
}

Test(emit, a_hole_whose_name_another_begins_with_is_not_taken_for_it)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_set(e, "tile", 4);
    clconv_emit_line(e, "$tile_k");
    expect_failure(e, "$tile_k");
}

Test(emit, an_open_block_fails_at_take)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_open(e, "for (;;)");
    expect_failure(e, "open");
}

Test(emit, a_close_too_many_fails_at_take)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_close(e);
    expect_failure(e, "close");
}

Test(emit, preprocessor_lines_are_refused)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_line(e, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable");
    clconv_emit_line(e, "#if FAST");
    expect_failure(e, "#if FAST");
}

Test(emit, a_part_stands_once)
{
    cr_assert_gt(clconv_part_count, 0);
    clconv_emit *once = clconv_emit_new(), *twice = clconv_emit_new();
    clconv_emit_part(once, clconv_parts[0].name);
    clconv_emit_part(twice, clconv_parts[0].name);
    clconv_emit_part(twice, clconv_parts[0].name);
    char *source = clconv_emit_take(once);
    cr_assert_not_null(strstr(source, clconv_parts[0].text));
    expect(twice, source);
    free(source);
    clconv_emit_free(once);
}

Test(emit, an_unknown_part_fails_at_take)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_part(e, "no_such_part");
    expect_failure(e, "no_such_part");
}

Test(emit, the_first_failure_sticks)
{
    clconv_emit *e = clconv_emit_new();
    clconv_emit_line(e, "$first");
    clconv_emit_line(e, "$second");
    clconv_emit_set(e, "first", 1);
    expect_failure(e, "$first");
}
