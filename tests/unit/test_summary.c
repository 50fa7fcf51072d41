/*
 * The example's table and closing sentences say what the numbers are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "summary.h"
#include "table.h"

#define SIZES 2

static size_result sizes[SIZES];

/* Harmless everywhere: nothing lost, everything right, 100 us a call. */
static void fill(void)
{
    const agreement right = {1, 0};

    for (size_t i = 0; i < SIZES; ++i) {
        sizes[i] =
            (size_result){.size = (size_t)28 << i, .images = 4, .loss = 1.5};
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            for (int m = 0; m < MODES; ++m)
                sizes[i].layer[l].mode[m] = (mode_result){
                    .lost = m == MODE_FP32 ? (double)NAN : 0,
                    .microseconds = 100,
                    .agreement = {right, right, right, 1, 0},
                };
        }
    }
}

TestSuite(summary, .init = fill);

static char *summary_text(void)
{
    static char text[4096];
    FILE *to = fmemopen(text, sizeof(text), "w");

    cr_assert_not_null(to);
    summary_print(to, sizes, SIZES);
    fclose(to);
    return text;
}

static void assert_says(const char *expected)
{
    const char *text = summary_text();

    cr_assert(strstr(text, expected), "\"%s\" is not in: %s", expected, text);
}

Test(summary, the_range_of_lost_shares_is_given_per_size)
{
    sizes[0].layer[3].mode[MODE_SCALE_1].lost = 0.255;
    for (size_t l = 0; l < NETWORK_CONVS; ++l)
        sizes[1].layer[l].mode[MODE_SCALE_1].lost = 0.5;
    sizes[1].layer[1].mode[MODE_SCALE_1].lost = 0.86;
    assert_says("0.0 to 25.5 % at 28 px and 50.0 to 86.0 % at 56 px.");
}

Test(summary, a_gradient_of_zeros_is_said_to_be_one)
{
    for (size_t l = 0; l < NETWORK_CONVS; ++l)
        sizes[0].layer[l].mode[MODE_SCALE_1].lost = (double)NAN;
    assert_says("nothing (it is all 0) at 28 px and 0.0 to 0.0 % at 56 px");
}

Test(summary, the_worst_dw_is_named_with_both_scales)
{
    mode_result *mode = sizes[1].layer[2].mode;

    sizes[0].layer[0].mode[MODE_SCALE_1].agreement.dw.cosine = 0.9;
    mode[MODE_SCALE_1].agreement.dw = (agreement){0.7612, 0.65};
    mode[MODE_SCALED].agreement.dw = (agreement){0.99991, 0.00025};
    assert_says("conv2.1 at 56 px, has a cosine of 0.7612");
    assert_says("error of 65.000 %");
    assert_says("gives 0.9999 and 0.025 %");
}

Test(summary, what_2_10_leaves_wrong_and_costs_is_said)
{
    sizes[0].layer[5].mode[MODE_SCALED].lost = 0.0213;
    sizes[1].layer[4].mode[MODE_SCALED].agreement.dx.cosine = 0.98;
    for (size_t i = 0; i < SIZES; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            sizes[i].layer[l].mode[MODE_SCALED].microseconds = 150;
            sizes[i].layer[l].mode[MODE_FP32].microseconds = 300;
        }
    }
    assert_says("lost at most 2.13 % of dY");
    assert_says("no cosine of dW or dX below 0.9800");
    assert_says("1.5 times as long as at scale 1");
    assert_says("0.5 times as long as in fp32");
}

Test(summary, the_table_has_three_lines_a_layer_within_110_columns)
{
    layer_result *layer = &sizes[0].layer[0];
    char text[2048] = {0};
    FILE *to = fmemopen(text, sizeof(text), "w");
    size_t lines = 0;

    cr_assert_not_null(to);
    layer->shape = (conv_shape){4, 128, 128, 7};
    layer->mode[MODE_SCALE_1].lost = 0.4321;
    table_print_size(to, 28, 4, 1.5);
    table_print_layer(to, "conv3.2", layer);
    fclose(to);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        cr_assert_leq(strlen(line), 110, "%s", line);
        ++lines;
        if (lines == 5)
            cr_assert(strstr(line, "fp16, 1 ") && strstr(line, "43.21 %"), "%s",
                      line);
    }
    cr_assert_eq(lines, 6);
}

/* The last line of the table's layer, whose db is of this relative size. */
static char *line_for_db(double db_size)
{
    static char text[2048];
    layer_result layer = sizes[0].layer[0];
    FILE *to = fmemopen(text, sizeof(text), "w");

    cr_assert_not_null(to);
    layer.mode[MODE_SCALED].agreement.db.cosine = 0.1234;
    layer.mode[MODE_SCALED].agreement.db_size = db_size;
    table_print_layer(to, "conv1.1", &layer);
    fclose(to);
    return text;
}

Test(summary, a_db_that_cancels_has_no_cosine)
{
    cr_assert_not(strstr(line_for_db(1e-8), "0.1234"));
    cr_assert(strstr(line_for_db(1e-3), "0.1234"));
}
