/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <math.h>

static const char head[] =
    "name,problem,contender,version,status,why,variant,microseconds,"
    "microseconds_lower_quartile,microseconds_upper_quartile,samples,burst,"
    "sets,error,flop,bytes,gflop_per_second,roofline_share,ratio,device,driver,"
    "date,matrix_instruction\n";

static void print_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; ++text) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputs("\",", to);
}

static void print_number(FILE *to, double value)
{
    if (!isnan(value))
        fprintf(to, "%.9g", value);
    fputc(',', to);
}

static void print_times(FILE *to, const entry *e)
{
    if (e->status != ENTRY_TIMED) {
        fputs(",,,,,", to);
        return;
    }
    print_number(to, 1e6 * e->seconds.median);
    print_number(to, 1e6 * e->seconds.lower);
    print_number(to, 1e6 * e->seconds.upper);
    fprintf(to, "%zu,%d,", e->samples, e->burst);
}

static void print_line(FILE *to, const bench_result *b, const row *r, int column)
{
    const contender *c = b->columns.items[column];
    const entry *e = &r->entries[column];
    const char *instruction = b->facts.peaks.matrix_instruction;

    print_text(to, r->name);
    print_text(to, r->problem);
    print_text(to, c->name);
    print_text(to, c->version());
    print_text(to, result_status_name(e->status));
    print_text(to, e->why);
    print_text(to, e->variant);
    print_times(to, e);
    fprintf(to, "%d,", r->sets);
    print_number(to, e->error);
    print_number(to, r->flop);
    print_number(to, e->bytes);
    print_number(to, result_gflops(r, column));
    print_number(to, result_roofline(b, r, column));
    print_number(to, result_ratio(b, r, column));
    print_text(to, b->facts.device);
    print_text(to, b->facts.driver);
    print_text(to, b->facts.date);
    fprintf(to, "\"%s\"\n", instruction ? instruction : "");
}

void print_csv(FILE *to, const bench_result *b)
{
    fputs(head, to);
    for (size_t i = 0; i < b->count; ++i) {
        for (int c = 0; c < b->columns.count; ++c)
            print_line(to, b, &b->rows[i], c);
    }
}
