/*
 * gnuplot reads its script from a pipe, with the data in it. The first problem
 * stands at the top.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plot.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "file_out.h"
#include "message.h"

/* Pixels. */
enum { WIDTH = 900, LINE_HEIGHT = 22, FRAME_HEIGHT = 110 };

bool plot_possible(void)
{
    if (system("command -v gnuplot >/dev/null 2>&1") == 0)
        return true;
    message_error("--plot needs gnuplot, which is not installed: Debian "
                  "package gnuplot-nox");
    return false;
}

/* In gnuplot's single quotes only the quote itself is special. */
static void write_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; ++text)
        fputs(*text == '\'' ? "''" : (char[]){*text, '\0'}, to);
    fputc('\'', to);
}

/* Contenders with points, but for the base, whose ratios are 1. */
static bool is_drawn(const bench_result *b, int column)
{
    return column != b->columns.base && result_summarize(b, column).count > 0;
}

/* Place of the line, then a ratio each column. */
static void write_data(FILE *to, const bench_result *b)
{
    fputs("$data << END\n", to);
    for (size_t i = 0; i < b->count; ++i) {
        fprintf(to, "%zu", b->count - 1 - i);
        for (int c = 0; c < b->columns.count; ++c) {
            double ratio = result_ratio(b, &b->rows[i], c);

            if (isnan(ratio))
                fputs(" NaN", to);
            else
                fprintf(to, " %.6g", ratio);
        }
        fputc('\n', to);
    }
    fputs("END\n", to);
}

static void write_names(FILE *to, const bench_result *b)
{
    fprintf(to, "set yrange [-0.7:%zu.7]\nset ytics noenhanced (", b->count - 1);
    for (size_t i = 0; i < b->count; ++i) {
        fputs(i ? ", " : "", to);
        write_quoted(to, b->rows[i].name);
        fprintf(to, " %zu", b->count - 1 - i);
    }
    fputs(")\n", to);
}

static void write_axis(FILE *to, const bench_result *b)
{
    double low = 0.5, high = 2;

    for (int c = 0; c < b->columns.count; ++c) {
        ratio_summary s = result_summarize(b, c);

        low = s.count ? fmin(low, s.least) : low;
        high = s.count ? fmax(high, s.largest) : high;
    }
    fprintf(to, "set logscale x\nset xrange [%.6g:%.6g]\n", 0.9 * low,
            1.1 * high);
    fputs("set xtics (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, "
          "100, 200, 500, 1000)\n"
          "set xlabel \"time / time of ",
          to);
    fprintf(to, "%s (above 1: %s is faster)\" noenhanced\n",
            b->columns.items[b->columns.base]->name,
            b->columns.items[b->columns.base]->name);
}

static void write_points(FILE *to, const bench_result *b)
{
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                          "#cc79a7", "#e69f00", "#56b4e9",
                                          "#000000", "#999999"};
    const char *begin = "plot ";

    for (int c = 0; c < b->columns.count; ++c) {
        if (!is_drawn(b, c))
            continue;
        fprintf(to,
                "%s$data using %d:1 with points pt 7 ps 0.9 lc rgb '%s' "
                "title '%s' noenhanced",
                begin, c + 2, colours[c], b->columns.items[c]->name);
        begin = ", ";
    }
    fputc('\n', to);
}

static void write_script(FILE *to, const bench_result *b, const char *path)
{
    fprintf(to,
            "set terminal svg size %d,%zu font 'sans,13' background rgb "
            "'white'\nset output ",
            WIDTH, FRAME_HEIGHT + LINE_HEIGHT * b->count);
    write_quoted(to, path);
    fputs("\nset title ", to);
    write_quoted(to, b->facts.device);
    fputs(" noenhanced\n"
          "set grid x y lc rgb '#cccccc'\n"
          "set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb "
          "'#555555'\n"
          "set key outside right top\n",
          to);
    write_data(to, b);
    write_names(to, b);
    write_axis(to, b);
    write_points(to, b);
}

static bool has_points(const bench_result *b)
{
    for (int c = 0; c < b->columns.count; ++c) {
        if (is_drawn(b, c))
            return true;
    }
    return false;
}

static bool draw(const char *path, const bench_result *b)
{
    FILE *to;

    signal(SIGPIPE, SIG_IGN); /* gnuplot may stop before it has read all */
    to = popen("gnuplot", "w");
    if (!to)
        return false;
    write_script(to, b, path);
    return pclose(to) == 0;
}

bool plot_write(const char *path, const bench_result *b)
{
    file_out f;

    if (!has_points(b)) {
        message_error("--plot %s: there are no two times to compare", path);
        return false;
    }
    if (!file_out_begin(path, &f))
        return false;
    if (draw(f.temporary, b))
        return file_out_commit(&f);
    message_error("--plot %s: gnuplot failed to write the plot", path);
    file_out_discard(&f);
    return false;
}
