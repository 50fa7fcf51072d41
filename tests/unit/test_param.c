/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "param.h"

enum { TILE, CAST, COUNT };

static const clconv_param params[COUNT] = {
    [TILE] = {"tile", CLCONV_VALUES(4, 8, 2), "channels a work-item"},
    [CAST] = {"cast", CLCONV_NAMES("separate", "fused"), "where"},
};

static bool parse(const char *text, int *values, clconv_text *why)
{
    return clconv_param_parse(params, COUNT, text, strlen(text), values, why);
}

Test(param, prints_in_the_order_of_the_table)
{
    int values[COUNT];
    clconv_param_first(params, COUNT, values);
    clconv_text out = CLCONV_TEXT_EMPTY;
    clconv_param_format(params, COUNT, values, &out);
    cr_assert_str_eq(out.data, "tile=4,cast=separate");
    clconv_text_free(&out);
}

Test(param, parses_one_assignment)
{
    int values[COUNT] = {4, 0};
    clconv_text why = CLCONV_TEXT_EMPTY;
    cr_assert(parse("tile=2", values, &why));
    cr_assert(parse("cast=fused", values, &why));
    cr_assert_eq(values[TILE], 2);
    cr_assert_eq(values[CAST], 1);
}

Test(param, a_wrong_name_or_value_lists_what_there_is)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"tiel=4", "no parameter \"tiel\"; there is tile, cast"},
        {"tile=5", "tile cannot be \"5\"; it is one of 4, 8, 2"},
        {"tile", "tile cannot be \"\"; it is one of 4, 8, 2"},
        {"tile=", "tile cannot be \"\""},
        {"cast=0", "cast cannot be \"0\"; it is one of separate, fused"},
        {"=", "no parameter \"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        int values[COUNT] = {4, 0};
        clconv_text why = CLCONV_TEXT_EMPTY;
        cr_assert_not(parse(cases[i].text, values, &why), "%s", cases[i].text);
        cr_assert_not_null(strstr(why.data, cases[i].message), "%s: %s",
                           cases[i].text, why.data);
        cr_assert(values[TILE] == 4 && values[CAST] == 0);
        clconv_text_free(&why);
    }
}

Test(param, enumerates_every_combination_once)
{
    int values[COUNT], seen[3][2] = {{0}}, count = 0;
    clconv_param_first(params, COUNT, values);
    do {
        int tile = values[TILE] == 4 ? 0 : values[TILE] == 8 ? 1 : 2;
        ++seen[tile][values[CAST]];
        ++count;
    } while (clconv_param_next(params, COUNT, values));
    cr_assert_eq(count, 6);
    for (int i = 0; i < 6; ++i)
        cr_assert_eq(seen[i / 2][i % 2], 1);
}

Test(param, fills_the_holes_of_the_emitter)
{
    int values[COUNT] = {8, 1};
    clconv_emit *e = clconv_emit_new();
    clconv_param_emit(params, COUNT, values, e);
    clconv_emit_line(e, "acc[$tile]; /* $cast */");
    char *source = clconv_emit_take(e);
    cr_assert_str_eq(source, "acc[8]; /* fused */\n");
    free(source);
    clconv_emit_free(e);
}
