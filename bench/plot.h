/*
 * The ratios of a result as a picture, drawn by gnuplot: a line a problem, a
 * point a contender, on a logarithmic axis with a mark at 1.
 *
 * False means that one line went to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PLOT_H
#define CLCONV_BENCH_PLOT_H

#include <stdbool.h>

#include "result.h"

/* Whether gnuplot is there, to be asked before the long work. */
bool plot_possible(void);

/* Writes an SVG file. */
bool plot_write(const char *path, const bench_result *b);

#endif
