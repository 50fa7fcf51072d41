/*
 * The six tensors in one order, for the table and for JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

static void fill_row(print_row *row, const char *name, const char *path,
                     const npy_array *array, const clconv_counts *counts)
{
    row->name = name;
    snprintf(row->path, sizeof(row->path), "%s", path);
    row->array = array;
    row->counts = counts;
}

/* The library counts outputs that are rounded to float16. */
static void fill_output_row(print_row *row, const char *name,
                            const char *directory, const npy_array *array,
                            const clconv_counts *counts)
{
    output_path(directory, name, row->path, sizeof(row->path));
    row->name = name;
    row->array = array;
    row->counts = array->header.type == NPY_F16 ? counts : NULL;
}

void print_collect_rows(const run_summary *summary, print_row rows[PRINT_ROWS])
{
    const run_options *options = summary->options;
    const run_inputs *in = summary->inputs;
    const run_outputs *out = summary->outputs;
    const clconv_report *report = &summary->facts->report;

    fill_row(&rows[0], "dy", options->dy_path, &in->dy, &report->dy);
    fill_row(&rows[1], "x", options->x_path, &in->x, &report->x);
    fill_row(&rows[2], "w", options->w_path, &in->w, &report->w);
    fill_output_row(&rows[3], "dw", options->out_dir, &out->dw, &report->dw);
    fill_output_row(&rows[4], "db", options->out_dir, &out->db, &report->db);
    fill_output_row(&rows[5], "dx", options->out_dir, &out->dx, &report->dx);
}
