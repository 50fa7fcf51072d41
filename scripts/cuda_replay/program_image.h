/*
 * A compiled program as the CUDA driver takes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CUDA_REPLAY_PROGRAM_IMAGE_H
#define CUDA_REPLAY_PROGRAM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct program_image {
    char *data; /* PTX with a terminator, or a cubin */
    size_t size;
    size_t dynamic_shared; /* bytes that every launch must ask for */
} program_image;

/* Reads PTX, a cubin, or a program of clconv's cache (its file's name is a
 * hash, in programs-1 below CLCONV_CACHE_DIR). False with a line on stderr. */
bool program_image_read(const char *path, program_image *out);
void program_image_free(program_image *image);

#endif
