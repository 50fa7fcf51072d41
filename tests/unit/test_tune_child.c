/*
 * Processes that read and write lines, and those that do not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "child.h"

static const char *const no_settings[] = {NULL};

static void set_up(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(tune_child, .init = set_up);

static child run(const char *script, const char *const *settings)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    child c;
    cr_assert(child_start(&(child_how){argv, settings, "/dev/null"}, &c));
    return c;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static void assert_line(child *c, const char *expected)
{
    char *line;
    cr_assert_eq(child_read(c, child_clock() + 10, &line), CHILD_LINE);
    cr_assert_str_eq(line, expected);
}

static void assert_end(child *c, int status, const char *expected)
{
    char *line;
    clconv_text why = CLCONV_TEXT_EMPTY;
    cr_assert_eq(child_read(c, child_clock() + 10, &line), CHILD_ENDED);
    cr_assert_eq(child_finish(c, &why), status);
    cr_assert_str_eq(why.data, expected);
    clconv_text_free(&why);
}

Test(tune_child, answers_line_by_line)
{
    child c = run("while read -r a; do echo \"<$a>\"; echo; done", no_settings);
    cr_assert(child_write(&c, "one\ntwo\n", 8));
    assert_line(&c, "<one>");
    assert_line(&c, "");
    assert_line(&c, "<two>");
    clconv_text why = CLCONV_TEXT_EMPTY;
    child_kill(&c, &why);
    cr_assert_str_eq(why.data, "signal 9");
    cr_assert_eq(c.id, 0);
    child_kill(&c, &why);
    clconv_text_free(&why);
}

Test(tune_child, says_how_it_ended)
{
    child c = run("echo last; exit 3", no_settings);
    assert_line(&c, "last");
    assert_end(&c, 3, "exit status 3");
    c = run("kill -11 $$", no_settings);
    assert_end(&c, -1, "signal 11");
}

/* Even if one kills what has just crashed, it is known how it did. */
Test(tune_child, keeps_the_signal_of_one_that_is_killed_after_its_end)
{
    for (int i = 0; i < 20; ++i) {
        char *line;
        clconv_text why = CLCONV_TEXT_EMPTY;
        child c = run("kill -11 $$", no_settings);
        cr_assert_eq(child_read(&c, child_clock() + 10, &line), CHILD_ENDED);
        child_kill(&c, &why);
        cr_assert_str_eq(why.data, "signal 11");
        clconv_text_free(&why);
    }
}

Test(tune_child, is_late)
{
    char *line;
    clconv_text why = CLCONV_TEXT_EMPTY;
    child c = run("sleep 60", no_settings);
    double start = child_clock();
    cr_assert_eq(child_read(&c, start + 0.2, &line), CHILD_LATE);
    cr_assert_geq(child_clock() - start, 0.2);
    cr_assert_lt(child_clock() - start, 10);
    child_kill(&c, &why);
    clconv_text_free(&why);
}

Test(tune_child, does_not_read)
{
    child c = run("exec <&-; sleep 60", no_settings);
    clconv_text why = CLCONV_TEXT_EMPTY;
    bool ok = true;
    for (int i = 0; ok && i < 1000; ++i) {
        nap();
        ok = child_write(&c, "x\n", 2);
    }
    cr_assert_not(ok);
    child_kill(&c, &why);
    clconv_text_free(&why);
}

/* What it started ends with it: its other children hold no pipe open. */
Test(tune_child, ends_with_what_it_started)
{
    child c = run("sleep 300 & echo $!; wait", no_settings);
    clconv_text why = CLCONV_TEXT_EMPTY;
    char *line;
    cr_assert_eq(child_read(&c, child_clock() + 10, &line), CHILD_LINE);
    pid_t inner = (pid_t)strtol(line, NULL, 10);
    cr_assert_eq(kill(inner, 0), 0);
    child_kill(&c, &why);
    for (int i = 0; i < 1000 && kill(inner, 0) == 0; ++i)
        nap();
    cr_assert_neq(kill(inner, 0), 0, "%ld lives", (long)inner);
    clconv_text_free(&why);
}

Test(tune_child, has_our_environment_with_the_settings)
{
    const char *const settings[] = {"CLCONV_TEST_A=new", "CLCONV_TEST_C=3",
                                    NULL};
    setenv("CLCONV_TEST_A", "old", 1);
    setenv("CLCONV_TEST_B", "2", 1);
    child c = run("echo $CLCONV_TEST_A $CLCONV_TEST_B $CLCONV_TEST_C", settings);
    assert_line(&c, "new 2 3");
    assert_end(&c, 0, "exit status 0");
}

Test(tune_child, cannot_be_started)
{
    const char *argv[] = {"/nonexistent/program", NULL};
    child c = {.id = 0};
    cr_assert_not(child_start(&(child_how){argv, no_settings, "/dev/null"}, &c));
    cr_assert_eq(c.id, 0);
}

Test(tune_child, is_found_among_several)
{
    child a = run("sleep 60", no_settings), b = run("echo b", no_settings);
    child none = {.id = 0};
    child *all[] = {&none, &a, &b};
    clconv_text why = CLCONV_TEXT_EMPTY;
    cr_assert_eq(child_wait_any(all, 3, child_clock() + 10), 2);
    assert_line(&b, "b");
    assert_end(&b, 0, "exit status 0");
    cr_assert_eq(child_wait_any(all, 2, child_clock() + 0.1), -1);
    child_kill(&a, &why);
    clconv_text_free(&why);
}
