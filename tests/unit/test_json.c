/*
 * The checker of JSON that other tests rely on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "json.h"

Test(json, good_texts_are_valid)
{
    static const char *const texts[] = {
        "{}",       " [ ] ",
        "-0.5e+10", "\"\\u00e9\\n\\\"\"",
        "null",     "{\"a\": [1, 2, {\"b\": true}], \"c\": false}\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
        cr_assert(json_is_valid(texts[i]), "%s", texts[i]);
}

Test(json, bad_texts_are_not)
{
    static const char *const texts[] = {
        "",        "{",         "[1,]",  "{\"a\" 1}", "{\"a\": 1,}", "{a: 1}",
        "nan",     "01",        "1.",    "inf",       "\"",          "\"\n\"",
        "\"\\x\"", "\"\\u12\"", "{} {}", "-"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
        cr_assert_not(json_is_valid(texts[i]), "%s", texts[i]);
}
