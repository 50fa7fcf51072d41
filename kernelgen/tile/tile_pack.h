/*
 * Planes: the copies of dY and X that the tile kernels read. A plane is one
 * channel of one image, rounded as the operand is multiplied, with zeros all
 * around, its rows joined end to end so that a vector may run over a row's
 * end. A tap (r, s) is then one shift for every position of the plane:
 *
 *     element (image, channel, row, column) lies at
 *     image / images * block_stride + image % images * image_stride
 *         + channel * channel_stride + start + row * pitch + column
 *
 * images is how many images of a channel are joined, likewise end to end. The
 * pack pass writes each element of the planes of a call, the zeros too.
 *
 * X may be packed in phases (tile_phase.h): for each pair of a row phase and
 * a column phase, planes of the rows and columns in it, phase_stride apart:
 *
 *     (row phase * column phases + column phase) * phase_stride + as above,
 *     without start
 *
 * where row and column are elements of the phases' arrays, and those that no
 * tap may read are zeros.
 *
 *     clconv_tile_grid_shape(&grid, &shape);               in the shape
 *     clconv_tile_pack_shape(&planes, &shape);
 *     clconv_tile_pack_pass(&planes, batch, &shape, &pass);   in passes()
 *     clconv_tile_pack_emit(e, t, &planes, &shape, &pass);    in emit()
 *     "load_dy_plane(p, i)"                                in the text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_PACK_H
#define CLCONV_TILE_PACK_H

#include "kernel.h"
#include "kernel_shape.h"

/* Elements of the vectors that all of this is made of. */
#define CLCONV_TILE_LANES 16

/* The same for all planes that a kernel reads; in elements. */
typedef struct clconv_tile_grid {
    int64_t pitch;                        /* from row to row */
    int64_t image_stride, channel_stride; /* an image's plane: image_stride */
    int64_t tail; /* zeros that follow the last of joined images */
    int64_t images, block_stride;
} clconv_tile_grid;

typedef struct clconv_tile_planes {
    clconv_tensor tensor;            /* DY or X */
    int64_t channels, rows, columns; /* of one image of the tensor */
    clconv_tile_grid grid;
    int64_t start; /* zeros before element (0, 0), unless in phases */
    bool in_phases;
    int64_t phase_stride; /* elements */
    int64_t elements;     /* of all planes, with what is read but never used */
    int64_t offset;       /* of plane 0 in the scratch, in floats */
    int64_t counted;      /* planes of a run, see tile_count.h; 0: none */
    const char *entry;    /* of the pack pass */
    unsigned serves;      /* as in clconv_pass */
} clconv_tile_planes;

/* Are the sides of the padded planes, the strides and the filter so small that
 * no size computed from them can overflow? Ask before anything else. */
bool clconv_tile_is_small(const clconv_problem *p);

/* Can an int count the elements of a plane, and an int64_t those of all? */
bool clconv_tile_is_addressable(const clconv_problem *p,
                                const clconv_tile_planes *planes);

/* Floats that the planes take, a multiple of 64 (256 bytes). */
int64_t clconv_tile_planes_floats(const clconv_problem *p,
                                  const clconv_tile_planes *planes);

/* Adds the names of the struct. */
void clconv_tile_grid_shape(const clconv_tile_grid *grid, clconv_shape *s);

/* Adds <tensor>_channels, _rows, _columns, _start and _offset; in phases also
 * phase_stride, and the axes are the caller's to add; _counted if set. */
void clconv_tile_pack_shape(const clconv_tile_planes *planes, clconv_shape *s);

/* Fills *pass: one work-item a plane. */
void clconv_tile_pack_pass(const clconv_task *t,
                           const clconv_tile_planes *planes, int64_t batch,
                           const clconv_shape *s, clconv_pass *pass);

/* The entry point, and before it, in phases, the spans of tile_phase.h (whose
 * axes must stand before), and the functions
 *     float16 load_<tensor>_plane(__global const T *p, long i)
 * and, for the hole $<tensor>_planes, the planes' address in the scratch. */
void clconv_tile_pack_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes,
                           const clconv_shape *s, const clconv_pass *pass);

#endif
