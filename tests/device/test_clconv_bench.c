/*
 * clconv-bench as a program, on tiny problems and few calls: what it prints
 * and writes. No test of a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "program.h"

#define PROBLEM "n1c3h6w5k4r3s3p1"
#define SECOND "n2c4h5w5k4r1s1_nhwc"

static program_result result;
static char directory[512];

static void set_up(void)
{
    snprintf(directory, sizeof(directory), "%s", program_make_directory());
}

static void clean_up(void)
{
    program_remove_directory(directory);
}

TestSuite(clconv_bench, .init = set_up, .fini = clean_up);

static bool says(const char *text)
{
    return strstr(result.out, text) != NULL;
}

static void join(char path[600], const char *option, const char *name)
{
    snprintf(path, 600, "%s%s/%s", option, directory, name);
}

/* The library's two columns, two calls each, with up to four more words. */
static void run(const char *a, const char *b, const char *c, const char *d)
{
    program_run((const char *[]){CLCONV_BENCH, "--only=mixed,fp32", "--seconds",
                                 "0", "--repeats", "2", PROBLEM, a, b, c, d,
                                 NULL},
                &result);
}

static const char *read_file(const char *name)
{
    static char text[32768];
    char path[600];
    FILE *file;
    size_t length;

    join(path, "", name);
    file = fopen(path, "r");
    cr_assert_not_null(file, "%s was not written", path);
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* ---- CSV ---------------------------------------------------------------- */

/* Takes the next field; *at then stands behind its comma or line end, and
 * *last says which it was. */
static void take_field(const char **at, char *out, size_t size, bool *last)
{
    bool quoted = **at == '"';
    size_t length = 0;

    for (*at += quoted; **at; ++*at) {
        if (quoted && **at == '"' && (*at)[1] == '"')
            ++*at;
        else if (quoted ? **at == '"' : **at == ',' || **at == '\n')
            break;
        cr_assert_lt(length + 1, size, "a long field");
        out[length++] = **at;
    }
    out[length] = '\0';
    *at += quoted;
    cr_assert(**at == ',' || **at == '\n', "no end of a field: %.40s", *at);
    *last = **at == '\n';
    ++*at;
}

enum { FIELDS = 32, FIELD_SIZE = 1100 };

typedef struct record {
    char fields[FIELDS][FIELD_SIZE];
    int count;
} record;

static void take_record(const char **at, record *out)
{
    bool last = false;

    for (out->count = 0; !last; ++out->count) {
        cr_assert_lt(out->count, FIELDS);
        take_field(at, out->fields[out->count], FIELD_SIZE, &last);
    }
}

static const char *field(const record *head, const record *line,
                         const char *name)
{
    cr_assert_eq(head->count, line->count, "%d names, %d fields", head->count,
                 line->count);
    for (int i = 0; i < head->count; ++i) {
        if (strcmp(head->fields[i], name) == 0)
            return line->fields[i];
    }
    cr_assert_fail("no column %s", name);
    return NULL;
}

static double number(const record *head, const record *line, const char *name)
{
    const char *text = field(head, line, name);
    char *end;
    double value = strtod(text, &end);

    cr_assert(end != text && *end == '\0' && isfinite(value), "%s: \"%s\"",
              name, text);
    return value;
}

static void check_times(const record *head, const record *line)
{
    double lower = number(head, line, "microseconds_lower_quartile");
    double median = number(head, line, "microseconds");
    double upper = number(head, line, "microseconds_upper_quartile");

    cr_assert_str_eq(field(head, line, "status"), "timed");
    cr_assert(0 < lower && lower <= median && median <= upper);
    cr_assert_geq(number(head, line, "samples"), 2);
    cr_assert_geq(number(head, line, "sets"), 2);
    cr_assert_lt(number(head, line, "error"), 5e-3);
    cr_assert_gt(number(head, line, "roofline_share"), 0);
    cr_assert_not_null(field(head, line, "matrix_instruction"));
    cr_assert_float_eq(number(head, line, "gflop_per_second") * 1e3 * median,
                       number(head, line, "flop"),
                       1e-6 * number(head, line, "flop"));
}

/* A head and two lines a problem: the library twice. */
static void check_csv(const char *text)
{
    static record head, line;
    static const char *const problems[] = {PROBLEM, SECOND};
    const char *at = text;

    take_record(&at, &head);
    for (int i = 0; i < 4; ++i) {
        take_record(&at, &line);
        cr_assert_str_eq(field(&head, &line, "problem"), problems[i / 2]);
        cr_assert_str_eq(field(&head, &line, "contender"),
                         i % 2 ? "fp32" : "mixed");
        check_times(&head, &line);
        if (i % 2 == 0)
            cr_assert_eq(number(&head, &line, "ratio"), 1);
        cr_assert_gt(number(&head, &line, "ratio"), 0);
    }
    cr_assert_eq(*at, '\0', "more lines: %s", at);
}

/* ---- Runs --------------------------------------------------------------- */

Test(clconv_bench, prints_a_table_and_writes_what_it_is_asked_for)
{
    char csv[600], json[600], plot[600];
    const char *text;

    join(csv, "--csv=", "a.csv");
    join(json, "--json=", "a.json");
    join(plot, "--plot=", "a.svg");
    run(SECOND, csv, json, plot);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert_str_empty(result.err);
    cr_assert(says("device  ") && says("peaks   fp32 FMA "), "%s", result.out);
    cr_assert(says("\n" PROBLEM " ") && says("\n" SECOND " "), "%s", result.out);
    cr_assert(says("ratio: its time / the time of mixed"), "%s", result.out);
    cr_assert(says("fp32         geometric mean "), "%s", result.out);
    cr_assert(says("(libclconv 0."), "%s", result.out);
    check_csv(read_file("a.csv"));
    text = read_file("a.json");
    cr_assert(json_is_valid(text), "%s", text);
    cr_assert(strstr(text, "\"problem\": \"" SECOND "\""), "%s", text);
    cr_assert(strstr(read_file("a.svg"), "</svg>"));
}

/* Only the finished files stay, whatever was there before. */
Test(clconv_bench, replaces_a_file_and_leaves_no_other)
{
    char csv[600], path[600];
    FILE *file;

    join(path, "", "a.csv");
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("old\n", file);
    fclose(file);
    join(csv, "--csv=", "a.csv");
    run("--ops=dw", csv, NULL, NULL);
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_null(strstr(read_file("a.csv"), "old"));
    cr_assert_eq(remove(path), 0);
    cr_assert_eq(remove(directory), 0, "%s is not empty", directory);
}

Test(clconv_bench, batch_and_layout_are_changed_in_every_problem)
{
    run("--batch=3", "--layout=nhwc", "--max-gflop=0.00001", SECOND);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("\nn3c4h5w5k4r1s1_nhwc "), "%s", result.out);
    cr_assert_not(says("n3c3h6w5"), "%s", result.out);
    cr_assert(says("left out by --max-gflop: 1"), "%s", result.out);
}

Test(clconv_bench, without_peaks_there_is_no_share_of_them)
{
    char json[600];

    join(json, "--json=", "a.json");
    run("--no-peaks", json, NULL, NULL);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("peaks   not measured"), "%s", result.out);
    cr_assert(strstr(read_file("a.json"), "\"roofline_share\": null"));
    cr_assert(strstr(read_file("a.json"), "\"matrix_instruction\": null"));
}

/* No kernel covers it: no time, the reason, and no failure. */
Test(clconv_bench, says_why_a_contender_has_no_time)
{
    run("--plan=bwd_data_mma;bwd_weight_mma", "--only=fp32", NULL, NULL);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("fp32         unsupported: "), "%s", result.out);
    cr_assert(says("1 of 1 problems"), "%s", result.out);
}

Test(clconv_bench, a_faulty_plan_is_a_failure)
{
    run("--plan=bwd_data_none", "--only=fp32", NULL, NULL);
    cr_assert_eq(result.status, 1, "%s%s", result.out, result.err);
    cr_assert(says("FAILED"), "%s", result.out);
    cr_assert(says("bwd_data_none"), "%s", result.out);
}

Test(clconv_bench, names_the_devices_if_none_matches)
{
    run("--device=no such device", NULL, NULL, NULL);
    cr_assert_eq(result.status, 1, "%s", result.err);
    cr_assert(strstr(result.err, "there are: "), "%s", result.err);
}

Test(clconv_bench, fails_if_the_table_cannot_be_written)
{
    program_run((const char *[]){"/bin/sh", "-c",
                                 CLCONV_BENCH " --only fp32 --seconds 0 "
                                              "--repeats 1 " PROBLEM
                                              " >/dev/full",
                                 NULL},
                &result);
    cr_assert_eq(result.status, 1, "status %d", result.status);
    cr_assert(strstr(result.err, "cannot be written to stdout"), "%s",
              result.err);
}

Test(clconv_bench, tells_what_the_report_costs)
{
    program_run((const char *[]){CLCONV_BENCH, "--report-cost", "--seconds",
                                 "0", "--repeats", "2", PROBLEM, NULL},
                &result);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("cost of the report"), "%s", result.out);
    cr_assert(says("geometric mean"), "%s", result.out);
}

Test(clconv_bench, tells_how_long_a_first_result_takes)
{
    program_run((const char *[]){CLCONV_BENCH, "--startup", PROBLEM,
                                 "--repeats", "1", NULL},
                &result);
    cr_assert_eq(result.status, 0, "%s%s", result.out, result.err);
    cr_assert(says("\nempty program ") && says("\ngeneric plan ") &&
                  says("\ndefault plan "),
              "%s", result.out);
    cr_assert(says("ms beside the empty program, empty caches; "), "%s",
              result.out);
}
