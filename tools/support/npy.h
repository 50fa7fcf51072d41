/*
 * NumPy's .npy files: dense fp32 and fp16 arrays in C order, versions 1.0,
 * 2.0 and 3.0 of the format.
 *
 *     npy_array x;
 *     npy_error error;
 *     if (!npy_read("x.npy", 4, &x, &error))
 *         message_error("%s: %s", "x.npy", error.text);
 *     ...                             // x.shape, x.data
 *     npy_free(&x);
 *
 * Source: numpy.lib.format, "NPY format".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_NPY_H
#define CLCONV_TOOLS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPY_MAX_DIMS 8
#define NPY_MAX_HEADER 65535 /* bytes of header text */

typedef enum npy_type { NPY_F32, NPY_F16 } npy_type;

/* Type and shape: elements and bytes follow from them, without overflow. */
typedef struct npy_header {
    npy_type type;
    size_t ndim;
    int64_t shape[NPY_MAX_DIMS]; /* each >= 0 */
    size_t elements;             /* product of the shape, 1 for ndim 0 */
    size_t bytes;                /* of all elements */
} npy_header;

typedef struct npy_array {
    npy_header header;
    void *data; /* header.bytes bytes, the array's own; never NULL */
} npy_array;

/* Why a call failed, without the name of the file. */
typedef struct npy_error {
    char text[512];
} npy_error;

/* Computes elements and bytes from type, ndim and shape; false if a dimension
 * is negative or the size does not fit. */
bool npy_header_complete(npy_header *header, npy_error *error);

/* The text of a header: a Python dictionary with descr, fortran_order and
 * shape in any order. */
bool npy_header_parse(const char *text, size_t length, npy_header *out,
                      npy_error *error);

/* Writes magic string, version 1.0 and text, a multiple of 64 bytes, and
 * returns that number of bytes; any header fits. */
#define NPY_HEADER_BYTES 512
size_t npy_header_format(const npy_header *header, char bytes[NPY_HEADER_BYTES]);

/* "(64, 3, 28, 28)", and "float32 (64, 3, 28, 28)"; return text. */
const char *npy_shape_describe(const npy_header *header, char *text,
                               size_t size);
const char *npy_header_describe(const npy_header *header, char *text,
                                size_t size);

/* An array of ndim dimensions, the whole file and nothing after it. */
bool npy_read(const char *path, size_t ndim, npy_array *out, npy_error *error);
bool npy_read_stream(FILE *file, size_t ndim, npy_array *out, npy_error *error);
void npy_free(npy_array *array);

/*
 * Writes in two steps, so that several files appear together or not at all:
 * npy_stage writes a file beside path and flushes it to disk; npy_commit
 * renames it to path, npy_discard removes it; either frees it. path is either
 * the old file or the whole new one at any time.
 */
typedef struct npy_staged npy_staged;

bool npy_stage(const char *path, const npy_header *header, const void *data,
               npy_staged **out, npy_error *error);
bool npy_commit(npy_staged *staged, npy_error *error);
void npy_discard(npy_staged *staged); /* NULL: no-op */

/* Both steps for one file. */
bool npy_write(const char *path, const npy_header *header, const void *data,
               npy_error *error);

#endif
