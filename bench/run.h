/*
 * A whole comparison: device, peaks, every problem, table and files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_RUN_H
#define CLCONV_BENCH_RUN_H

#include "options.h"

/* The program's exit status. */
int run_comparison(const bench_options *options);

#endif
