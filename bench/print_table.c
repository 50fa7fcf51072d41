/*
 * A contender is a group of cells: microseconds; of the base then GFLOP/s, of
 * others the ratio; of the library's own then the share of the roofline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <math.h>
#include <string.h>

/* Widths, with the blanks in front. */
enum { W_GFLOP = 9, W_TIME = 11, W_RATE = 10, W_ROOF = 8 };

typedef struct cell {
    char text[24];
} cell;

static cell number(const char *format, double value)
{
    cell c = {"-"};

    if (!isnan(value))
        snprintf(c.text, sizeof(c.text), format, value);
    return c;
}

/* Three digits at least. */
static cell microseconds(double seconds)
{
    double value = 1e6 * seconds;

    return number(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}

/* ---- Columns ------------------------------------------------------------ */

static bool has_roof(const bench_result *b, int column)
{
    const char *name = b->columns.items[column]->name;

    return strcmp(name, "mixed") == 0 || strcmp(name, "fp16") == 0 ||
           strcmp(name, "fp32") == 0;
}

static int group_width(const bench_result *b, int column)
{
    return W_TIME + W_RATE + (has_roof(b, column) ? W_ROOF : 0);
}

static void print_group_units(FILE *to, const bench_result *b, int column)
{
    fprintf(to, "%*s%*s", W_TIME, "us", W_RATE,
            column == b->columns.base ? "GF/s" : "ratio");
    if (has_roof(b, column))
        fprintf(to, "%*s", W_ROOF, "roof");
}

/* ---- Head --------------------------------------------------------------- */

static void print_peaks(FILE *to, const run_facts *f)
{
    if (isnan(f->peaks.copy_bytes)) {
        fputs("peaks   not measured\n", to);
        return;
    }
    fprintf(to, "peaks   fp32 FMA %.0f GFLOP/s", 1e-9 * f->peaks.fma_flops);
    if (f->peaks.matrix_flops > 0)
        fprintf(to, ", fp16 matrix unit %.0f GFLOP/s by %s",
                1e-9 * f->peaks.matrix_flops, f->peaks.matrix_instruction);
    fprintf(to, ", copy %.1f GB/s (measured here)\n",
            1e-9 * f->peaks.copy_bytes);
}

static void print_call(FILE *to, const bench_result *b)
{
    fprintf(to, "call   %s%s%s, fp32 tensors; caches %.1f MiB\n",
            b->ops & CLCONV_OP_DW ? " dW" : "",
            b->ops & CLCONV_OP_DB ? " db" : "",
            b->ops & CLCONV_OP_DX ? " dX" : "",
            (double)b->facts.cache_bytes / (1 << 20));
    if (b->plan)
        fprintf(to, "plan    %s\n", b->plan);
}

static void print_facts(FILE *to, const bench_result *b)
{
    const run_facts *f = &b->facts;

    fprintf(to, "device  %s / %s, %u compute units\n", f->platform, f->device,
            (unsigned)f->compute_units);
    fprintf(to, "driver  %s", f->driver);
    if (f->is_cpu)
        fprintf(to, ", POCL_AFFINITY %s",
                f->pocl_affinity ? f->pocl_affinity : "not set");
    fprintf(to, "\ndate    %s\n", f->date);
    print_peaks(to, f);
    print_call(to, b);
}

void print_table_head(FILE *to, const bench_result *b)
{
    print_facts(to, b);
    fprintf(to, "\n%-*s%*s", b->name_width, "", W_GFLOP, "");
    for (int i = 0; i < b->columns.count; ++i)
        fprintf(to, "%*s", group_width(b, i), b->columns.items[i]->name);
    fprintf(to, "\n%-*s%*s", b->name_width, "problem", W_GFLOP, "GFLOP");
    for (int i = 0; i < b->columns.count; ++i)
        print_group_units(to, b, i);
    fputc('\n', to);
}

/* ---- Rows --------------------------------------------------------------- */

static void print_group(FILE *to, const bench_result *b, const row *r,
                        int column)
{
    const entry *e = &r->entries[column];
    bool is_base = column == b->columns.base;
    cell time = {"-"}, rate;

    if (e->status == ENTRY_TIMED)
        time = microseconds(e->seconds.median);
    else if (e->status != ENTRY_UNSUPPORTED)
        snprintf(time.text, sizeof(time.text), "%s",
                 result_status_name(e->status));
    rate = is_base ? number("%.1f", result_gflops(r, column))
                   : number("%.2f", result_ratio(b, r, column));
    fprintf(to, "%*s%*s", W_TIME, time.text, W_RATE, rate.text);
    if (has_roof(b, column))
        fprintf(to, "%*s", W_ROOF,
                number("%.1f %%", 100 * result_roofline(b, r, column)).text);
}

/* The end of a long name tells more than its beginning. */
static const char *name_end(const char *name)
{
    size_t length = strlen(name);

    return length > PRINT_NAME_MAX ? name + length - PRINT_NAME_MAX : name;
}

void print_table_row(FILE *to, const bench_result *b, const row *r)
{
    fprintf(to, "%-*s%*s", b->name_width, name_end(r->name), W_GFLOP,
            number("%.3f", 1e-9 * r->flop).text);
    for (int i = 0; i < b->columns.count; ++i)
        print_group(to, b, r, i);
    fputc('\n', to);
}

/* ---- End ---------------------------------------------------------------- */

static void print_ratios(FILE *to, const bench_result *b)
{
    if (b->columns.count > 1)
        fprintf(to, "\nratio: its time / the time of %s\n",
                b->columns.items[b->columns.base]->name);
    for (int i = 0; i < b->columns.count; ++i) {
        ratio_summary s = result_summarize(b, i);

        if (i == b->columns.base || s.count == 0)
            continue;
        fprintf(to,
                "  %-12s geometric mean %.2f of %zu, least %.2f (%s), largest "
                "%.2f (%s)\n",
                b->columns.items[i]->name, s.mean, s.count, s.least,
                s.least_row->name, s.largest, s.largest_row->name);
    }
}

static void print_contenders(FILE *to, const bench_result *b)
{
    fputs("\ncontenders\n", to);
    for (int i = 0; i < b->columns.count; ++i) {
        const contender *c = b->columns.items[i];

        fprintf(to, "  %-12s %s (%s)\n", c->name, c->summary, c->version());
    }
    for (int i = 0; i < contender_count; ++i) {
        if (!contenders[i]->version())
            fprintf(to, "  %-12s not built: %s\n", contenders[i]->name,
                    contenders[i]->missing);
    }
}

/* Rows in which the contender has no time for the same reason. */
static size_t count_same(const bench_result *b, int column, const entry *e,
                         size_t from)
{
    size_t count = 0;

    for (size_t i = from; i < b->count; ++i) {
        const entry *other = &b->rows[i].entries[column];

        count += other->status == e->status && strcmp(other->why, e->why) == 0;
    }
    return count;
}

static bool is_first(const bench_result *b, int column, size_t i)
{
    const entry *e = &b->rows[i].entries[column];

    return count_same(b, column, e, 0) == count_same(b, column, e, i);
}

/* Each reason once, with the first problem that has it. */
static void print_reasons(FILE *to, const bench_result *b, int column)
{
    for (size_t i = 0; i < b->count; ++i) {
        const row *r = &b->rows[i];
        const entry *e = &r->entries[column];
        size_t count;

        if (e->status == ENTRY_TIMED || !is_first(b, column, i))
            continue;
        count = count_same(b, column, e, i);
        fprintf(to, "  %-12s %s: %s", b->columns.items[column]->name,
                result_status_name(e->status), e->why);
        fprintf(to, " (%s%s; %zu of %zu problems)\n", r->name,
                count > 1 ? " and others" : "", count, b->count);
    }
}

void print_table_end(FILE *to, const bench_result *b)
{
    print_ratios(to, b);
    print_contenders(to, b);
    for (int i = 0; i < b->columns.count; ++i)
        print_reasons(to, b, i);
    if (b->left_out)
        fprintf(to, "  left out by --max-gflop: %zu\n", b->left_out);
    fputs("us: median time of a call. GFLOP: 2 for each product of dW and dX.\n"
          "roof: of the time that the peaks leave, tensors moved once.\n",
          to);
}
