/*
 * A tap that a stride does not hit is no tap: it is not visited at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "taps.h"

#include <stdbool.h>

/* ---- Indices ------------------------------------------------------------ */

typedef struct place {
    int64_t outer, channel, row, column;
} place;

static place place_of(size_t index, int64_t channels, int64_t rows,
                      int64_t columns)
{
    int64_t i = (int64_t)index;

    return (place){.outer = i / columns / rows / channels,
                   .channel = i / columns / rows % channels,
                   .row = i / columns % rows,
                   .column = i % columns};
}

static size_t index_of(place at, int64_t channels, int64_t rows, int64_t columns)
{
    return (size_t)(((at.outer * channels + at.channel) * rows + at.row) *
                        columns +
                    at.column);
}

static bool inside(int64_t index, int64_t size)
{
    return index >= 0 && index < size;
}

static size_t x_index(const shape *z, int64_t n, int64_t c, int64_t h, int64_t w)
{
    if (!inside(h, z->h) || !inside(w, z->w))
        return TAPS_PADDING;
    return index_of((place){n, c, h, w}, z->c, z->h, z->w);
}

static size_t dy_index(const shape *z, int64_t n, int64_t k, int64_t p,
                       int64_t q)
{
    if (!inside(p, z->p) || !inside(q, z->q))
        return TAPS_PADDING;
    return index_of((place){n, k, p, q}, z->k, z->p, z->q);
}

static size_t w_index(const shape *z, int64_t k, int64_t cg, int64_t r,
                      int64_t s)
{
    return index_of((place){k, cg, r, s}, z->cg, z->r, z->s);
}

/* ---- From dy ------------------------------------------------------------ */

void taps_dy_to_dw(const shape *z, size_t index, taps_visit *visit, void *user)
{
    place dy = place_of(index, z->k, z->p, z->q);
    int64_t k = dy.channel, first = k / z->kg * z->cg;

    for (int64_t tap = 0; tap < z->cg * z->r * z->s; ++tap) {
        place at = place_of((size_t)tap, z->cg, z->r, z->s);
        int64_t h = shape_input_row(z, dy.row, at.row);
        int64_t w = shape_input_column(z, dy.column, at.column);

        visit(user, w_index(z, k, at.channel, at.row, at.column),
              x_index(z, dy.outer, first + at.channel, h, w));
    }
}

/* What dx reads of w is never padding; what lies outside dx is no output. */
void taps_dy_to_dx(const shape *z, size_t index, taps_visit *visit, void *user)
{
    place dy = place_of(index, z->k, z->p, z->q);
    int64_t k = dy.channel, first = k / z->kg * z->cg;

    for (int64_t tap = 0; tap < z->cg * z->r * z->s; ++tap) {
        place at = place_of((size_t)tap, z->cg, z->r, z->s);
        int64_t h = shape_input_row(z, dy.row, at.row);
        int64_t w = shape_input_column(z, dy.column, at.column);
        size_t dx = x_index(z, dy.outer, first + at.channel, h, w);

        if (dx != TAPS_PADDING)
            visit(user, dx, w_index(z, k, at.channel, at.row, at.column));
    }
}

/* ---- From x and w ------------------------------------------------------- */

/* Every filter of the group, for one tap that the stride hits. */
static void visit_filters(const shape *z, place x, place tap, int64_t p,
                          int64_t q, taps_visit *visit, void *user)
{
    int64_t first = x.channel / z->cg * z->kg;

    for (int64_t k = first; k < first + z->kg; ++k)
        visit(user, w_index(z, k, x.channel % z->cg, tap.row, tap.column),
              dy_index(z, x.outer, k, p, q));
}

void taps_x_to_dw(const shape *z, size_t index, taps_visit *visit, void *user)
{
    place x = place_of(index, z->c, z->h, z->w);

    for (int64_t i = 0; i < z->r * z->s; ++i) {
        place tap = {0, 0, i / z->s, i % z->s};
        int64_t p, q;

        if (shape_output_row(z, x.row, tap.row, &p) &&
            shape_output_column(z, x.column, tap.column, &q))
            visit_filters(z, x, tap, p, q, visit, user);
    }
}

void taps_w_to_dx(const shape *z, size_t index, taps_visit *visit, void *user)
{
    place tap = place_of(index, z->cg, z->r, z->s);
    int64_t k = tap.outer, c = k / z->kg * z->cg + tap.channel;

    for (int64_t i = 0; i < z->n * z->h * z->w; ++i) {
        place at = place_of((size_t)i, 1, z->h, z->w);
        int64_t p, q;

        if (shape_output_row(z, at.row, tap.row, &p) &&
            shape_output_column(z, at.column, tap.column, &q))
            visit(user, x_index(z, at.outer, c, at.row, at.column),
                  dy_index(z, at.outer, k, p, q));
    }
}
