/*
 * Halves of vectors, spelled for oclgrind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "shuffles.h"

static void expect(const char *source, const char *spelled)
{
    char *text = shuffles_spell(source);
    cr_assert_str_eq(text, spelled, "%s", source);
    free(text);
}

Test(shuffles, a_sum_of_halves_names_each_element)
{
    expect("{\n    const float8 a = v.lo + v.hi;\n}\n",
           "{\n    const float8 a = (float8)("
           "v.s0 + v.s8, v.s1 + v.s9, v.s2 + v.sa, v.s3 + v.sb, "
           "v.s4 + v.sc, v.s5 + v.sd, v.s6 + v.se, v.s7 + v.sf);\n}\n");
}

Test(shuffles, a_pair_of_halves_names_each_element)
{
    expect("f((float16)(rows[0].even, b.odd));",
           "f((float16)(rows[0].s0, rows[0].s2, rows[0].s4, rows[0].s6, "
           "rows[0].s8, rows[0].sa, rows[0].sc, rows[0].se, "
           "b.s1, b.s3, b.s5, b.s7, b.s9, b.sb, b.sd, b.sf));");
}

Test(shuffles, the_rest_of_a_text_stays_as_it_is)
{
    expect("", "");
    expect("float2 two = v.lo + v.hi;\nint8 e = v.lo + w.hi;\n"
           "(float8)(a.even, b.even)",
           "float2 two = v.lo + v.hi;\nint8 e = v.lo + w.hi;\n"
           "(float8)(a.even, b.even)");
}

Test(shuffles, each_of_a_text_is_spelled)
{
    char *text = shuffles_spell("(float16)(a.odd, b.odd)(float16)(c.odd, d.odd)"
                                "int8 x = v.lo + v.hi;int8 y = w.lo + w.hi;");
    cr_assert_null(strstr(text, "odd"));
    cr_assert_null(strstr(text, ".lo"));
    free(text);
}
