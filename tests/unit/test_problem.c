/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

static clconv_desc valid(void)
{
    clconv_desc d;
    clconv_desc_init(&d);
    d.n = 2, d.c = 8, d.h = 10, d.w = 12;
    d.k = 6, d.r = 3, d.s = 3;
    return d;
}

static clconv_problem problem(const char *text)
{
    clconv_desc d;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s: %s", text,
                 clconv_last_error());
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_OK, "%s", text);
    return p;
}

/* Every field out of its range, and the name that the message must hold. */
#define REFUSES(assignment, word)                                              \
    do {                                                                       \
        clconv_desc d = valid();                                               \
        d.assignment;                                                          \
        cr_assert_eq(clconv_desc_validate(&d), CLCONV_INVALID_ARGUMENT, "%s",  \
                     #assignment);                                             \
        cr_assert_not_null(strstr(clconv_last_error(), word), "%s: %s",        \
                           #assignment, clconv_last_error());                  \
    } while (0)

Test(problem, refuses_each_field_out_of_range_by_name)
{
    REFUSES(n = -1, "desc.n");
    REFUSES(c = 0, "desc.c");
    REFUSES(h = 0, "desc.h");
    REFUSES(w = INT32_MAX - 65534, "[1, 2147418112]");
    REFUSES(k = -5, "desc.k");
    REFUSES(r = 0, "desc.r");
    REFUSES(s = 0, "desc.s");
    REFUSES(stride_h = 0, "desc.stride_h");
    REFUSES(stride_w = -1, "desc.stride_w");
    REFUSES(pad_top = -1, "desc.pad_top");
    REFUSES(pad_bottom = -1, "desc.pad_bottom");
    REFUSES(pad_left = -1, "desc.pad_left");
    REFUSES(pad_right = -1, "desc.pad_right");
    REFUSES(dilation_h = 0, "desc.dilation_h");
    REFUSES(dilation_w = 0, "desc.dilation_w");
    REFUSES(groups = 0, "desc.groups");
    REFUSES(groups = 3, "desc.groups");
    REFUSES(groups = 16, "desc.groups");
    REFUSES(layout = (clconv_layout)2, "desc.layout");
    REFUSES(math = (clconv_math)2, "desc.math");
    REFUSES(x_type = (clconv_type)2, "desc.x_type");
    REFUSES(w_type = (clconv_type)2, "desc.w_type");
    REFUSES(dy_type = (clconv_type)2, "desc.dy_type");
    REFUSES(dw_type = (clconv_type)2, "desc.dw_type");
    REFUSES(db_type = (clconv_type)2, "desc.db_type");
    REFUSES(dx_type = (clconv_type)2, "desc.dx_type");
    REFUSES(scale = (clconv_scale)2, "desc.scale");
    REFUSES(scale_log2 = 41, "desc.scale_log2");
    REFUSES(dy_log2 = -41, "desc.dy_log2");
    REFUSES(dx_log2 = 41, "desc.dx_log2");
    REFUSES(overflow = (clconv_overflow)2, "desc.overflow");
    REFUSES(alignment = 0, "desc.alignment");
    REFUSES(alignment = 2, "desc.alignment");
    REFUSES(alignment = 24, "desc.alignment");
    REFUSES(alignment = 8192, "desc.alignment");
    REFUSES(struct_size = 0, "struct_size");
    REFUSES(struct_size = sizeof(clconv_desc) + 8, "struct_size");
}

Test(problem, refuses_a_filter_larger_than_the_padded_input)
{
    clconv_desc d = valid();
    d.h = 2, d.w = 2, d.r = 5, d.s = 5;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_INVALID_ARGUMENT);
    d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = 2;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_OK);
}

/* The largest size that a field takes. */
#define MOST (INT32_MAX - 65535)

Test(problem, refuses_sizes_whose_products_overflow)
{
    clconv_desc d = valid();
    d.n = d.c = d.k = MOST;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_INVALID_ARGUMENT);
    d = valid();
    d.h = MOST, d.pad_top = MOST;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), "height is 4294836224"),
                       "%s", clconv_last_error());
    d = valid();
    d.r = MOST, d.dilation_h = MOST;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(clconv_last_error(), "4611404545598226433"), "%s",
                       clconv_last_error());
}

Test(problem, allows_no_images_and_2_to_the_31_elements)
{
    clconv_desc d = valid();
    d.n = 0;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_OK);
    clconv_problem p = problem("n240c1024h162w92k1024r3s3p1");
    cr_assert_eq(clconv_problem_elements(&p, CLCONV_X), 3662807040LL);
}

Test(problem, takes_an_older_smaller_struct_with_defaults_for_the_rest)
{
    clconv_desc d = valid();
    d.struct_size = offsetof(clconv_desc, scale_log2);
    d.scale_log2 = 99; /* lies behind what this caller knows */
    clconv_problem p;
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_OK);
    cr_assert_eq(p.scale_log2, CLCONV_SCALE_LOG2_DEFAULT);
    cr_assert_eq(p.alignment, 16);
    char text[64];
    clconv_desc_format(&d, text, sizeof text);
    cr_assert_null(strstr(text, "scale"), "%s", text);
}

Test(problem, dynamic_scale_is_unsupported_in_a_sentence)
{
    clconv_desc d = valid();
    d.scale = CLCONV_SCALE_DYNAMIC;
    clconv_problem p;
    cr_assert_eq(clconv_desc_validate(&d), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "desc.scale"));
}

Test(problem, output_shape_rounds_down)
{
    static const struct {
        const char *text;
        int64_t p, q;
    } cases[] = {
        {"n1c3h224w224k64r7s7u2p3", 112, 112},
        {"n1c3h8w8k17r3s3u2p1x0x1x0", 4, 4},
        {"n1c4h6w6k4r3s3u2p1g4", 3, 3},
        {"n1c1h2w2k1r2s2u2p1d2", 1, 1},
        {"n1c128h83w11k512r5s1u3x1p2x0", 28, 11},
        {"n1c4h8w8k6r3s3p1x0x1x0d2", 5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_problem p = problem(cases[i].text);
        cr_assert_eq(p.p, cases[i].p, "%s: p = %d", cases[i].text, (int)p.p);
        cr_assert_eq(p.q, cases[i].q, "%s: q = %d", cases[i].text, (int)p.q);
    }
}

Test(problem, strides_follow_the_layout)
{
    clconv_problem p = problem("n2c6h5w4k8r3s2g2");
    clconv_strides x = clconv_problem_strides(&p, CLCONV_X);
    clconv_strides w = clconv_problem_strides(&p, CLCONV_W);
    cr_assert(x.image == 120 && x.channel == 20 && x.row == 4 && x.column == 1);
    cr_assert(w.image == 18 && w.channel == 6 && w.row == 2 && w.column == 1);
    p = problem("n2c6h5w4k8r3s2g2_nhwc");
    x = clconv_problem_strides(&p, CLCONV_DX);
    w = clconv_problem_strides(&p, CLCONV_DW);
    cr_assert(x.image == 120 && x.channel == 1 && x.row == 24 && x.column == 6);
    cr_assert(w.image == 18 && w.channel == 1 && w.row == 6 && w.column == 3);
}

/* Exponents written out: cast of dY, then epilogues of dW, db, dX. */
Test(problem, exponents_of_cast_and_epilogue)
{
    static const struct {
        const char *text;
        int cast, dw, db, dx;
    } cases[] = {
        {"n1c1h4w4k1r1s1", 10, -10, 0, -10},
        {"n1c1h4w4k1r1s1_scale0", 0, 0, 0, 0},
        {"n1c1h4w4k1r1s1_fp32", 0, 0, 0, 0},
        {"n1c1h4w4k1r1s1_dy16_dylog7", 0, -7, -7, -7},
        {"n1c1h4w4k1r1s1_dylog7_dxlog3", 10, -17, -7, -14},
        {"n1c1h4w4k1r1s1_fp32_dylog-2_dxlog3", 0, 2, 2, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const char *text = cases[i].text;
        clconv_problem p = problem(text);
        cr_assert_eq(clconv_problem_cast_log2(&p, CLCONV_DY), cases[i].cast,
                     "%s", text);
        cr_assert_eq(clconv_problem_cast_log2(&p, CLCONV_X), 0, "%s", text);
        cr_assert_eq(clconv_problem_epilogue_log2(&p, CLCONV_DW), cases[i].dw,
                     "%s", text);
        cr_assert_eq(clconv_problem_epilogue_log2(&p, CLCONV_DB), cases[i].db,
                     "%s", text);
        cr_assert_eq(clconv_problem_epilogue_log2(&p, CLCONV_DX), cases[i].dx,
                     "%s", text);
    }
}

Test(problem, strings_round_trip)
{
    static const char *const texts[] = {
        "n64c128h28w28k128r3s3p1",
        "n0c1h1w1k1r1s1",
        "n1c3h224w224k64r7s7u2p3_nhwc",
        "n2c8h9w10k4r3s1u3x2p1x2d2x1g4_nhwc_fp32",
        "n2c8h9w10k4r3s3p1x0x2x3_x16_w16_dy16_dw16_db16_dx16_inf",
        "n2c8h9w10k4r3s3p1_y16_b16_inf_relu",
        "n2c8h9w10k4r3s3_scale0_dylog-3_dxlog12_align4",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        clconv_problem p = problem(texts[i]);
        clconv_text out = CLCONV_TEXT_EMPTY;
        clconv_problem_format(&p, &out);
        char *text = clconv_text_take(&out);
        cr_assert_str_eq(text, texts[i]);
        free(text);
    }
}

Test(problem, strings_with_faults_are_refused_at_their_place)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "at its end"},
        {"n1", "cNUMBER"},
        {"n1c1h1w1k1r1s", "sNUMBER"},
        {"c1n1h1w1k1r1s1", "nNUMBER"},
        {"n1c1h1w1k1r1s1x", "u2x1"},
        {"n1c1h1w1k1r1s1u1x2x3", "u2x1"},
        {"n1c1h1w1k1r1s1p1x2x3", "p1x0x2x0"},
        {"n1c1h1w1k1r1s1g1x1", "g4"},
        {"n1c1h4w4k1r1s1p1g1p1", "once, not again"},
        {"n1c1h1w1k1r1s1_", "nhwc"},
        {"n1c1h1w1k1r1s1_nhwcx", "nhwc"},
        {"n1c1h1w1k1r1s1_scale", "a number"},
        {"n1c1h1w1k1r1s1_scale41", "scale_log2"},
        {"n99999999999c1h1w1k1r1s1", "below 2^31"},
        {"n1c1h1w1k1r2s1", "filter spans"},
        {"n1 c1h1w1k1r1s1", "cNUMBER"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_desc d = valid(), before = d;
        cr_assert_eq(clconv_desc_parse(cases[i].text, &d),
                     CLCONV_INVALID_ARGUMENT, "%s", cases[i].text);
        cr_assert_not_null(strstr(clconv_last_error(), cases[i].message),
                           "%s: %s", cases[i].text, clconv_last_error());
        cr_assert_eq(memcmp(&d, &before, sizeof d), 0, "%s", cases[i].text);
    }
}

Test(problem, format_tells_the_length_that_it_needs)
{
    clconv_desc d;
    char small[8];
    cr_assert_eq(clconv_desc_parse("n1c2h3w4k5r1s1", &d), CLCONV_OK);
    cr_assert_eq(clconv_desc_format(&d, NULL, 0), strlen("n1c2h3w4k5r1s1"));
    cr_assert_eq(clconv_desc_format(&d, small, sizeof small), 14);
    cr_assert_str_eq(small, "n1c2h3w");
    d.struct_size = 0;
    cr_assert_eq(clconv_desc_format(&d, small, sizeof small), 0);
    cr_assert_str_eq(small, "");
    cr_assert_eq(clconv_desc_format(NULL, small, sizeof small), 0);
}
