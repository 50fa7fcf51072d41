/*
 * Real images for the example: Fashion-MNIST's gzip-compressed idx files
 * (1 channel, 28 x 28) or CIFAR-10's binary files (3 channels, 32 x 32).
 *
 *     image_set images;
 *     if (!images_read_fashion_mnist(directory, &images))
 *         return EXIT_FAILURE;                  // said on stderr
 *     images_upscale(&images, index, 64, 112, x);
 *     images_free(&images);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_IMAGES_H
#define CLCONV_EXAMPLES_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

#define IMAGES_CLASSES 10
#define IMAGES_FASHION_MNIST_DIRECTORY "/usr/share/datasets/fashion-mnist"
#define IMAGES_FASHION_MNIST_PACKAGE "dataset-fashion-mnist"

/* Square training images, one byte a value. */
typedef struct image_set {
    size_t count, channels, size;
    unsigned char *pixels; /* [count][channels][size][size] */
    unsigned char *labels; /* [count], each below IMAGES_CLASSES */
} image_set;

/* train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz of directory.
 * A file that is missing, cut short or not in this format is one line on
 * stderr; out is then untouched. */
bool images_read_fashion_mnist(const char *directory, image_set *out);

/* data_batch_1.bin to data_batch_5.bin of directory, as many as there are. */
bool images_read_cifar10(const char *directory, image_set *out);

void images_free(image_set *images);

/*
 * The images index[0..n-1], brought to size x size pixels by repeating the
 * nearest one: x [n][channels][size][size] = pixel/255 - 0.5.
 */
void images_upscale(const image_set *images, const size_t *index, size_t n,
                    size_t size, float *x);

#endif
