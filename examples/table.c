/*
 * Every cell is formatted as text of its own first, so that widths stand in
 * one place: the formats of the heading and of the lines below.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "table.h"

#include <math.h>

#define LINE "%-7s %-9s %8s  %-10s %8s  %7s %8s  %7s %8s  %7s %8s %8s\n"

/* Relative to the sum of |dY|; fp32's rounding leaves about 1e-8. */
#define DB_NOTHING 1e-6

typedef struct cell {
    char text[24];
} cell;

/* format is for one double; NaN is "-". */
static cell number(const char *format, double value)
{
    cell c = {"-"};

    if (!isnan(value))
        snprintf(c.text, sizeof(c.text), format, value);
    return c;
}

/* Where the true db is 0 but for rounding, a direction means nothing. */
static cell db_cosine(const comparison *a)
{
    return number("%.4f", a->db_size < DB_NOTHING ? (double)NAN : a->db.cosine);
}

static cell percent(double share)
{
    return number("%.2f %%", 100 * share);
}

void table_print_size(FILE *to, size_t size, size_t images, double loss)
{
    fprintf(to, "\n%zu x %zu pixels, %zu images, loss %.3f\n", size, size,
            images, loss);
    fprintf(to, "%52s%18s%18s\n", "dW", "dX", "db");
    fprintf(to, LINE, "layer", "C > K", "max |dY|", "math,scale", "dY lost",
            "cosine", "error", "cosine", "error", "cosine", "error", "us");
}

void table_print_layer(FILE *to, const char *name, const layer_result *layer)
{
    cell shape, max_dy = number("%.1e", layer->max_dy);

    snprintf(shape.text, sizeof(shape.text), "%zu > %zu", layer->shape.c,
             layer->shape.k);
    for (int m = 0; m < MODES; ++m) {
        const mode_result *r = &layer->mode[m];
        const comparison *a = &r->agreement;
        bool first = m == 0;

        fprintf(
            to, LINE, first ? name : "", first ? shape.text : "",
            first ? max_dy.text : "", experiment_mode_name((experiment_mode)m),
            percent(r->lost).text, number("%.4f", a->dw.cosine).text,
            number("%.1e", a->dw.error).text, number("%.4f", a->dx.cosine).text,
            number("%.1e", a->dx.error).text, db_cosine(a).text,
            number("%.1e", a->db_error).text,
            number("%.0f", r->microseconds).text);
    }
}

void table_print_legend(FILE *to)
{
    fputs(
        "\n"
        "dY lost  share of the nonzero elements of dY that fp16 turned into 0, "
        "counted on the device\n"
        "cosine   of the angle between the gradient and the same in fp64: 1 is "
        "the right direction\n"
        "error    |gradient - fp64| / |fp64|, Frobenius norms; of db: |db - "
        "fp64| / |sum of |dY||, because batch norm\n"
        "         makes db 0 but for rounding (then its cosine is '-': it has "
        "no direction)\n"
        "us       microseconds of a whole call, dW + db + dX, median after a "
        "warm-up\n",
        to);
}
