/*
 * How Hopper's copy unit (TMA) reads an operand that lies as fp16 with channels
 * last: a tensor map. One instruction copies a box, at most 256 elements a
 * dimension, and writes zeros for what lies outside of the tensor. What it
 * writes are lines of box[0] channels, swizzled as kernels/wgmma_matrix.cl has
 * it.
 *
 *     tiled    a box of channels, columns, rows, images from a place on
 *     im2col   channels of box[1] consecutive pixels of a window, in the order
 *              columns, rows, images, each moved by one offset (the tap). The
 *              window's corners are lower and size - 1 + upper, columns first;
 *              from pixel to pixel it goes step elements
 *
 * A kernel is given a map as an argument by value, 128 bytes: on the device
 * what the driver encodes (src/cuda_maps.h), with the tensor's address
 * still to be filled in; in emulation the description below.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TENSOR_MAP_H
#define CLCONV_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* 64-bit words of a map. */
#define CLCONV_TENSOR_MAP_WORDS 16

/* Pixels that a tap moves an im2col load, each way from 0. */
#define CLCONV_TENSOR_MAP_MOST_TAP 255

typedef struct clconv_tensor_map {
    bool im2col;
    int64_t size[4];   /* elements: channels, columns, rows, images */
    int64_t stride[3]; /* elements to the next column, row, image; a multiple
                          of 8 each */
    int box[4];        /* elements; im2col: channels, pixels */
    int lower[2], upper[2], step[2]; /* im2col: columns, rows */
    int swizzle;                     /* bytes of a line: 128, 64 or 32 */
} clconv_tensor_map;

/* May the copy unit read it: are all numbers within its limits? */
bool clconv_tensor_map_legal(const clconv_tensor_map *m);

/* The description that kernels/wgmma_emulated.cl reads. */
void clconv_tensor_map_describe(const clconv_tensor_map *m,
                                uint64_t word[CLCONV_TENSOR_MAP_WORDS]);

#endif
