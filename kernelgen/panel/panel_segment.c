/*
 * Columns are in the inner loop of all that reads a segment, so whole rows
 * come before whole images; parts of one kind are as equal as may be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_segment.h"

#include "integers.h"

/* total in so many parts of at most this many, as equal as may be. */
static int64_t even_part(int64_t total, int64_t most)
{
    int64_t parts = clconv_divide_up(total, most > 1 ? most : 1);
    return clconv_divide_up(total, parts);
}

void clconv_panel_segment_set(const clconv_problem *p, int64_t positions,
                              clconv_panel_segment *s)
{
    *s = (clconv_panel_segment){.images = 1, .rows = 1};
    s->columns = even_part(p->q, positions);
    s->column_parts = clconv_divide_up(p->q, s->columns);
    if (s->column_parts == 1)
        s->rows = even_part(p->p, positions / p->q);
    s->row_parts = clconv_divide_up(p->p, s->rows);
    if (s->column_parts == 1 && s->row_parts == 1 && p->n > 0)
        s->images = even_part(p->n, positions / (p->p * p->q));
}

int64_t clconv_panel_segment_count(const clconv_panel_segment *s, int64_t images)
{
    return clconv_divide_up(images, s->images) * s->row_parts * s->column_parts;
}

void clconv_panel_segment_shape(const clconv_panel_segment *segment,
                                const clconv_problem *p, clconv_shape *s)
{
    clconv_shape_add(s, "p", p->p);
    clconv_shape_add(s, "q", p->q);
    clconv_shape_add(s, "segment_images", segment->images);
    clconv_shape_add(s, "segment_rows", segment->rows);
    clconv_shape_add(s, "segment_columns", segment->columns);
    clconv_shape_add(s, "row_parts", segment->row_parts);
    clconv_shape_add(s, "column_parts", segment->column_parts);
}

static void emit_count(clconv_emit *e)
{
    clconv_emit_open(e, "static long segment_count(shape_t shape, int batch)");
    clconv_emit_line(e, "return (batch + shape.segment_images - 1) / "
                        "shape.segment_images * shape.row_parts * "
                        "shape.column_parts;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_panel_segment_emit(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    long image, row, column;");
    clconv_emit_line(e, "    int images, rows, columns;");
    clconv_emit_line(e, "} segment_t;");
    clconv_emit_blank(e);
    emit_count(e);
    clconv_emit_open(e, "static segment_t segment_at(shape_t shape, long i, "
                        "int batch)");
    clconv_emit_line(e, "segment_t s;");
    clconv_emit_line(e, "s.column = i % shape.column_parts * "
                        "shape.segment_columns;");
    clconv_emit_line(e, "i /= shape.column_parts;");
    clconv_emit_line(e, "s.row = i % shape.row_parts * shape.segment_rows;");
    clconv_emit_line(e, "s.image = i / shape.row_parts * "
                        "shape.segment_images;");
    clconv_emit_line(e, "s.images = min(shape.segment_images, batch - "
                        "s.image);");
    clconv_emit_line(e, "s.rows = min(shape.segment_rows, shape.p - s.row);");
    clconv_emit_line(e, "s.columns = min(shape.segment_columns, shape.q - "
                        "s.column);");
    clconv_emit_line(e, "return s;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
