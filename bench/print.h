/*
 * A result as a table for people, whose rows appear as they are measured, and
 * as CSV and JSON for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PRINT_H
#define CLCONV_BENCH_PRINT_H

#include <stdio.h>

#include "result.h"

/* Names of problems are cut to this many characters in the table. */
#define PRINT_NAME_MAX 40

void print_table_head(FILE *to, const bench_result *b);
void print_table_row(FILE *to, const bench_result *b, const row *r);
void print_table_end(FILE *to, const bench_result *b);

/* What --report-cost says instead of ratios. */
void print_report_cost(FILE *to, const bench_result *b);

/* RFC 4180, one line a problem and contender; a field without a value is
 * empty. */
void print_csv(FILE *to, const bench_result *b);

/* RFC 8259, one object; a number without a value is null. */
void print_json(FILE *to, const bench_result *b);

#endif
