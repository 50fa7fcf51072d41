/*
 * A tensor map (tensor_map.h) as the driver encodes it, but for what differs
 * from call to call: the tensor's address, which is word 0 and which a kernel
 * fills in, and the number of images. The driver's encoding is not documented,
 * so where it keeps the two is found in examples. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_MAP_TEMPLATE_H
#define CLCONV_MAP_TEMPLATE_H

#include "tensor_map.h"

/* A map with this address and size[3]. */
typedef struct clconv_encoded_map {
    uint64_t address;
    int64_t images;
    uint64_t word[CLCONV_TENSOR_MAP_WORDS];
} clconv_encoded_map;

typedef struct clconv_map_template {
    uint64_t word[CLCONV_TENSOR_MAP_WORDS]; /* address and images are 0 */
    int images; /* their place: the low 32 bits of word images / 2 if even,
                   the high ones if odd */
    int bias;   /* they are held as images + bias */
} clconv_map_template;

/* From one map encoded twice, with another address and other images. False
 * unless word 0 is the address, and the images, less 1 or not, are 32 bits of
 * another word, and that is all the difference. */
bool clconv_map_template_derive(const clconv_encoded_map *one,
                                const clconv_encoded_map *other,
                                clconv_map_template *out);

/* No images are as good as 1, of which a kernel then reads nothing: there is no
 * map of an empty tensor. */
int64_t clconv_map_images(const clconv_tensor_map *m);

/* The map of a tensor with so many images, at least 1; its address is 0. */
void clconv_map_template_fill(const clconv_map_template *t, int64_t images,
                              uint64_t word[CLCONV_TENSOR_MAP_WORDS]);

#endif
