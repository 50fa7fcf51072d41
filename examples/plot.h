/*
 * The results as a picture, drawn by gnuplot: above, the share of dY that
 * fp16 lost, per layer and image size, at scale 1 and at 2^10; below, the
 * cosine of dW.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_PLOT_H
#define CLCONV_EXAMPLES_PLOT_H

#include <stdbool.h>

#include "experiment.h"

/* Whether gnuplot is there and path can be written, to be asked before the
 * long work; if not, a line on stderr says what is missing. */
bool plot_possible(const char *path);

/* Writes an SVG file. false: said on stderr. */
bool plot_write(const char *path, const size_result *sizes, size_t count);

#endif
