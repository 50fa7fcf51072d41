/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "text.h"

Test(text, grows_past_any_first_capacity)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    for (int i = 0; i < 1000; ++i)
        clconv_text_printf(&t, "%04d", i);
    char *s = clconv_text_take(&t);
    cr_assert_eq(strlen(s), 4000);
    cr_assert_str_eq(s + 3996, "0999");
    free(s);
    cr_assert_null(t.data);
}

Test(text, an_empty_text_is_an_empty_string)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    char *s = clconv_text_take(&t);
    cr_assert_str_eq(s, "");
    free(s);
}

Test(text, a_failure_sticks)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_text_puts(&t, "before");
    clconv_text_append(&t, "", (size_t)-1 / 2 + 2); /* no such memory */
    clconv_text_puts(&t, "after");
    cr_assert_null(clconv_text_take(&t));
}

Test(status, every_code_has_a_name_and_a_text)
{
#define CHECK(code, value, sentence)                                           \
    cr_assert_eq((int)code, value);                                            \
    cr_assert_str_eq(clconv_status_name(code), #code);                         \
    cr_assert_str_eq(clconv_status_text(code), sentence);
    CLCONV_STATUS_LIST(CHECK)
#undef CHECK
    cr_assert_not_null(clconv_status_name((clconv_status)77));
    cr_assert_not_null(clconv_status_text((clconv_status)77));
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    clconv_fail(CLCONV_INTERNAL, "elsewhere");
    return NULL;
}

Test(status, the_last_error_belongs_to_its_thread)
{
    pthread_t thread;
    cr_assert_eq(clconv_fail(CLCONV_UNSUPPORTED, "here %d", 1),
                 CLCONV_UNSUPPORTED);
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
    cr_assert_str_eq(clconv_last_error(), "here 1");
    clconv_fail_prefix("plan, %s: ", "cast");
    cr_assert_str_eq(clconv_last_error(), "plan, cast: here 1");
}

Test(status, an_overlong_sentence_is_cut_not_overrun)
{
    char *longest = malloc(10000);
    memset(longest, 'x', 9999);
    longest[9999] = '\0';
    clconv_fail(CLCONV_INTERNAL, "%s", longest);
    clconv_fail_prefix("%s", "prefix: ");
    cr_assert_eq(strncmp(clconv_last_error(), "prefix: xxx", 11), 0);
    cr_assert_lt(strlen(clconv_last_error()), 9999);
    free(longest);
}
