/*
 * What clconv-tune's processes say to each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clconv/clconv.h"
#include "protocol.h"

static command_strings strings;

static bool parse(const char *line, command *out)
{
    return command_parse(line, strlen(line), &strings, out);
}

Test(tune_lines, a_command_is_read_as_it_was_written)
{
    const char *const plans[] = {"bwd_data_tile:tile_c=14,cast=separate", "",
                                 "a \"quoted\" \\ text\nwith a line"};
    command c = {COMMAND_TIME, "n2c3h4w5k6r1s1_nhwc", CLCONV_OP_DX, 0.1, 3,
                 {0}};
    command read;
    clconv_text text = CLCONV_TEXT_EMPTY;
    memcpy(c.plans, plans, sizeof plans);
    command_format(&c, &text);
    cr_assert_eq(strchr(text.data, '\n'), text.data + text.length - 1, "%s",
                 text.data);
    text.data[text.length - 1] = '\0';
    cr_assert(parse(text.data, &read), "%s", text.data);
    cr_assert_eq(read.verb, c.verb);
    cr_assert_str_eq(read.problem, c.problem);
    cr_assert_eq(read.ops, c.ops);
    cr_assert_eq(read.seconds, c.seconds);
    cr_assert_eq(read.count, 3);
    for (int i = 0; i < 3; ++i)
        cr_assert_str_eq(read.plans[i], plans[i]);
    clconv_text_free(&text);
}

Test(tune_lines, what_is_no_command_is_refused)
{
    static const char *const lines[] = {
        "",
        "do=\"time\"",
        "do=\"dance\" problem=\"n1\" ops=7 plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=0 plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=8 plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=7x plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=7 seconds= plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=7 plan=\"",
        "do=\"time\" problem=\"n1\" ops=7 plan=\"\" more=1",
        "do=\"time\" ops=7 plan=\"\"",
        "do=\"time\" problem=\"n1\" ops=7",
    };
    command c;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i)
        cr_assert_not(parse(lines[i], &c), "%s", lines[i]);
}

Test(tune_lines, a_command_has_so_many_plans_at_most)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    command c;
    clconv_text_puts(&text, "do=\"prepare\" problem=\"n1\" ops=7");
    for (int i = 0; i < COMMAND_MAX_PLANS; ++i)
        clconv_text_puts(&text, " plan=\"x\"");
    cr_assert(parse(text.data, &c));
    cr_assert_eq(c.count, COMMAND_MAX_PLANS);
    clconv_text_puts(&text, " plan=\"x\"");
    cr_assert_not(parse(text.data, &c));
    clconv_text_free(&text);
}

static double random_real(void)
{
    static const double odd[] = {0, INFINITY, 1e-300, 1.0 / 3};
    int which = rand() % 8;
    return which < 4 ? odd[which] : rand() / (double)RAND_MAX * 1e-3;
}

Test(tune_lines, a_trial_is_read_as_it_was_written)
{
    srand(1);
    for (int i = 0; i < 1000; ++i) {
        clconv_trial t = {(clconv_outcome)(rand() % CLCONV_OUTCOMES),
                          random_real(),
                          random_real(),
                          random_real(),
                          random_real(),
                          "why = \"so\""};
        clconv_trial read = trial_failed(CLCONV_TRIAL_OK, "");
        clconv_text text = CLCONV_TEXT_EMPTY;
        answer_format(&t, &text);
        cr_assert(answer_parse(text.data, text.length - 1, &read), "%s",
                  text.data);
        cr_assert_eq(read.outcome, t.outcome);
        cr_assert_eq(read.seconds, t.seconds, "%s", text.data);
        cr_assert_eq(read.lower, t.lower);
        cr_assert_eq(read.upper, t.upper);
        cr_assert_eq(read.error, t.error);
        cr_assert_str_eq(read.why, t.why);
        clconv_text_free(&text);
    }
}

Test(tune_lines, an_unknown_error_stays_unknown)
{
    clconv_trial t = trial_failed(CLCONV_TRIAL_HUNG, "time limit"), read;
    clconv_text text = CLCONV_TEXT_EMPTY;
    answer_format(&t, &text);
    cr_assert(answer_parse(text.data, text.length - 1, &read));
    cr_assert(isnan(read.error));
    clconv_text_free(&text);
}

/* A driver's message in the pipe must not pass for an answer. */
Test(tune_lines, what_is_no_answer_is_refused)
{
    static const char *const lines[] = {
        "",
        "warning: something",
        "outcome=\"fine\"",
        "seconds=0.1",
        "outcome=\"ok\" seconds=fast",
        "outcome=\"ok\" seconds=0.1 ok",
    };
    clconv_trial t;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i)
        cr_assert_not(answer_parse(lines[i], strlen(lines[i]), &t), "%s",
                      lines[i]);
}
