/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

#define HEADER                                                                 \
    "name,N,C,H,W,K,R,S,stride_h,stride_w,pad_top,pad_bottom,pad_left,"        \
    "pad_right,dilation_h,dilation_w,groups\n"

static case_list parse(const char *text)
{
    char error[CASES_ERROR_SIZE] = "";
    case_list list = {NULL, 0};

    cr_assert(cases_parse("a.csv", text, &list, error), "%s", error);
    return list;
}

static void assert_error(const char *text, const char *expected)
{
    char error[CASES_ERROR_SIZE] = "";
    case_list list = {NULL, 77};

    cr_assert_not(cases_parse("a.csv", text, &list, error), "accepted: %s",
                  text);
    cr_assert_str_eq(error, expected);
    cr_assert_eq(list.count, 77, "the output was touched");
}

Test(cases, reads_every_column)
{
    case_list list =
        parse(HEADER "net:a*3,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n");
    const clconv_desc *d = &list.items[0].desc;

    cr_assert_eq(list.count, 1);
    cr_assert_str_eq(list.items[0].name, "net:a*3");
    cr_assert_eq(d->n, 1);
    cr_assert_eq(d->c, 2);
    cr_assert_eq(d->h, 3);
    cr_assert_eq(d->w, 4);
    cr_assert_eq(d->k, 5);
    cr_assert_eq(d->r, 6);
    cr_assert_eq(d->s, 7);
    cr_assert_eq(d->stride_h, 8);
    cr_assert_eq(d->stride_w, 9);
    cr_assert_eq(d->pad_top, 10);
    cr_assert_eq(d->pad_bottom, 11);
    cr_assert_eq(d->pad_left, 12);
    cr_assert_eq(d->pad_right, 13);
    cr_assert_eq(d->dilation_h, 14);
    cr_assert_eq(d->dilation_w, 15);
    cr_assert_eq(d->groups, 16);
    cr_assert_eq(d->scale_log2, CLCONV_SCALE_LOG2_DEFAULT);
    cases_free(&list);
}

Test(cases, takes_columns_in_any_order)
{
    case_list list =
        parse("groups,N,C,H,W,K,R,S,stride_h,stride_w,pad_top,pad_bottom,"
              "pad_left,pad_right,dilation_h,dilation_w,name\n"
              "2,1,4,3,3,4,1,1,1,1,0,0,0,0,1,1,last\n");

    cr_assert_eq(list.items[0].desc.groups, 2);
    cr_assert_str_eq(list.items[0].name, "last");
    cases_free(&list);
}

Test(cases, takes_other_line_ends_blank_lines_and_no_last_newline)
{
    case_list list = parse("name,N,C,H,W,K,R,S,stride_h,stride_w,pad_top,"
                           "pad_bottom,pad_left,pad_right,dilation_h,"
                           "dilation_w,groups\r\n"
                           "a,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\r\n"
                           "\r\n\n"
                           "b,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1");

    cr_assert_eq(list.count, 2);
    cr_assert_str_eq(list.items[1].name, "b");
    cr_assert_eq(list.items[1].desc.groups, 1);
    cases_free(&list);
}

Test(cases, refuses_headers_with_the_place)
{
    assert_error("name,N,C,H,W,K,R,S,stride_h\n",
                 "a.csv:1:28: column \"stride_w\" is missing");
    assert_error("name,N,Q\n", "a.csv:1:8: unknown column \"Q\"");
    assert_error("name,N,N\n", "a.csv:1:8: column \"N\" stands twice");
    assert_error("name, N\n", "a.csv:1:6: unknown column \" N\"");
    assert_error("name,,N\n", "a.csv:1:6: unknown column \"\"");
    assert_error("", "a.csv:1:1: the first line must name the columns");
    assert_error("\r\n" HEADER,
                 "a.csv:1:1: the first line must name the columns");
    assert_error("\xEF\xBB\xBFname,Q\n", "a.csv:1:6: unknown column \"Q\"");
}

Test(cases, refuses_numbers_with_the_place)
{
    assert_error(HEADER "a,1,x,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: \"x\" is not a whole number");
    assert_error(HEADER "a,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n"
                        "\n"
                        "b,1,1,1,1,1,1,1,1,1,-1,0,0,0,1,1,1\n",
                 "a.csv:4:21: pad_top: \"-1\" is not a whole number");
    assert_error(HEADER "a,1,1.5,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: \"1.5\" is not a whole number");
    assert_error(HEADER "a,1, 1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: \" 1\" is not a whole number");
    assert_error(HEADER "a,1,,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: \"\" is not a whole number");
    assert_error(HEADER "a,1,0,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: 0 is not in 1 to 1000000000");
    assert_error(HEADER "a,1,1000000001,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: 1000000001 is not in 1 to 1000000000");
    assert_error(HEADER
                 "a,1,18446744073709551617,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:5: C: 18446744073709551617 is not in 1 to "
                 "1000000000");
    assert_error(HEADER "a,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1x\n",
                 "a.csv:2:33: groups: \"1x\" is not a whole number");
}

Test(cases, refuses_rows_with_the_place)
{
    assert_error(HEADER "a,1,1,1\n",
                 "a.csv:2:8: a row has 17 fields, this one has 4");
    assert_error(HEADER "a,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1,9\n",
                 "a.csv:2:34: a row has 17 fields, this one has more");
    assert_error(HEADER ",1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:1: the name is empty");
    assert_error(HEADER "\"a\",1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n",
                 "a.csv:2:1: quotes are not supported");
    assert_error(HEADER "\n", "a.csv:3:1: there are no rows");
}

Test(cases, says_which_file_cannot_be_read)
{
    char error[CASES_ERROR_SIZE] = "";
    case_list list = {NULL, 0};

    cr_assert_not(cases_read("/does/not/exist.csv", &list, error));
    cr_assert_str_eq(error, "/does/not/exist.csv: No such file or directory");
    cr_assert_not(cases_read("/", &list, error));
    cr_assert_str_eq(error, "/: Is a directory");
    cr_assert_not(cases_read("/dev/null", &list, error));
    cr_assert_str_eq(error,
                     "/dev/null:1:1: the first line must name the columns");
}

Test(cases, skips_the_mark_in_front_of_utf_8)
{
    case_list list =
        parse("\xEF\xBB\xBF" HEADER "a,1,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n");

    cr_assert_eq(list.count, 1);
    cases_free(&list);
}

Test(cases, adds_a_row)
{
    case_list list = {NULL, 0};
    clconv_desc desc;

    clconv_desc_init(&desc);
    desc.c = 5;
    cr_assert(cases_add(&list, "mine", &desc));
    cr_assert_eq(list.count, 1);
    cr_assert_str_eq(list.items[0].name, "mine");
    cr_assert_eq(list.items[0].desc.c, 5);
    cases_free(&list);
    cr_assert_eq(list.count, 0);
}

Test(cases, prints_what_it_reads)
{
    const char *text = HEADER "a,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"
                              "b,0,1,1,1,1,1,1,1,1,0,0,0,0,1,1,1\n";
    case_list list = parse(text);
    char printed[1024] = "";
    FILE *to = fmemopen(printed, sizeof(printed), "w");

    cr_assert_not_null(to);
    cases_print(to, &list);
    fclose(to);
    cr_assert_str_eq(printed, text);
    cases_free(&list);
}
