/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "shuffles.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { GROUPS = 6 };

static const char element[] = "0123456789abcdef";

/* A group of a match, for "%.*s". */
#define SHOWN(source, group)                                                   \
    (int)((group).rm_eo - (group).rm_so), (source) + (group).rm_so

/* "float8 eight = v.lo + v.hi;": 1 float, 2 eight, 3 v. */
static const char sum_pattern[] =
    "\\(float\\|int\\)8 \\([a-z0-9_]*\\) = \\([a-z0-9_]*\\)\\.lo + \\3\\.hi;";

static void spell_sum(clconv_text *out, const char *s, const regmatch_t *m)
{
    clconv_text_printf(out, "%.*s8 %.*s = (%.*s8)(", SHOWN(s, m[1]),
                       SHOWN(s, m[2]), SHOWN(s, m[1]));
    for (int i = 0; i < 8; ++i)
        clconv_text_printf(out, "%s%.*s.s%c + %.*s.s%c", i ? ", " : "",
                           SHOWN(s, m[3]), element[i], SHOWN(s, m[3]),
                           element[i + 8]);
    clconv_text_puts(out, ");");
}

/* "(float16)(a.even, b.even)": 1 a, 3 b, 2 and 4 even or odd. */
static const char pair_pattern[] =
    "(float16)(\\([][a-z0-9_]*\\)\\.\\(even\\|odd\\), "
    "\\([][a-z0-9_]*\\)\\.\\(even\\|odd\\))";

static void spell_pair(clconv_text *out, const char *s, const regmatch_t *m)
{
    clconv_text_puts(out, "(float16)(");
    for (int i = 0; i < 16; ++i) {
        const regmatch_t *half = i < 8 ? &m[1] : &m[3];
        int is_odd = s[half[1].rm_so] == 'o';
        clconv_text_printf(out, "%s%.*s.s%c", i ? ", " : "", SHOWN(s, half[0]),
                           element[i % 8 * 2 + is_odd]);
    }
    clconv_text_puts(out, ")");
}

static char *spell(const char *source, const char *pattern,
                   void (*write)(clconv_text *, const char *, const regmatch_t *))
{
    clconv_text out = CLCONV_TEXT_EMPTY;
    regmatch_t match[GROUPS];
    regex_t regex;

    if (regcomp(&regex, pattern, 0) != 0)
        return NULL;
    while (regexec(&regex, source, GROUPS, match, 0) == 0) {
        clconv_text_append(&out, source, (size_t)match[0].rm_so);
        write(&out, source, match);
        source += match[0].rm_eo;
    }
    clconv_text_puts(&out, source);
    regfree(&regex);
    return clconv_text_take(&out);
}

char *shuffles_spell(const char *source)
{
    char *sums = spell(source, sum_pattern, spell_sum);
    char *text = sums ? spell(sums, pair_pattern, spell_pair) : NULL;

    free(sums);
    return text;
}
