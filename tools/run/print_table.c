/*
 * The table: facts, then what the casts did, then the arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <inttypes.h>

#include "extent.h"

static void print_facts(const run_facts *facts)
{
    printf("problem  %s\n", facts->problem);
    printf("device   %s / %s\n", facts->platform, facts->device);
    printf("plan     %s\n", facts->plan);
    printf("time     %.3f ms for dw, db and dx, after a warm-up\n",
           facts->milliseconds);
}

/* 12.34 %, "0 %" and "<0.01 %", so that a loss never reads as none. */
static void format_share(uint64_t part, uint64_t whole, char *text, size_t size)
{
    double share = whole ? 100.0 * (double)part / (double)whole : 0.0;

    if (part == 0)
        snprintf(text, size, "0 %%");
    else if (share < 0.01)
        snprintf(text, size, "<0.01 %%");
    else
        snprintf(text, size, "%.2f %%", share);
}

static void print_counts(const print_row *row)
{
    const clconv_counts *c = row->counts;
    char lost[32];

    if (!c)
        return;
    format_share(c->zeroed, c->nonzero, lost, sizeof(lost));
    printf("%-6s %12" PRIu64 " %10" PRIu64 " %9s %10" PRIu64 " %10" PRIu64
           " %8" PRIu64 " %8" PRIu64 "\n",
           row->name, c->nonzero, c->zeroed, lost, c->subnormal, c->saturated,
           c->nan, c->inf);
}

static void print_array(const print_row *row)
{
    extent e = extent_of(row->array);
    char text[256];

    npy_header_describe(&row->array->header, text, sizeof(text));
    printf("%-6s %12.6g %8" PRIu64 " %8" PRIu64 "   %-28s %s\n", row->name,
           e.max_abs, e.nan, e.inf, text, row->path);
}

void print_table(const run_summary *summary)
{
    print_row rows[PRINT_ROWS];

    print_collect_rows(summary, rows);
    print_facts(summary->facts);
    printf("\n%-6s %12s %10s %9s %10s %10s %8s %8s\n", "cast", "nonzero",
           "to zero", "lost", "subnormal", "saturated", "NaN", "Inf");
    for (size_t i = 0; i < PRINT_ROWS; ++i)
        print_counts(&rows[i]);
    printf("\n%-6s %12s %8s %8s   %-28s %s\n", "array", "max |.|", "NaN", "Inf",
           "type and shape", "file");
    for (size_t i = 0; i < PRINT_ROWS; ++i)
        print_array(&rows[i]);
}
