/*
 * Values of options: what is taken, what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>

#include "args.h"
#include "message.h"

TestSuite(args, .init = cr_redirect_stderr);

Test(args, integers_are_whole_and_in_range)
{
    static const char *const refused[] = {"",
                                          " 1",
                                          "1 ",
                                          "+1",
                                          "1x",
                                          "1.0",
                                          "0x1",
                                          "9",
                                          "-3",
                                          "1,1",
                                          "99999999999999999999"};
    int64_t value = 77;

    cr_assert(args_integer("--k", "-2", -2, 8, &value));
    cr_assert_eq(value, -2);
    cr_assert(args_integer("--k", "8", -2, 8, &value));
    cr_assert_eq(value, 8);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
        cr_assert_not(args_integer("--k", refused[i], -2, 8, &value), "\"%s\"",
                      refused[i]);
        cr_assert_eq(value, 8, "\"%s\"", refused[i]);
    }
}

Test(args, reals_are_finite_and_in_range)
{
    double value = 77;

    cr_assert(args_real("--x", "2.5e-1", 0, 1, &value));
    cr_assert_eq(value, 0.25);
    cr_assert_not(args_real("--x", "nan", 0, 1, &value));
    cr_assert_not(args_real("--x", "1e999", 0, (double)INFINITY, &value));
    cr_assert_not(args_real("--x", "1.5", 0, 1, &value));
    cr_assert_not(args_real("--x", "0.5m", 0, 1, &value));
    cr_assert_not(args_real("--x", "", 0, 1, &value));
    cr_assert_eq(value, 0.25);
}

Test(args, one_number_stands_for_a_pair)
{
    int64_t pair[2];

    cr_assert(args_pair("--stride", "2", 1, 9, pair));
    cr_assert(pair[0] == 2 && pair[1] == 2);
    cr_assert(args_pair("--stride", "2,1", 1, 9, pair));
    cr_assert(pair[0] == 2 && pair[1] == 1);
    cr_assert_not(args_pair("--stride", "2,", 1, 9, pair));
    cr_assert_not(args_pair("--stride", ",2", 1, 9, pair));
    cr_assert_not(args_pair("--stride", "1,2,3", 1, 9, pair));
    cr_assert_not(args_pair("--stride", "1,0", 1, 9, pair));
}

static void assert_sides(const char *text, int64_t top, int64_t bottom,
                         int64_t left, int64_t right)
{
    int64_t sides[4];

    cr_assert(args_sides("--pad", text, 0, 9, sides), "%s", text);
    cr_assert(sides[0] == top && sides[1] == bottom && sides[2] == left &&
                  sides[3] == right,
              "%s", text);
}

Test(args, one_or_two_numbers_stand_for_four_sides)
{
    int64_t sides[4];

    assert_sides("1", 1, 1, 1, 1);
    assert_sides("1,2", 1, 1, 2, 2);
    assert_sides("1,2,3,4", 1, 2, 3, 4);
    cr_assert_not(args_sides("--pad", "1,2,3", 0, 9, sides));
    cr_assert_not(args_sides("--pad", "1,2,3,4,5", 0, 9, sides));
    cr_assert_not(args_sides("--pad", "-1", 0, 9, sides));
}

Test(args, lists_have_a_length)
{
    int64_t list[3];
    size_t count = 77;

    cr_assert(args_list("--sizes", "28,56", 1, 99, 3, list, &count));
    cr_assert(count == 2 && list[0] == 28 && list[1] == 56);
    cr_assert_not(args_list("--sizes", "1,2,3,4", 1, 99, 3, list, &count));
    cr_assert_not(args_list("--sizes", "", 1, 99, 3, list, &count));
    cr_assert_eq(count, 2);
}

Test(args, choices_are_exact)
{
    static const char *const names[] = {"nchw", "nhwc", NULL};
    int choice = 77;

    cr_assert(args_choice("--layout", "nhwc", names, &choice));
    cr_assert_eq(choice, 1);
    cr_assert_not(args_choice("--layout", "nhw", names, &choice));
    cr_assert_not(args_choice("--layout", "NCHW", names, &choice));
    cr_assert_eq(choice, 1);
}

Test(args, messages_name_program_option_value_and_range)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    int64_t value;
    int choice;

    message_program("tool");
    args_integer("--groups", "zero", 1, 64, &value);
    args_choice("--math", "d", names, &choice);
    message_error("two\nlines");
    fflush(stderr);
    cr_assert_stderr_eq_str(
        "tool: --groups zero: must be a whole number from 1 to 64\n"
        "tool: --math d: must be a, b or c\n"
        "tool: two lines\n");
}
