/*
 * clconv-bench without a device: help, sets, wrong options, files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define PROBLEM "n1c2h5w5k3r3s3p1"

static program_result result;
static char directory[512];

static void set_up(void)
{
    snprintf(directory, sizeof(directory), "%s", program_make_directory());
    cr_assert_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
}

static void clean_up(void)
{
    program_remove_directory(directory);
}

TestSuite(bench_options, .init = set_up, .fini = clean_up);

static void run(const char *a, const char *b, const char *c)
{
    program_run((const char *[]){CLCONV_BENCH, a, b, c, NULL}, &result);
}

static void assert_says(const char *where, const char *text, const char *part)
{
    cr_assert(strstr(text, part), "%s:\n%s\nlacks \"%s\"", where, text, part);
}

/* One line on stderr, nothing on stdout. */
static void assert_refused(const char *part)
{
    cr_assert_eq(result.status, 2, "status %d: %s", result.status, result.err);
    assert_says("stderr", result.err, "clconv-bench: ");
    assert_says("stderr", result.err, part);
    cr_assert_eq(strchr(result.err, '\n'), strrchr(result.err, '\n'),
                 "more than one line:\n%s", result.err);
    cr_assert_str_empty(result.out);
}

/* One option with a value, and a good problem. */
static void assert_wrong(const char *option, const char *value, const char *part)
{
    run(option, value, PROBLEM);
    assert_refused(part);
}

static const char *path_of(const char *name)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static const char *write_file(const char *name, const char *text)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

Test(bench_options, help_version_and_sets_go_to_stdout)
{
    run("--help", NULL, NULL);
    cr_assert_eq(result.status, 0);
    assert_says("help", result.out, "--max-gflop X");
    assert_says("help", result.out, "* mixed ");
    assert_says("help", result.out, "  report ");
    run("--version", NULL, NULL);
    cr_assert_eq(result.status, 0);
    assert_says("version", result.out, "clconv-bench 0.");
    run("--list-sets", NULL, NULL);
    cr_assert_eq(result.status, 0);
    assert_says("sets", result.out, "seed-cifar: ");
    assert_says("sets", result.out, "n50c3h224w224k64r7s7u2p3x2x3x2\n");
    cr_assert_str_empty(result.err);
}

Test(bench_options, wrong_values_name_option_and_range)
{
    assert_wrong("--batch", "0", "--batch 0: must be a whole number from 1");
    assert_wrong("--layout", "both", "nchw or nhwc");
    assert_wrong("--ops", "dw,dy", "--ops dy: must be dw, db or dx");
    assert_wrong("--ops", "", "--ops");
    assert_wrong("--seconds", "-1", "--seconds -1");
    assert_wrong("--repeats", "0", "--repeats 0");
    assert_wrong("--max-gflop", "x", "--max-gflop x");
    assert_wrong("--max-gflop", "0", "--max-gflop 0 leaves no problem");
    assert_wrong("--speed", "1", "--speed: unknown");
}

Test(bench_options, what_there_is_is_named)
{
    assert_wrong("--set", "vgg",
                 "--set vgg: no such set; there are seed-cifar,");
    assert_wrong("--only", "mixed,cudnn",
                 "--only cudnn: no such contender; there are mixed, fp32");
    assert_wrong("--only", "mixed,", "no such contender");
    run(NULL, NULL, NULL);
    assert_refused("give a PROBLEM, --set NAME or --file FILE");
}

Test(bench_options, a_faulty_problem_string_is_told_apart)
{
    run("n1c2h5w5k3r3", NULL, NULL);
    assert_refused("n1c2h5w5k3r3");
    run(PROBLEM "_fp32", NULL, NULL);
    assert_refused("a problem is sizes and nhwc here");
    run(PROBLEM "_x16", NULL, NULL);
    assert_refused("a problem is sizes and nhwc here");
    run("n0c2h5w5k3r3s3", NULL, NULL);
    assert_refused("has no images");
    run("n1c2h2w2k3r3s3", NULL, NULL);
    assert_refused("the filter spans 3 of height");
}

Test(bench_options, a_file_is_read_line_by_line)
{
    run("--file", path_of("none.txt"), NULL);
    assert_refused("none.txt: No such file");
    run("--file", write_file("empty.txt", "# nothing\n\n"), NULL);
    assert_refused("empty.txt: holds no problem string");
    run("--file", write_file("bad.txt", PROBLEM " # good\n\n  n1\n"), NULL);
    assert_refused("bad.txt:3: ");
    run("--file", write_file("bad.csv", "name,N\na,1\n"), NULL);
    assert_refused("bad.csv:1:7: column \"C\" is missing");
    run("--file", write_file("good.txt", "# one\n" PROBLEM "\t# good\n"), NULL);
    cr_assert_eq(result.status, 77, "%s", result.err);
}

/* As --file reads them, and without a device. */
Test(bench_options, problems_are_listed_as_a_file)
{
    const char *line = "\nr50_c1,64,3,224,224,64,7,7,2,2,3,3,3,3,1,1,1\n";
    const char *path;

    run("--list", "--set", "gpu");
    cr_assert_eq(result.status, 0, "%s", result.err);
    assert_says("list", result.out, "name,N,C,H,W,K,R,S,stride_h,stride_w,");
    assert_says("list", result.out, line);
    path = write_file("gpu.csv", result.out);
    run("--list", "--file", path);
    cr_assert_eq(result.status, 0, "%s", result.err);
    assert_says("list", result.out, line);
}

/* Before any work: the program would else ask for a device first. */
Test(bench_options, an_output_that_cannot_be_written_is_refused_first)
{
    assert_wrong("--csv", "/nonexistent/a.csv", "--csv /nonexistent/a.csv: ");
    assert_wrong("--json", directory, "is a directory");
    assert_wrong("--json", "", "--json");
    run("--plot=a.svg", "--only=mixed", PROBLEM);
    assert_refused("give --only two contenders");
    cr_assert_eq(setenv("PATH", "/nonexistent", 1), 0);
    assert_wrong("--plot", path_of("a.svg"), "gnuplot-nox");
}

Test(bench_options, modes_of_their_own_take_no_more_than_they_use)
{
    run("--startup", PROBLEM, PROBLEM);
    assert_refused("--startup takes one problem");
    run("--startup", PROBLEM, "--report-cost");
    assert_refused("give one of them");
    run("--list", "--report-cost", PROBLEM);
    assert_refused("give one of them");
    run("--report-cost", "--only=fp32", PROBLEM);
    assert_refused("leave --only out");
    run("--startup", PROBLEM, "--csv=a.csv");
    assert_refused("--startup writes no file");
}

Test(bench_options, without_a_device_the_status_is_77)
{
    run(PROBLEM, NULL, NULL);
    cr_assert_eq(result.status, 77, "status %d: %s", result.status, result.err);
    assert_says("stderr", result.err, "clconv-bench: no OpenCL device");
    run("--startup", PROBLEM, NULL);
    cr_assert_eq(result.status, 77, "status %d: %s", result.status, result.err);
}
