/*
 * The sum of squares of all products, against plain loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "naive.h"
#include "sample.h"
#include "spread.h"

static double *zeros(int64_t count)
{
    double *values = calloc((size_t)count + 1, sizeof *values);
    cr_assert_not_null(values);
    return values;
}

static double sum_of(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
        sum += values[i];
    return sum;
}

static double spread(const clconv_problem *p, clconv_tensor output,
                     const naive_data *data)
{
    double squares = -1;
    cr_assert(clconv_spread_squares(
        p, output, data->dy, output == CLCONV_DX ? data->w : data->x, &squares));
    return squares;
}

static void expect_spreads(const char *problem)
{
    clconv_desc desc;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s", problem);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK, "%s", problem);
    float *dy = clconv_sample_new(&p, CLCONV_SAMPLE_RANDOM, CLCONV_DY);
    float *x = clconv_sample_new(&p, CLCONV_SAMPLE_RANDOM, CLCONV_X);
    float *w = clconv_sample_new(&p, CLCONV_SAMPLE_RANDOM, CLCONV_W);
    cr_assert(dy && x && w);
    int64_t dw_count = naive_w_elements(&desc);
    int64_t dx_count = naive_x_elements(&desc, desc.n);
    int64_t dy_count = naive_dy_elements(&desc, desc.n);
    const naive_data data = {.x = x, .w = w, .dy = dy};
    const naive_result want = {.dw_squares = zeros(dw_count),
                               .dx_squares = zeros(dx_count)};
    naive_backward(&desc, desc.n, &data, &want);
    double dw = sum_of(want.dw_squares, dw_count);
    double dx = sum_of(want.dx_squares, dx_count), db = 0;
    for (int64_t i = 0; i < dy_count; ++i)
        db += (double)dy[i] * (double)dy[i];
    cr_assert_float_eq(spread(&p, CLCONV_DW, &data) / dw, 1, 1e-6, "%s",
                       problem);
    cr_assert_float_eq(spread(&p, CLCONV_DX, &data) / dx, 1, 1e-6, "%s",
                       problem);
    cr_assert_float_eq(spread(&p, CLCONV_DB, &data) / db, 1, 1e-6, "%s",
                       problem);
    free(want.dw_squares);
    free(want.dx_squares);
    free(w);
    free(x);
    free(dy);
}

Test(spread, is_that_of_plain_loops)
{
    expect_spreads("n1c1h1w1k1r1s1");
    expect_spreads("n3c4h7w6k6r3s2u2x1p1x0x2x1g2");
    expect_spreads("n2c3h9w8k5r3s3d2x1p2_nhwc");
    expect_spreads("n2c6h5w7k6r3s3p1g6_nhwc");
}
