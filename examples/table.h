/*
 * The results as a table for people, at most 110 columns wide: a heading per
 * image size, three lines a layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_TABLE_H
#define CLCONV_EXAMPLES_TABLE_H

#include <stdio.h>

#include "experiment.h"

void table_print_size(FILE *to, size_t size, size_t images, double loss);
void table_print_layer(FILE *to, const char *name, const layer_result *layer);

/* What the columns mean. */
void table_print_legend(FILE *to);

#endif
