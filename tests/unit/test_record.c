/*
 * Tuned records as lines: what was written is read back, and whatever becomes
 * of a line, it is read back as it was or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "decimal.h"
#include "fields.h"
#include "records.h"

static char *line_of(const clconv_record *r)
{
    clconv_text line = CLCONV_TEXT_EMPTY;
    clconv_record_format(r, &line);
    char *text = clconv_text_take(&line);
    cr_assert_not_null(text);
    return text;
}

/* An edited line is read without its check. */
static char *unsealed_line_of(const clconv_record *r)
{
    char *line = line_of(r);
    *strstr(line, " check=") = '\0';
    return line;
}

/* The line with one text in place of another. */
static char *edit(const char *line, const char *from, const char *to)
{
    const char *at = strstr(line, from);
    cr_assert_not_null(at, "%s in %s", from, line);
    clconv_text edited = CLCONV_TEXT_EMPTY;
    clconv_text_append(&edited, line, (size_t)(at - line));
    clconv_text_puts(&edited, to);
    clconv_text_puts(&edited, at + strlen(from));
    return clconv_text_take(&edited);
}

/* Keeps the sentence, if there is one. */
static clconv_record_result parse(const char *line, size_t length, bool sealed,
                                  clconv_record *out, char *why, size_t size)
{
    clconv_text sentence = CLCONV_TEXT_EMPTY;
    clconv_record_result result =
        clconv_record_parse(line, length, sealed, out, &sentence);
    cr_assert_eq(result == CLCONV_RECORD_OK || result == CLCONV_RECORD_BLANK,
                 sentence.length == 0, "result %d of %.*s: %s", (int)result,
                 (int)length, line, sentence.data);
    snprintf(why, size, "%s", sentence.data ? sentence.data : "");
    clconv_text_free(&sentence);
    return result;
}

static clconv_record sample(void)
{
    clconv_device cpu;
    cr_assert(clconv_device_preset("cpu", &cpu));
    strcpy(cpu.name, "AMD EPYC \"Rome\" C:\\7");
    strcpy(cpu.vendor, "AuthenticAMD");
    strcpy(cpu.platform, "Portable Computing Language");
    strcpy(cpu.driver, "3.1+debian");
    return record_of("n32c64h16w16k64r3s3p1", &cpu);
}

/* ---- There and back ---------------------------------------------------- */

Test(record, any_record_is_read_back_as_it_was)
{
    unsigned seed = 1;
    for (int i = 0; i < 5000; ++i) {
        clconv_record r = record_random(&seed), back;
        char why[512];
        char *line = line_of(&r);
        cr_assert_eq(parse(line, strlen(line), true, &back, why, sizeof why),
                     CLCONV_RECORD_OK, "%s: %s", line, why);
        char *again = line_of(&back);
        cr_assert_str_eq(line, again);
        cr_assert(clconv_record_same_key(&r, &back), "%s", line);
        cr_assert_eq(r.ops, back.ops, "%s", line);
        cr_assert_str_eq(r.plan, back.plan);
        cr_assert_str_eq(r.device.name, back.device.name);
        cr_assert_str_eq(r.device.driver, back.device.driver);
        cr_assert_float_eq(r.microseconds, back.microseconds, 1e-9, "%s", line);
        cr_assert_float_eq(r.error, back.error, 1e-12, "%s", line);
        free(again);
        free(line);
    }
}

Test(record, a_line_reads_as_the_header_shows_it)
{
    clconv_record r = sample();
    char *line = line_of(&r);
    static const char *const parts[] = {
        "problem=n32c64h16w16k64r3s3p1 ops=dw,db,dx plan=\"cast:",
        "\" us=812.400 default_us=1043.000 error=3.1e-4 kind=cpu unit=none ",
        " registers=32 device=",
        "device=\"AMD EPYC \\\"Rome\\\" C:\\\\7\" cus=2 "
        "vendor=\"AuthenticAMD\" ",
        " revisions=cast:",
        " date=2026-11-30 check=",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        cr_assert_not_null(strstr(line, parts[i]), "%s in %s", parts[i], line);
    free(line);
}

Test(record, what_is_not_known_is_left_out)
{
    clconv_record r = sample(), back;
    r.error = NAN;
    r.default_microseconds = 0;
    r.date[0] = '\0';
    char why[512];
    char *line = line_of(&r);
    cr_assert_null(strstr(line, "error="));
    cr_assert_null(strstr(line, "default_us="));
    cr_assert_null(strstr(line, "date="));
    cr_assert_eq(parse(line, strlen(line), true, &back, why, sizeof why),
                 CLCONV_RECORD_OK, "%s", why);
    cr_assert(isnan(back.error));
    cr_assert_eq(back.default_microseconds, 0);
    cr_assert_str_eq(back.date, "");
    free(line);
}

/* ---- Damage ------------------------------------------------------------ */

static void expect_refused(const char *line, size_t length, const char *how)
{
    clconv_record out;
    char why[512];
    clconv_record_result result =
        parse(line, length, true, &out, why, sizeof why);
    cr_assert_neq(result, CLCONV_RECORD_OK, "%s: %.*s", how, (int)length, line);
}

Test(record, no_flipped_bit_gives_another_record)
{
    unsigned seed = 2;
    for (int i = 0; i < 10; ++i) {
        clconv_record r = record_random(&seed);
        char *line = line_of(&r);
        size_t length = strlen(line);
        for (size_t bit = 0; bit < 8 * length; ++bit) {
            line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
            expect_refused(line, length, "a flipped bit");
            line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
        }
        free(line);
    }
}

Test(record, no_part_of_a_line_is_a_record)
{
    clconv_record r = sample();
    char *line = line_of(&r);
    for (size_t length = strlen(line); length-- > 0;)
        expect_refused(line, length, "cut off");
    for (size_t start = 1; line[start]; ++start)
        expect_refused(line + start, strlen(line + start), "its end alone");
    free(line);
}

Test(record, no_damage_gives_another_record)
{
    unsigned seed = 3;
    damage_random random = {3};
    for (int i = 0; i < 5000; ++i) {
        clconv_record r = record_random(&seed);
        char *line = line_of(&r);
        size_t length = strlen(line);
        char bytes[CLCONV_RECORD_LINE];
        memcpy(bytes, line, length);
        size_t size =
            damage(&random, (unsigned char *)bytes, length, sizeof bytes);
        if (size != length || memcmp(bytes, line, length) != 0)
            expect_refused(bytes, size, "damaged");
        free(line);
    }
}

Test(record, arbitrary_bytes_are_no_record)
{
    unsigned seed = 4;
    for (int i = 0; i < 5000; ++i) {
        char bytes[600];
        int length = 1 + record_pick(&seed, (int)sizeof bytes - 1);
        for (int j = 0; j < length; ++j)
            bytes[j] = (char)record_pick(&seed, 256);
        expect_refused(bytes, (size_t)length, "any bytes");
    }
}

/* ---- Lines that people and other versions write ------------------------ */

/* One edit of a line without a check, and what is said about it. */
static void expect(const char *from, const char *to, clconv_record_result want,
                   const char *sentence)
{
    clconv_record r = sample(), out;
    char why[512];
    char *line = unsealed_line_of(&r);
    char *edited = edit(line, from, to);
    clconv_record_result got =
        parse(edited, strlen(edited), false, &out, why, sizeof why);
    cr_assert_eq(got, want, "result %d (%s) of %s", (int)got, why, edited);
    cr_assert_not_null(strstr(why, sentence), "\"%s\" in \"%s\" of %s",
                       sentence, why, edited);
    free(edited);
    free(line);
}

Test(record, a_line_without_a_check_is_read_unless_it_must_be_sealed)
{
    clconv_record r = sample(), out;
    char why[512];
    char *line = unsealed_line_of(&r);
    cr_assert_eq(parse(line, strlen(line), false, &out, why, sizeof why),
                 CLCONV_RECORD_OK, "%s: %s", line, why);
    cr_assert_eq(parse(line, strlen(line), true, &out, why, sizeof why),
                 CLCONV_RECORD_DAMAGED);
    cr_assert_str_eq(why, "it does not end with check=");
    free(line);
}

Test(record, fields_stand_in_any_order)
{
    expect("problem=n32c64h16w16k64r3s3p1 ops=dw,db,dx",
           "ops=dx,dw,db  problem=\"n32c64h16w16k64r3s3p1\"", CLCONV_RECORD_OK,
           "");
}

Test(record, empty_lines_and_comments_are_none)
{
    static const char *const blanks[] = {"", "   ", "# a comment", "  # one"};
    clconv_record out;
    char why[512];
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; ++i)
        cr_assert_eq(
            parse(blanks[i], strlen(blanks[i]), false, &out, why, sizeof why),
            CLCONV_RECORD_BLANK, "\"%s\"", blanks[i]);
}

Test(record, of_another_revision_or_kernel_it_is_stale)
{
    expect("revisions=cast:", "revisions=cast:9", CLCONV_RECORD_STALE,
           "revisions is \"cast:9");
    expect("plan=\"cast:", "plan=\"cast_gone:", CLCONV_RECORD_STALE,
           "no kernel \"cast_gone\"");
    expect("plan=\"cast:", "plan=\"cast:gone=3,", CLCONV_RECORD_STALE, "gone");
}

Test(record, what_a_later_version_may_say_is_unknown)
{
    expect(" us=", " energy=12 us=", CLCONV_RECORD_UNKNOWN, "no field energy");
    expect("p1 ", "p1_bf16 ", CLCONV_RECORD_UNKNOWN, "problem string");
    expect("ops=dw", "ops=y,dw", CLCONV_RECORD_UNKNOWN, "some of dw,db,dx");
    expect("unit=none", "unit=wmma", CLCONV_RECORD_UNKNOWN, "matrix unit");
    expect("unit=none", "unit=mma_m16n8k16+wmma", CLCONV_RECORD_UNKNOWN,
           "matrix unit");
    expect("kind=cpu", "kind=npu", CLCONV_RECORD_UNKNOWN, "cpu or gpu");
}

Test(record, every_fault_is_named)
{
    static const struct {
        const char *from, *to, *sentence;
    } faults[] = {
        {"us=812.400", "us=-1", "us is \"-1\"; it must be a number"},
        {"us=812.400", "us=0", "it must be in [0.001, 1e12]"},
        {"us=812.400", "us=1e13", "it must be in [0.001, 1e12]"},
        {"us=812.400", "us=0x10", "a number"},
        {"us=812.400", "us=nan", "a number"},
        {"us=812.400", "us=812,4", "a number"},
        {"us=812.400", "us=", "a value is missing"},
        {"us=812.400", "us", "expected name=value"},
        {"us=812.400", "us=812.4 us=1", "it must be there once"},
        {"us=812.400 ", "", "us= is missing"},
        {"cus=2", "cus=0", "[1, 2^20]"},
        {"cus=2", "cus=2.5", "[1, 2^20]"},
        {"date=2026", "date=26", "as 2026-11-30"},
        {"device=\"", "device=\"\\q", "expected \\\", \\\\ or \\x"},
        {"device=\"", "device=\"\\x00", "not 00"},
        {"device=\"", "device=\"\t", "control character"},
        {"driver=\"3.1+debian\"", "driver=\"3.1+debian", "not closed"},
        {"driver=\"3.1+debian\"", "driver=\"3.1\"+", "expected a space"},
        {"driver=\"3.1+debian\"", "driver=3\"1", "must be in quotes"},
        {" date=", " check=0123 date=", "check= must be the last"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i)
        expect(faults[i].from, faults[i].to, CLCONV_RECORD_DAMAGED,
               faults[i].sentence);
}

Test(record, a_plan_names_a_kernel_for_every_output)
{
    clconv_record r = sample(), out;
    char why[512];
    *strchr(r.plan, ';') = '\0';
    char *line = line_of(&r);
    cr_assert_eq(parse(line, strlen(line), true, &out, why, sizeof why),
                 CLCONV_RECORD_DAMAGED);
    cr_assert_str_eq(why, "plan names no kernel for dx");
    free(line);
}

/* It stands for cast, dX and dW where both gradients were timed. */
Test(record, a_kernel_for_both_gradients_needs_no_other)
{
    static const struct {
        unsigned ops;
        clconv_record_result result;
    } cases[] = {
        {CLCONV_OP_BACKWARD, CLCONV_RECORD_OK},
        {CLCONV_OP_DX | CLCONV_OP_DW, CLCONV_RECORD_OK},
        {CLCONV_OP_DX, CLCONV_RECORD_DAMAGED},
        {CLCONV_OP_DW | CLCONV_OP_DB, CLCONV_RECORD_DAMAGED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_record r = sample(), out;
        char why[512];
        strcpy(r.plan, "bwd_fused:shape=baked");
        r.ops = cases[i].ops;
        char *line = line_of(&r);
        cr_assert_eq(parse(line, strlen(line), true, &out, why, sizeof why),
                     cases[i].result, "%u: %s", cases[i].ops, why);
        free(line);
    }
}

Test(record, a_line_has_a_limit)
{
    static char line[CLCONV_RECORD_LINE + 1];
    clconv_record out;
    char why[512];
    memset(line, ' ', sizeof line);
    cr_assert_eq(parse(line, sizeof line - 1, false, &out, why, sizeof why),
                 CLCONV_RECORD_BLANK);
    cr_assert_eq(parse(line, sizeof line, false, &out, why, sizeof why),
                 CLCONV_RECORD_DAMAGED);
}

/* ---- Keys -------------------------------------------------------------- */

Test(record, a_key_is_the_problem_the_outputs_and_the_device)
{
    clconv_record a = sample(), b = sample();
    b.microseconds = 1;
    strcpy(b.date, "2027-01-01");
    strcpy(b.plan, "cast");
    cr_assert(clconv_record_same_key(&a, &b));
    b = a, b.ops = CLCONV_OP_DX;
    cr_assert_not(clconv_record_same_key(&a, &b));
    b = a, strcpy(b.device.driver, "another");
    cr_assert_not(clconv_record_same_key(&a, &b));
    b = a, b.device.compute_units++;
    cr_assert_not(clconv_record_same_key(&a, &b));
    b = a, b.problem.scale_log2++;
    cr_assert_not(clconv_record_same_key(&a, &b));
}

/* ---- Numbers ----------------------------------------------------------- */

Test(record, numbers_are_read_to_the_last_bit)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},           {"812.400", 812.4},
        {"3.1e-4", 3.1e-4}, {"1e22", 1e22},
        {"0.001", 0.001},   {"123456789012345", 123456789012345},
        {"2e+3", 2000},
    };
    static const char *const bad[] = {
        "",     ".",     "1.",  ".5", "-1", "+1",   "1e",
        "1e-",  "0x1p3", "inf", " 1", "1 ", "1e23", "1234567890123456",
        "1e-23"};
    double value = -1;
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        cr_assert(clconv_decimal_parse(good[i].text, &value), "%s",
                  good[i].text);
        cr_assert_eq(value, good[i].value, "%s gives %.17g", good[i].text,
                     value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        cr_assert_not(clconv_decimal_parse(bad[i], &value), "%s", bad[i]);
}

Test(record, short_numbers_have_two_digits)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},          {1e-21, "0"},       {3.14e-4, "3.1e-4"},
                 {9.99, "1.0e1"},   {1, "1.0e0"},       {0.0996, "1.0e-1"},
                 {123456, "1.2e5"}, {1e-20, "1.0e-20"}, {1e20, "1.0e20"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_decimal_put_short(&text, cases[i].value);
        cr_assert_str_eq(text.data, cases[i].text);
        clconv_text_free(&text);
    }
}
