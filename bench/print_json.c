/*
 * Objects are written by hand, a line of the object a line of the code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <math.h>

/* Names come from devices and files. What is not ASCII becomes '?': the
 * problem string beside a name identifies it. */
static void print_text(FILE *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', to);
    for (; *at; ++at) {
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7F)
            fprintf(to, "\\u%04x", *at);
        else
            fputc(*at < 0x80 ? *at : '?', to);
    }
    fputc('"', to);
}

static void print_text_member(FILE *to, const char *key, const char *text)
{
    fprintf(to, "\"%s\": ", key);
    if (text)
        print_text(to, text);
    else
        fputs("null", to);
    fputs(", ", to);
}

/* end: ", ", or what closes the object. */
static void print_number_member(FILE *to, const char *key, double value,
                                const char *end)
{
    fprintf(to, "\"%s\": ", key);
    if (isfinite(value))
        fprintf(to, "%.9g%s", value, end);
    else
        fprintf(to, "null%s", end);
}

/* ---- Facts -------------------------------------------------------------- */

static void print_facts(FILE *to, const bench_result *b)
{
    const run_facts *f = &b->facts;

    fputs("  ", to);
    print_text_member(to, "version", clconv_version());
    print_text_member(to, "date", f->date);
    fputs("\n  ", to);
    print_text_member(to, "platform", f->platform);
    print_text_member(to, "device", f->device);
    print_text_member(to, "driver", f->driver);
    print_number_member(to, "compute_units", f->compute_units, ",\n  ");
    print_text_member(to, "pocl_affinity", f->pocl_affinity);
    print_number_member(to, "cache_bytes", (double)f->cache_bytes, ",\n  ");
    print_number_member(to, "peak_fma_flops", f->peaks.fma_flops, ", ");
    print_number_member(to, "peak_matrix_flops", f->peaks.matrix_flops, ", ");
    print_text_member(to, "matrix_instruction", f->peaks.matrix_instruction);
    print_number_member(to, "peak_copy_bytes", f->peaks.copy_bytes, ",\n  ");
    fprintf(to, "\"dw\": %s, \"db\": %s, \"dx\": %s, ",
            b->ops & CLCONV_OP_DW ? "true" : "false",
            b->ops & CLCONV_OP_DB ? "true" : "false",
            b->ops & CLCONV_OP_DX ? "true" : "false");
    print_text_member(to, "plan", b->plan);
    fputc('\n', to);
}

/* ---- Contenders --------------------------------------------------------- */

static void print_contender(FILE *to, const bench_result *b, int column)
{
    const contender *c = b->columns.items[column];
    ratio_summary s = result_summarize(b, column);

    fputs("    {", to);
    print_text_member(to, "name", c->name);
    print_text_member(to, "version", c->version());
    print_text_member(to, "summary", c->summary);
    print_number_member(to, "ratios", (double)s.count, ", ");
    print_number_member(to, "ratio_geometric_mean", s.mean, ", ");
    print_number_member(to, "ratio_least", s.count ? s.least : (double)NAN,
                        ", ");
    print_number_member(to, "ratio_largest", s.count ? s.largest : (double)NAN,
                        "}");
}

static void print_contenders(FILE *to, const bench_result *b)
{
    fprintf(to, "  \"base\": \"%s\",\n  \"contenders\": [\n",
            b->columns.items[b->columns.base]->name);
    for (int i = 0; i < b->columns.count; ++i) {
        print_contender(to, b, i);
        fputs(i + 1 < b->columns.count ? ",\n" : "\n  ],\n", to);
    }
}

/* ---- Problems ----------------------------------------------------------- */

static void print_entry(FILE *to, const bench_result *b, const row *r,
                        int column)
{
    const entry *e = &r->entries[column];
    bool timed = e->status == ENTRY_TIMED;
    spread s = timed ? e->seconds : (spread){NAN, NAN, NAN};

    fputs("      {", to);
    print_text_member(to, "contender", b->columns.items[column]->name);
    print_text_member(to, "status", result_status_name(e->status));
    print_text_member(to, "why", timed ? NULL : e->why);
    print_text_member(to, "variant", *e->variant ? e->variant : NULL);
    print_number_member(to, "microseconds", 1e6 * s.median, ", ");
    print_number_member(to, "lower_quartile", 1e6 * s.lower, ", ");
    print_number_member(to, "upper_quartile", 1e6 * s.upper, ", ");
    print_number_member(to, "samples", (double)e->samples, ", ");
    print_number_member(to, "burst", e->burst, ", ");
    print_number_member(to, "bytes", e->bytes, ", ");
    print_number_member(to, "error", e->error, ", ");
    print_number_member(to, "gflop_per_second", result_gflops(r, column), ", ");
    print_number_member(to, "roofline_share", result_roofline(b, r, column),
                        ", ");
    print_number_member(to, "ratio", result_ratio(b, r, column), "}");
}

static void print_row(FILE *to, const bench_result *b, const row *r)
{
    fputs("    {", to);
    print_text_member(to, "name", r->name);
    print_text_member(to, "problem", r->problem);
    print_number_member(to, "flop", r->flop, ", ");
    print_number_member(to, "sets", r->sets, ",\n     ");
    fputs("\"times\": [\n", to);
    for (int i = 0; i < b->columns.count; ++i) {
        print_entry(to, b, r, i);
        fputs(i + 1 < b->columns.count ? ",\n" : "\n     ]}", to);
    }
}

void print_json(FILE *to, const bench_result *b)
{
    fputs("{\n", to);
    print_facts(to, b);
    print_contenders(to, b);
    fputs("  \"problems\": [\n", to);
    for (size_t i = 0; i < b->count; ++i) {
        print_row(to, b, &b->rows[i]);
        fputs(i + 1 < b->count ? ",\n" : "\n", to);
    }
    fputs("  ]\n}\n", to);
}
