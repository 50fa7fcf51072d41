/*
 * gnuplot reads its script from a pipe, with the data in it. One size is a
 * group of columns on the x axis, with a gap of one column to the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plot.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"

#define GROUP (NETWORK_CONVS + 1)

/* Opens the file for writing, and leaves no empty one behind. */
static bool can_write(const char *path)
{
    bool is_new = access(path, F_OK) != 0;
    FILE *file = fopen(path, "ab");

    if (!file) {
        message_error("--plot %s: %s", path, strerror(errno));
        return false;
    }
    fclose(file);
    if (is_new)
        unlink(path);
    return true;
}

bool plot_possible(const char *path)
{
    if (system("command -v gnuplot >/dev/null 2>&1") != 0) {
        message_error("--plot needs gnuplot, which is not installed: Debian "
                      "package gnuplot-nox");
        return false;
    }
    return can_write(path);
}

/* One line a layer: x, share lost and cosine of dW at scale 1, then at 2^10.
 * A blank line between sizes ends a curve. */
static void write_data(FILE *to, const size_result *sizes, size_t count)
{
    fputs("$data << END\n", to);
    for (size_t i = 0; i < count; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            const mode_result *mode = sizes[i].layer[l].mode;

            fprintf(to, "%zu", i * GROUP + l);
            for (int m = MODE_SCALE_1; m <= MODE_SCALED; ++m)
                fprintf(to, " %.9g %.9g", 100 * mode[m].lost,
                        mode[m].agreement.dw.cosine);
            fputc('\n', to);
        }
        fputc('\n', to);
    }
    fputs("END\n", to);
}

/* The layers' names below the axis, each size's above its group. */
static void write_axis(FILE *to, const size_result *sizes, size_t count)
{
    fprintf(to, "set xrange [-0.8:%zu.8]\nset xtics rotate by 60 right (",
            count * GROUP - 2);
    for (size_t i = 0; i < count; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l)
            fprintf(to, "%s\"%s\" %zu", i + l ? ", " : "", network_conv_name(l),
                    i * GROUP + l);
    }
    fputs(")\n", to);
    for (size_t i = 0; i < count; ++i)
        fprintf(to,
                "set label \"%zu px, %zu images\" at first %.1f, graph 1.05 "
                "center\n",
                sizes[i].size, sizes[i].images,
                (double)(i * GROUP) + (NETWORK_CONVS - 1) / 2.0);
}

static double lowest_cosine(const size_result *sizes, size_t count)
{
    double low = 1;

    for (size_t i = 0; i < count; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            double c = sizes[i].layer[l].mode[MODE_SCALE_1].agreement.dw.cosine;

            if (c < low)
                low = c;
        }
    }
    return low;
}

static void write_panels(FILE *to, double lowest)
{
    fputs("set multiplot layout 2,1\n"
          "set style fill solid noborder\n"
          "set boxwidth 0.4\n"
          "set lmargin 9\n"
          "set tmargin 2\n"
          "set grid ytics lc rgb '#cccccc'\n"
          "set key outside right top\n"
          "set ylabel 'share of nonzero dY lost, %'\n"
          "set yrange [0:100]\n"
          "plot $data using ($1-0.2):2 with boxes lc rgb '#d55e00' "
          "title 'scale 1', '' using ($1+0.2):4 with boxes lc rgb '#0072b2' "
          "title '2^{10}'\n"
          "set ylabel 'cosine of dW to fp64'\n",
          to);
    fprintf(to, "set yrange [%.2f:1.005]\n", fmin(0.9, floor(10 * lowest) / 10));
    fputs("plot $data using 1:3 with linespoints lw 2 pt 7 lc rgb '#d55e00' "
          "title 'scale 1', '' using 1:5 with linespoints lw 2 pt 5 "
          "lc rgb '#0072b2' title '2^{10}'\n"
          "unset multiplot\n",
          to);
}

/* In gnuplot's single quotes only the quote itself is special. */
static void write_output(FILE *to, const char *path)
{
    fputs("set output '", to);
    for (; *path; ++path)
        fputs(*path == '\'' ? "''" : (char[]){*path, '\0'}, to);
    fputs("'\n", to);
}

bool plot_write(const char *path, const size_result *sizes, size_t count)
{
    FILE *to;
    int status;

    signal(SIGPIPE, SIG_IGN); /* gnuplot may stop before it has read all */
    to = popen("gnuplot", "w");
    if (!to) {
        message_error("gnuplot cannot be started");
        return false;
    }
    fputs("set terminal svg size 1100,760 font 'sans,13' "
          "background rgb 'white'\n",
          to);
    write_output(to, path);
    write_data(to, sizes, count);
    write_axis(to, sizes, count);
    write_panels(to, lowest_cosine(sizes, count));
    status = pclose(to);
    if (status != 0)
        message_error("%s: gnuplot failed to write the plot", path);
    return status == 0;
}
