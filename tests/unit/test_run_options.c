/*
 * clconv-run without a device: help, wrong options, files and shapes that do
 * not fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "npy.h"
#include "program.h"

static program_result result;

static void assert_says(const char *where, const char *text, const char *part)
{
    cr_assert(strstr(text, part), "%s:\n%s\nlacks \"%s\"", where, text, part);
}

/* One option with a value, before the required ones are looked at. */
static void assert_wrong(const char *option, const char *value, const char *part)
{
    program_run((const char *[]){CLCONV_RUN, option, value, NULL}, &result);
    cr_assert_eq(result.status, 2, "%s %s: status %d", option,
                 value ? value : "", result.status);
    assert_says("stderr", result.err, "clconv-run: ");
    assert_says("stderr", result.err, part);
    cr_assert_eq(strchr(result.err, '\n'), strrchr(result.err, '\n'),
                 "more than one line:\n%s", result.err);
    cr_assert_str_empty(result.out);
}

Test(run_options, help_and_version_go_to_stdout)
{
    program_run((const char *[]){CLCONV_RUN, "--help", NULL}, &result);
    cr_assert_eq(result.status, 0);
    assert_says("help", result.out, "--scale-log2 K");
    program_run((const char *[]){CLCONV_RUN, "--version", NULL}, &result);
    cr_assert_eq(result.status, 0);
    assert_says("version", result.out, "clconv-run 0.");
    cr_assert_str_empty(result.err);
}

Test(run_options, wrong_values_name_option_and_range)
{
    assert_wrong("--stride", "0", "--stride 0: must be H,W");
    assert_wrong("--stride", "1,2,3", "from 1 to");
    assert_wrong("--pad", "-1", "from 0 to");
    assert_wrong("--pad", "1,2,3", "TOP,BOTTOM,LEFT,RIGHT");
    assert_wrong("--dilation", "a", "--dilation a");
    assert_wrong("--groups", "0", "from 1 to");
    assert_wrong("--layout", "chwn", "nchw or nhwc");
    assert_wrong("--math", "fp16", "mixed or fp32");
    assert_wrong("--scale-log2", "41", "from -40 to 40");
    assert_wrong("--dy-log2", "1.5", "--dy-log2 1.5");
    assert_wrong("--dx-log2", "", "--dx-log2");
    assert_wrong("--dx-type", "f64", "f32 or f16");
    assert_wrong("--overflow", "wrap", "saturate or inf");
}

Test(run_options, unknown_and_missing_options_are_named)
{
    assert_wrong("--speed", NULL, "--speed: unknown");
    assert_wrong("-q", NULL, "-q: unknown");
    assert_wrong("--json=yes", NULL, "takes no value");
    assert_wrong("--stride", NULL, "--stride needs a value");
    assert_wrong("--json", NULL, "--dy FILE is missing");
    assert_wrong("--dy", "dy.npy", "--x FILE is missing");
    assert_wrong("dy.npy", NULL, "given as --dy");
}

/* ---- Files and shapes -------------------------------------------------- */

static char directory[512];

static void make_directory(void)
{
    snprintf(directory, sizeof(directory), "%s", program_make_directory());
    cr_assert_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
}

static void remove_directory(void)
{
    program_remove_directory(directory);
}

TestSuite(run_shapes, .init = make_directory, .fini = remove_directory);

/* Zeros of a shape in directory/name.npy. */
static void write_zeros(const char *name, int64_t a, int64_t b, int64_t c,
                        int64_t d)
{
    static const float zeros[4096];
    npy_header header = {NPY_F32, 4, {a, b, c, d}, 0, 0};
    npy_error error = {""};
    char path[600];

    snprintf(path, sizeof(path), "%s/%s.npy", directory, name);
    cr_assert(npy_header_complete(&header, &error));
    cr_assert_leq(header.bytes, sizeof(zeros));
    cr_assert(npy_write(path, &header, zeros, &error), "%s", error.text);
}

/* Three files that go together. */
static void write_fitting(void)
{
    write_zeros("dy", 1, 1, 1, 1);
    write_zeros("x", 1, 1, 3, 3);
    write_zeros("w", 1, 1, 3, 3);
}

/* Runs on the three files, with up to two options more. */
static void run_files(const char *option, const char *value)
{
    char dy[600], x[600], w[600];

    snprintf(dy, sizeof(dy), "%s/dy.npy", directory);
    snprintf(x, sizeof(x), "%s/x.npy", directory);
    snprintf(w, sizeof(w), "%s/w.npy", directory);
    program_run((const char *[]){CLCONV_RUN, "--dy", dy, "--x", x, "--w", w,
                                 "--out", directory, option, value, NULL},
                &result);
}

static void assert_fails(const char *part)
{
    cr_assert_eq(result.status, 1, "status %d: %s", result.status, result.err);
    assert_says("stderr", result.err, "clconv-run: ");
    assert_says("stderr", result.err, part);
    cr_assert_eq(strchr(result.err, '\n'), strrchr(result.err, '\n'),
                 "more than one line:\n%s", result.err);
}

Test(run_shapes, a_missing_file_is_named)
{
    write_zeros("dy", 1, 1, 1, 1);
    run_files(NULL, NULL);
    assert_fails("x.npy: No such file");
}

Test(run_shapes, a_wrong_dy_is_told_what_was_expected_and_why)
{
    write_zeros("dy", 2, 4, 5, 5);
    write_zeros("x", 2, 3, 5, 6);
    write_zeros("w", 4, 3, 3, 3);
    run_files("--pad", "1");
    assert_fails("dy.npy: is float32 (2, 4, 5, 5)");
    assert_fails("--pad 1,1,1,1");
    assert_fails("need the shape (2, 4, 5, 6)");
}

Test(run_shapes, channels_must_agree)
{
    write_zeros("dy", 1, 4, 1, 1);
    write_zeros("x", 1, 6, 3, 3);
    write_zeros("w", 4, 6, 3, 3);
    run_files("--groups", "2");
    assert_fails("w.npy: has 6 channels");
    assert_fails("need 3");
    run_files("--groups", "4");
    assert_fails("--groups 4: must divide the 6 channels of");
}

Test(run_shapes, the_layout_says_which_axis_is_which)
{
    write_zeros("dy", 1, 4, 1, 1);
    write_zeros("x", 1, 6, 4, 3);
    write_zeros("w", 4, 5, 3, 3);
    run_files("--layout", "nhwc");
    assert_fails("need the shape (1, 2, 2, 4)");
    write_zeros("w", 4, 3, 3, 4);
    run_files("--layout", "nhwc");
    assert_fails("w.npy: has 4 channels, but the 3 channels of");
}

Test(run_shapes, groups_must_divide_the_output_channels)
{
    write_zeros("dy", 1, 3, 1, 1);
    write_zeros("x", 1, 6, 3, 3);
    write_zeros("w", 3, 3, 3, 3);
    run_files("--groups", "2");
    assert_fails("desc.groups is 2; it must divide c = 6 and k = 3");
}

Test(run_shapes, a_filter_larger_than_the_padded_image_is_refused)
{
    write_zeros("dy", 1, 1, 1, 1);
    write_zeros("x", 1, 1, 3, 3);
    write_zeros("w", 1, 1, 5, 5);
    run_files(NULL, NULL);
    assert_fails("w.npy: desc: the filter spans 5 of height");
}

Test(run_shapes, without_a_device_the_status_is_77)
{
    write_fitting();
    run_files(NULL, NULL);
    cr_assert_eq(result.status, 77, "status %d: %s", result.status, result.err);
    assert_says("stderr", result.err, "clconv-run: no OpenCL device");
}

Test(run_shapes, a_directory_that_cannot_be_made_is_refused)
{
    write_fitting();
    run_files("--out", "/dev/null/results");
    assert_fails("--out /dev/null/results: cannot be made a directory: Not a");
    run_files("--out", "");
    assert_fails("--out : must be a path of 1 to");
}

/* Before any result is written: dw.npy would be there and db.npy not. */
Test(run_shapes, a_directory_in_the_place_of_a_result_is_refused)
{
    char db[600];

    snprintf(db, sizeof(db), "%s/db.npy", directory);
    cr_assert_eq(mkdir(db, 0777), 0);
    write_fitting();
    run_files(NULL, NULL);
    assert_fails("/db.npy: is a directory");
}

Test(run_shapes, an_input_is_not_overwritten)
{
    char dw[600], w[600];

    write_fitting();
    snprintf(w, sizeof(w), "%s/w.npy", directory);
    snprintf(dw, sizeof(dw), "%s/dw.npy", directory);
    cr_assert_eq(rename(w, dw), 0);
    run_files("--w", dw);
    assert_fails("/dw.npy: is an input that a result would replace");
}
