/*
 * clconv-run from files to files, against a plain loop in double. Elements are
 * small integers times a power of two, so sums are exact and results must be
 * equal, in every layout, type and math.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "json.h"
#include "npy.h"
#include "program.h"

typedef struct problem {
    int64_t n, c, h, w, k, r, s;
    int64_t stride[2], pad[4], dilation[2]; /* top, bottom, left, right */
    int64_t groups;
    bool nhwc;
} problem;

/* In double, NCHW and KCRS. */
typedef struct arrays {
    double *dy, *x, *w, *dw, *db, *dx;
} arrays;

static const problem dense = {.n = 2,
                              .c = 3,
                              .h = 9,
                              .w = 8,
                              .k = 5,
                              .r = 3,
                              .s = 3,
                              .stride = {1, 1},
                              .pad = {1, 1, 1, 1},
                              .dilation = {1, 1},
                              .groups = 1};

static const problem odd = {.n = 3,
                            .c = 4,
                            .h = 11,
                            .w = 13,
                            .k = 6,
                            .r = 3,
                            .s = 2,
                            .stride = {2, 1},
                            .pad = {1, 0, 2, 1},
                            .dilation = {1, 2},
                            .groups = 2,
                            .nhwc = true};

static char directory[512];
static program_result result;

static void make_directory(void)
{
    snprintf(directory, sizeof(directory), "%s", program_make_directory());
}

static void remove_directory(void)
{
    program_remove_directory(directory);
}

TestSuite(clconv_run, .init = make_directory, .fini = remove_directory);

/* ---- The reference ----------------------------------------------------- */

static int64_t output_height(const problem *z)
{
    return (z->h + z->pad[0] + z->pad[1] - z->dilation[0] * (z->r - 1) - 1) /
               z->stride[0] +
           1;
}

static int64_t output_width(const problem *z)
{
    return (z->w + z->pad[2] + z->pad[3] - z->dilation[1] * (z->s - 1) - 1) /
               z->stride[1] +
           1;
}

/* One output element's part of every gradient. */
static void add_element(const problem *z, arrays *a, int64_t n, int64_t k,
                        int64_t p, int64_t q)
{
    int64_t cg = z->c / z->groups, first = k / (z->k / z->groups) * cg;
    double dy =
        a->dy[((n * z->k + k) * output_height(z) + p) * output_width(z) + q];

    a->db[k] += dy;
    for (int64_t c = 0; c < cg; ++c)
        for (int64_t r = 0; r < z->r; ++r)
            for (int64_t s = 0; s < z->s; ++s) {
                int64_t h = p * z->stride[0] + r * z->dilation[0] - z->pad[0];
                int64_t w = q * z->stride[1] + s * z->dilation[1] - z->pad[2];
                int64_t at_x = ((n * z->c + first + c) * z->h + h) * z->w + w;
                int64_t at_w = ((k * cg + c) * z->r + r) * z->s + s;

                if (h < 0 || h >= z->h || w < 0 || w >= z->w)
                    continue;
                a->dw[at_w] += dy * a->x[at_x];
                a->dx[at_x] += dy * a->w[at_w];
            }
}

static void run_reference(const problem *z, arrays *a)
{
    for (int64_t n = 0; n < z->n; ++n)
        for (int64_t k = 0; k < z->k; ++k)
            for (int64_t p = 0; p < output_height(z); ++p)
                for (int64_t q = 0; q < output_width(z); ++q)
                    add_element(z, a, n, k, p, q);
}

/* ---- Arrays and files -------------------------------------------------- */

static double *new_integers(int64_t count, double unit)
{
    static uint32_t state = 12345;
    double *data = calloc((size_t)count + 1, sizeof(*data));

    for (int64_t i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        data[i] = unit * (double)((int)(state >> 24) % 9 - 4);
    }
    return data;
}

static arrays new_arrays(const problem *z, double dy_unit)
{
    int64_t x = z->n * z->c * z->h * z->w;
    int64_t w = z->k * z->c / z->groups * z->r * z->s;
    int64_t dy = z->n * z->k * output_height(z) * output_width(z);
    arrays a = {new_integers(dy, dy_unit), new_integers(x, 1),
                new_integers(w, 1),        new_integers(w, 0),
                new_integers(z->k, 0),     new_integers(x, 0)};

    run_reference(z, &a);
    return a;
}

static void free_arrays(arrays *a)
{
    double *all[] = {a->dy, a->x, a->w, a->dw, a->db, a->dx};

    for (size_t i = 0; i < 6; ++i)
        free(all[i]);
}

/* Where element i of an [outer][channels][rows][columns] array lies if it is
 * stored with channels last. */
static size_t stored_index(const int64_t d[4], bool nhwc, size_t i)
{
    size_t rest = i, column, row, channel;

    if (!nhwc)
        return i;
    column = rest % (size_t)d[3], rest /= (size_t)d[3];
    row = rest % (size_t)d[2], rest /= (size_t)d[2];
    channel = rest % (size_t)d[1], rest /= (size_t)d[1];
    return ((rest * (size_t)d[2] + row) * (size_t)d[3] + column) * (size_t)d[1] +
           channel;
}

static const char *path_of(const char *name, char path[600])
{
    snprintf(path, 600, "%s/%s.npy", directory, name);
    return path;
}

static npy_header header_of(const int64_t d[4], bool nhwc, npy_type type)
{
    npy_header header = {type, 4, {d[0], d[1], d[2], d[3]}, 0, 0};
    npy_error error = {""};

    if (nhwc) {
        header.shape[1] = d[2];
        header.shape[2] = d[3];
        header.shape[3] = d[1];
    }
    cr_assert(npy_header_complete(&header, &error), "%s", error.text);
    return header;
}

static void write_array(const char *name, const int64_t d[4], bool nhwc,
                        npy_type type, const double *data)
{
    npy_header header = header_of(d, nhwc, type);
    float *f32 = malloc(header.elements * 4 + 1);
    uint16_t *f16 = malloc(header.elements * 2 + 1);
    npy_error error = {""};
    char path[600];

    for (size_t i = 0; i < header.elements; ++i) {
        size_t at = stored_index(d, nhwc, i);

        f32[at] = (float)data[i];
        f16[at] = host_half_from_float((float)data[i]);
    }
    cr_assert(npy_write(path_of(name, path), &header,
                        type == NPY_F32 ? (void *)f32 : (void *)f16, &error),
              "%s", error.text);
    free(f32);
    free(f16);
}

static void write_inputs(const problem *z, npy_type type, const arrays *a)
{
    int64_t dy[] = {z->n, z->k, output_height(z), output_width(z)};
    int64_t x[] = {z->n, z->c, z->h, z->w};
    int64_t w[] = {z->k, z->c / z->groups, z->r, z->s};

    write_array("dy", dy, z->nhwc, type, a->dy);
    write_array("x", x, z->nhwc, type, a->x);
    write_array("w", w, z->nhwc, type, a->w);
}

static double stored_element(const npy_array *array, size_t i)
{
    return array->header.type == NPY_F32
               ? (double)((float *)array->data)[i]
               : (double)host_float_from_half(((uint16_t *)array->data)[i]);
}

/* Every element is factor times the expected one, exactly. */
static void assert_file(const char *name, const int64_t d[4], bool nhwc,
                        npy_type type, const double *expected, double factor)
{
    npy_header header = header_of(d, nhwc, type);
    npy_array array;
    npy_error error = {""};
    char path[600];

    cr_assert(npy_read(path_of(name, path), 4, &array, &error), "%s: %s", path,
              error.text);
    cr_assert_eq(array.header.type, type, "%s", name);
    cr_assert_eq(memcmp(array.header.shape, header.shape, 4 * 8), 0,
                 "shape of %s", name);
    for (size_t i = 0; i < header.elements; ++i) {
        double got = stored_element(&array, stored_index(d, nhwc, i));

        cr_assert_eq(got, factor * expected[i], "%s[%zu] is %g, not %g", name,
                     i, got, factor * expected[i]);
    }
    npy_free(&array);
}

static void assert_bias(const problem *z, const double *expected)
{
    npy_array array;
    npy_error error = {""};
    char path[600];

    cr_assert(npy_read(path_of("db", path), 1, &array, &error), "%s",
              error.text);
    cr_assert_eq(array.header.shape[0], z->k);
    for (int64_t i = 0; i < z->k; ++i)
        cr_assert_eq(stored_element(&array, (size_t)i), expected[i], "db[%d]",
                     (int)i);
    npy_free(&array);
}

static void assert_outputs(const problem *z, npy_type dx_type, const arrays *a,
                           double dx_factor)
{
    int64_t x[] = {z->n, z->c, z->h, z->w};
    int64_t w[] = {z->k, z->c / z->groups, z->r, z->s};

    assert_file("dw", w, z->nhwc, NPY_F32, a->dw, 1);
    assert_file("dx", x, z->nhwc, dx_type, a->dx, dx_factor);
    assert_bias(z, a->db);
}

/* ---- Running ----------------------------------------------------------- */

/* With the options of z and those in extra, which ends with NULL. */
static void run_problem(const problem *z, const char *const *extra)
{
    char dy[600], x[600], w[600], texts[4][128];
    const char *argv[40] = {CLCONV_RUN,
                            "--dy",
                            path_of("dy", dy),
                            "--x",
                            path_of("x", x),
                            "--w",
                            path_of("w", w),
                            "--out",
                            directory,
                            "--stride",
                            texts[0],
                            "--pad",
                            texts[1],
                            "--dilation",
                            texts[2],
                            "--groups",
                            texts[3],
                            "--layout",
                            z->nhwc ? "nhwc" : "nchw"};
    size_t count = 19;

    snprintf(texts[0], 128, "%" PRId64 ",%" PRId64, z->stride[0], z->stride[1]);
    snprintf(texts[1], 128, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
             z->pad[0], z->pad[1], z->pad[2], z->pad[3]);
    snprintf(texts[2], 128, "%" PRId64 ",%" PRId64, z->dilation[0],
             z->dilation[1]);
    snprintf(texts[3], 128, "%" PRId64, z->groups);
    while (*extra)
        argv[count++] = *extra++;
    program_run(argv, &result);
}

#define EXTRA(...) ((const char *[]){__VA_ARGS__, NULL})
#define NO_EXTRA ((const char *[]){NULL})

/* warning: what stderr holds, or NULL if it is empty. */
static void assert_exact_with(const char *warning, const problem *z,
                              npy_type type, double dy_unit,
                              const char *const *extra)
{
    arrays a = new_arrays(z, dy_unit);

    write_inputs(z, type, &a);
    run_problem(z, extra);
    cr_assert_eq(result.status, 0, "status %d: %s", result.status, result.err);
    if (warning)
        cr_assert(strstr(result.err, warning), "%s", result.err);
    else
        cr_assert_str_empty(result.err);
    assert_outputs(z, NPY_F32, &a, 1);
    free_arrays(&a);
}

static void assert_exact(const problem *z, npy_type type, double dy_unit,
                         const char *const *extra)
{
    assert_exact_with(NULL, z, type, dy_unit, extra);
}

Test(clconv_run, mixed_gradients_of_float32_files_are_exact)
{
    assert_exact(&dense, NPY_F32, 1, NO_EXTRA);
    assert_exact(&odd, NPY_F32, 1, NO_EXTRA);
}

Test(clconv_run, fp32_gradients_are_exact)
{
    assert_exact(&dense, NPY_F32, 1, EXTRA("--math", "fp32"));
    assert_exact(&odd, NPY_F32, 1, EXTRA("--math", "fp32"));
}

Test(clconv_run, float16_files_are_read_as_they_are)
{
    assert_exact(&dense, NPY_F16, 1, NO_EXTRA);
    assert_exact(&odd, NPY_F16, 1, EXTRA("--math", "fp32"));
}

/* Multiples of 2^-27 are no float16 numbers, times 2^10 they are: subnormal
 * ones, with the bits that these few need. */
Test(clconv_run, small_gradients_survive_by_default)
{
    const char *warning = "keep fewer than 11 bits; --scale-log2 ";

    assert_exact_with(warning, &dense, NPY_F32, 0x1p-27, NO_EXTRA);
    assert_exact_with(warning, &odd, NPY_F32, 0x1p-27, NO_EXTRA);
    assert_exact(&dense, NPY_F32, 0x1p-27, EXTRA("--scale-log2", "20"));
}

Test(clconv_run, an_unscaled_cast_loses_small_gradients_and_says_so)
{
    arrays a = new_arrays(&dense, 0x1p-27), none = new_arrays(&dense, 0);

    memcpy(none.db, a.db, (size_t)dense.k * sizeof(*a.db));
    write_inputs(&dense, NPY_F32, &a);
    run_problem(&dense, EXTRA("--scale-log2", "0"));
    cr_assert_eq(result.status, 0, "%s", result.err);
    assert_outputs(&dense, NPY_F32, &none, 1);
    cr_assert(strstr(result.err, "warning: 100.0 % of the nonzero elements of "
                                 "dy became 0; --scale-log2 40"),
              "%s", result.err);
    free_arrays(&a);
    free_arrays(&none);
}

Test(clconv_run, saturation_is_warned_about_with_the_scale_that_fits)
{
    arrays a = new_arrays(&dense, 64);

    write_inputs(&dense, NPY_F32, &a);
    run_problem(&dense, NO_EXTRA);
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert(strstr(result.err, "--scale-log2 7 or --math fp32"), "%s",
              result.err);
    free_arrays(&a);
    assert_exact(&dense, NPY_F32, 64, EXTRA("--scale-log2", "7"));
}

Test(clconv_run, exponents_reach_the_outputs)
{
    problem z = dense;
    arrays a = new_arrays(&z, 0x1p-12), scaled = new_arrays(&z, 0);

    for (int64_t i = 0; i < z.n * z.k * z.h * z.w; ++i)
        scaled.dy[i] = a.dy[i] * 0x1p+12;
    memcpy(scaled.x, a.x, (size_t)(z.n * z.c * z.h * z.w) * sizeof(double));
    memcpy(scaled.w, a.w, (size_t)(z.k * z.c * z.r * z.s) * sizeof(double));
    write_inputs(&z, NPY_F16, &scaled);
    run_problem(
        &z, EXTRA("--dy-log2", "12", "--dx-log2", "11", "--dx-type", "f16"));
    cr_assert_eq(result.status, 0, "%s", result.err);
    assert_outputs(&z, NPY_F16, &a, 0x1p+11);
    free_arrays(&a);
    free_arrays(&scaled);
}

Test(clconv_run, no_images_give_zeros_and_an_empty_dx)
{
    problem z = dense;

    z.n = 0;
    assert_exact(&z, NPY_F32, 1, NO_EXTRA);
}

/* ---- What it says ------------------------------------------------------ */

Test(clconv_run, the_table_names_problem_plan_and_files)
{
    static const char *const parts[] = {"problem  n2c3h9w8k5r3s3p1\n",
                                        "device   ",
                                        "plan     cast",
                                        "time     ",
                                        "float32 (5, 3, 3, 3)",
                                        "float32 (5,)",
                                        "/dx.npy\n"};

    assert_exact(&dense, NPY_F32, 1, NO_EXTRA);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        cr_assert(strstr(result.out, parts[i]), "\"%s\" is missing in\n%s",
                  parts[i], result.out);
}

Test(clconv_run, json_is_one_valid_object_with_the_counts)
{
    arrays a = new_arrays(&dense, 1);
    char counts[128];
    int64_t nonzero = 0;

    for (int64_t i = 0; i < dense.n * dense.k * dense.h * dense.w; ++i)
        nonzero += a.dy[i] != 0;
    snprintf(counts, sizeof(counts),
             "\"cast\": {\"nonzero\": %" PRId64
             ", \"zeroed\": 0, \"subnormal\": 0, \"saturated\": 0",
             nonzero);
    write_inputs(&dense, NPY_F32, &a);
    run_problem(&dense, EXTRA("--json", "--dx-type", "f16"));
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert(json_is_valid(result.out), "%s", result.out);
    cr_assert(strstr(result.out, counts), "%s in\n%s", counts, result.out);
    cr_assert(strstr(result.out, "\"problem\": \"n2c3h9w8k5r3s3p1_dx16\""));
    free_arrays(&a);
}

Test(clconv_run, json_stays_valid_for_odd_names_and_odd_values)
{
    arrays a = new_arrays(&dense, 1);
    char odd_directory[700], file[720];

    a.dy[0] = (double)NAN, a.x[0] = (double)INFINITY;
    write_inputs(&dense, NPY_F32, &a);
    snprintf(odd_directory, sizeof(odd_directory),
             "%s/\"a\\b\n\xC3\xA9\xFF\x01", directory);
    run_problem(&dense, EXTRA("--json", "--out", odd_directory));
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert(json_is_valid(result.out), "%s", result.out);
    cr_assert(strstr(result.out, "/\\\"a\\\\b\\u000a\xC3\xA9\\ufffd\\u0001/dx"),
              "%s", result.out);
    cr_assert(strstr(result.out, "\"nan\": 1, \"inf\": 0"), "%s", result.out);
    for (size_t i = 0; i < 3; ++i) {
        snprintf(file, sizeof(file), "%s/d%c.npy", odd_directory, "wbx"[i]);
        cr_assert_eq(remove(file), 0, "%s", file);
    }
    remove(odd_directory);
    free_arrays(&a);
}

/* ---- Failures ---------------------------------------------------------- */

static void assert_failure(const problem *z, const char *const *extra,
                           const char *part)
{
    run_problem(z, extra);
    cr_assert_eq(result.status, 1, "%s", part);
    cr_assert(strstr(result.err, part), "%s", result.err);
    cr_assert_eq(strchr(result.err, '\n'), strrchr(result.err, '\n'), "%s",
                 result.err);
}

Test(clconv_run, a_failure_is_one_line_and_leaves_old_results_alone)
{
    problem wider = dense;
    arrays a = new_arrays(&dense, 1);

    write_inputs(&dense, NPY_F32, &a);
    run_problem(&dense, NO_EXTRA);
    cr_assert_eq(result.status, 0, "%s", result.err);
    wider.pad[3] = 2;
    assert_failure(&wider, NO_EXTRA, "need the shape (2, 5, 9, 9)");
    assert_failure(&dense, EXTRA("--plan", "no_such_kernel"), "no_such_kernel");
    assert_failure(&dense, EXTRA("--device", "no such device"),
                   "no such device");
    assert_outputs(&dense, NPY_F32, &a, 1);
    free_arrays(&a);
}

Test(clconv_run, the_plan_it_prints_can_be_given_back)
{
    char plan[512];
    const char *line;

    assert_exact(&dense, NPY_F32, 1, NO_EXTRA);
    line = strstr(result.out, "plan     ");
    cr_assert(line != NULL, "%s", result.out);
    snprintf(plan, sizeof(plan), "%.*s", (int)strcspn(line + 9, "\n"), line + 9);
    assert_exact(&dense, NPY_F32, 1, EXTRA("--plan", plan));
    cr_assert(strstr(result.out, plan), "%s", result.out);
}
