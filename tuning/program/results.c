/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "results.h"

#include <string.h>

/* The longest common problem strings fit. */
#define PROBLEM_WIDTH 34

void results_print_head(FILE *to)
{
    fprintf(to, "%-*s %12s %12s %7s  %s\n", PROBLEM_WIDTH, "problem",
            "default us", "tuned us", "ratio", "kernels");
}

/* A plan's kernels without their values. */
static void print_kernels(FILE *to, const char *plan)
{
    for (const char *separator = ""; *plan; separator = " ") {
        fprintf(to, "%s%.*s", separator, (int)strcspn(plan, ":;"), plan);
        plan += strcspn(plan, ";");
        plan += *plan == ';';
    }
    fputs("\n", to);
}

void results_print(FILE *to, const clconv_record *r)
{
    clconv_text name = CLCONV_TEXT_EMPTY;
    clconv_problem_format(&r->problem, &name);
    fprintf(to, "%-*s ", PROBLEM_WIDTH, name.data ? name.data : "?");
    clconv_text_free(&name);
    if (r->default_microseconds > 0)
        fprintf(to, "%12.1f %12.1f %7.2f  ", r->default_microseconds,
                r->microseconds, r->default_microseconds / r->microseconds);
    else
        fprintf(to, "%12s %12.1f %7s  ", "-", r->microseconds, "-");
    print_kernels(to, r->plan);
}

void results_print_missing(FILE *to, const char *problem, const char *why)
{
    fprintf(to, "%-*s no record: %s\n", PROBLEM_WIDTH, problem, why);
}
