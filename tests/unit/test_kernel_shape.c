/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_shape.h"

static clconv_shape shape_with(bool baked, bool varying)
{
    clconv_shape s = {.baked = baked};
    clconv_shape_add(&s, "pitch", 29);
    if (varying)
        clconv_shape_add_varying(&s, "batch", 3);
    clconv_shape_add(&s, "tail", 7);
    return s;
}

static void expect_arg(const clconv_shape *s, clconv_arg_kind kind,
                       const int64_t *members, int count)
{
    clconv_pass pass = {0};
    clconv_shape_arg(s, &pass);
    cr_assert_eq(pass.arg_count, 1);
    cr_assert_eq(pass.args[0].kind, kind);
    cr_assert_eq(pass.shape_count, count);
    for (int i = 0; i < count; ++i)
        cr_assert_eq(pass.shape[i], members[i], "member %d", i);
}

/* The types and an entry point "f", its body empty. */
static char *text_of(const clconv_shape *s)
{
    const clconv_task task = {.baked = s->baked};
    clconv_pass pass = {.entry = "f"};
    clconv_emit *e = clconv_emit_new();
    clconv_shape_arg(s, &pass);
    clconv_shape_emit(e, s);
    clconv_shape_open(e, &task, &pass, s);
    clconv_emit_close(e);
    char *text = clconv_emit_take(e);
    cr_assert_not_null(text);
    clconv_emit_free(e);
    return text;
}

Test(kernel_shape, is_an_argument_whole)
{
    clconv_shape s = shape_with(false, true);
    expect_arg(&s, CLCONV_ARG_SHAPE, (int64_t[]){29, 3, 7}, 3);
    char *text = text_of(&s);
    cr_assert_str_eq(text, "typedef struct {\n"
                           "    long pitch;\n"
                           "    long batch;\n"
                           "    long tail;\n"
                           "} shape_t;\n"
                           "\n"
                           "__kernel\n"
                           "void f(\n"
                           "    shape_t shape) {\n"
                           "}\n");
    free(text);
}

Test(kernel_shape, baked_leaves_what_varies_an_argument)
{
    clconv_shape s = shape_with(true, true);
    expect_arg(&s, CLCONV_ARG_CALL, (int64_t[]){3}, 1);
    char *text = text_of(&s);
    cr_assert_str_eq(text, "typedef struct {\n"
                           "    long pitch;\n"
                           "    long batch;\n"
                           "    long tail;\n"
                           "} shape_t;\n"
                           "\n"
                           "typedef struct {\n"
                           "    long batch;\n"
                           "} call_t;\n"
                           "\n"
                           "__kernel\n"
                           "void f(\n"
                           "    call_t call) {\n"
                           "    const shape_t shape = {\n"
                           "        .pitch = 29,\n"
                           "        .batch = call.batch,\n"
                           "        .tail = 7,\n"
                           "    };\n"
                           "}\n");
    free(text);
}

Test(kernel_shape, fixed_members_are_constants_of_any_text)
{
    clconv_shape s = {.baked = false};
    clconv_shape_add(&s, "pitch", 29);
    clconv_shape_add_fixed(&s, "taps", 9);
    clconv_shape_add_varying(&s, "batch", 3);
    expect_arg(&s, CLCONV_ARG_CALL, (int64_t[]){29, 3}, 2);
    char *text = text_of(&s);
    cr_assert_not_null(strstr(text, "typedef struct {\n"
                                    "    long pitch;\n"
                                    "    long batch;\n"
                                    "} call_t;\n"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "        .pitch = call.pitch,\n"
                                    "        .taps = 9,\n"
                                    "        .batch = call.batch,\n"),
                       "%s", text);
    free(text);
    s.baked = true;
    expect_arg(&s, CLCONV_ARG_CALL, (int64_t[]){3}, 1);
}

Test(kernel_shape, baked_is_no_argument_if_nothing_varies)
{
    clconv_shape s = shape_with(true, false);
    clconv_pass pass = {0};
    clconv_shape_arg(&s, &pass);
    cr_assert_eq(pass.arg_count, 0);
    cr_assert_eq(pass.shape_count, 0);

    /* No entry point here: one needs an argument. */
    clconv_emit *e = clconv_emit_new();
    clconv_shape_emit(e, &s);
    char *text = clconv_emit_take(e);
    cr_assert_null(strstr(text, "call_t"), "%s", text);
    free(text);
    clconv_emit_free(e);
}
