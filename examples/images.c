/*
 * Both formats are read whole into one array of bytes. idx: a big-endian
 * magic number (type 8 = unsigned byte, then the number of dimensions), the
 * dimensions, the bytes. CIFAR-10: records of one label and 3 x 32 x 32
 * bytes, no header.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "images.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "message.h"

#define IDX_LABELS 0x801u
#define IDX_IMAGES 0x803u
#define IMAGES_MAX 1000000u
#define CIFAR_CHANNELS 3u
#define CIFAR_SIZE 32u
#define CIFAR_PIXELS (CIFAR_CHANNELS * CIFAR_SIZE * CIFAR_SIZE)
#define CIFAR_FILES 5

static bool read_exactly(gzFile file, void *data, size_t bytes)
{
    unsigned char *to = data;

    while (bytes > 0) {
        unsigned part = bytes < 1u << 20 ? (unsigned)bytes : 1u << 20;
        int got = gzread(file, to, part);

        if (got <= 0)
            return false;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool at_end(gzFile file)
{
    unsigned char extra;

    return gzread(file, &extra, 1) == 0;
}

static bool read_big_endian(gzFile file, uint32_t *out)
{
    unsigned char b[4];

    if (!read_exactly(file, b, sizeof(b)))
        return false;
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
           (uint32_t)b[3];
    return true;
}

/* ---- idx ------------------------------------------------------------ */

/* dims[0..n-1] of an idx file; false if it is not one with this magic. */
static bool read_idx_header(gzFile file, uint32_t magic, size_t n,
                            uint32_t *dims)
{
    uint32_t found;

    if (!read_big_endian(file, &found) || found != magic)
        return false;
    for (size_t i = 0; i < n; ++i) {
        if (!read_big_endian(file, &dims[i]) || dims[i] == 0)
            return false;
    }
    return dims[0] <= IMAGES_MAX;
}

static const char *read_idx_images(gzFile file, image_set *images)
{
    uint32_t dims[3];
    size_t bytes;

    if (!read_idx_header(file, IDX_IMAGES, 3, dims))
        return "not an idx file of images (magic 0x00000803)";
    if (dims[1] != dims[2] || dims[1] > 1024)
        return "images must be square, at most 1024 x 1024";
    images->count = dims[0];
    images->channels = 1;
    images->size = dims[1];
    bytes = images->count * images->size * images->size;
    images->pixels = malloc(bytes);
    if (!images->pixels)
        return "out of memory";
    if (!read_exactly(file, images->pixels, bytes))
        return "the file ends before its last image";
    return at_end(file) ? NULL : "bytes follow the last image";
}

/* Labels for the images that were read before. */
static const char *read_idx_labels(gzFile file, image_set *images)
{
    uint32_t count;

    if (!read_idx_header(file, IDX_LABELS, 1, &count))
        return "not an idx file of labels (magic 0x00000801)";
    if (count != images->count)
        return "there must be one label for each image";
    images->labels = malloc(images->count);
    if (!images->labels)
        return "out of memory";
    if (!read_exactly(file, images->labels, images->count))
        return "the file ends before its last label";
    for (size_t i = 0; i < images->count; ++i) {
        if (images->labels[i] >= IMAGES_CLASSES)
            return "a label is not in 0..9";
    }
    return at_end(file) ? NULL : "bytes follow the last label";
}

/* Opens directory/name and hands it to read; the failure is said here. */
static bool read_idx(const char *directory, const char *name,
                     const char *(*read)(gzFile, image_set *), image_set *images)
{
    char path[4096];
    const char *failure;
    gzFile file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    errno = 0;
    file = gzopen(path, "rb");
    if (!file) {
        message_error("%s: %s; install the Debian package %s, or name "
                      "CIFAR-10's binary files with --cifar DIR",
                      path, strerror(errno ? errno : ENOMEM),
                      IMAGES_FASHION_MNIST_PACKAGE);
        return false;
    }
    failure = read(file, images);
    gzclose(file);
    if (failure)
        message_error("%s: %s", path, failure);
    return !failure;
}

bool images_read_fashion_mnist(const char *directory, image_set *out)
{
    image_set images = {0};

    if (!read_idx(directory, "train-images-idx3-ubyte.gz", read_idx_images,
                  &images) ||
        !read_idx(directory, "train-labels-idx1-ubyte.gz", read_idx_labels,
                  &images)) {
        images_free(&images);
        return false;
    }
    *out = images;
    return true;
}

/* ---- CIFAR-10 ------------------------------------------------------- */

/* Room for one more image; the arrays double. */
static bool reserve(image_set *images, size_t *capacity)
{
    size_t larger = *capacity ? 2 * *capacity : 1024;
    unsigned char *pixels, *labels;

    if (images->count < *capacity)
        return true;
    pixels = realloc(images->pixels, larger * CIFAR_PIXELS);
    if (pixels)
        images->pixels = pixels;
    labels = realloc(images->labels, larger);
    if (labels)
        images->labels = labels;
    if (!pixels || !labels)
        return false;
    *capacity = larger;
    return true;
}

static const char *read_records(FILE *file, image_set *images, size_t *capacity)
{
    int label;

    while ((label = fgetc(file)) != EOF) {
        if (label >= IMAGES_CLASSES)
            return "a label is not in 0..9: not CIFAR-10's binary format";
        if (images->count == IMAGES_MAX)
            return "more than 1000000 images";
        if (!reserve(images, capacity))
            return "out of memory";
        if (fread(images->pixels + images->count * CIFAR_PIXELS, 1,
                  CIFAR_PIXELS, file) != CIFAR_PIXELS)
            return "the file ends inside an image";
        images->labels[images->count++] = (unsigned char)label;
    }
    return ferror(file) ? "cannot be read" : NULL;
}

/* Adds the images of one file; one that is not there adds none. */
static bool read_batch(const char *directory, int number, image_set *images,
                       size_t *capacity)
{
    char path[4096];
    const char *failure;
    FILE *file;

    snprintf(path, sizeof(path), "%s/data_batch_%d.bin", directory, number);
    file = fopen(path, "rb");
    if (!file && errno == ENOENT)
        return true;
    failure = file ? read_records(file, images, capacity) : strerror(errno);
    if (file)
        fclose(file);
    if (failure)
        message_error("%s: %s", path, failure);
    return !failure;
}

bool images_read_cifar10(const char *directory, image_set *out)
{
    image_set images = {.channels = CIFAR_CHANNELS, .size = CIFAR_SIZE};
    size_t capacity = 0;
    bool ok = true;

    for (int number = 1; ok && number <= CIFAR_FILES; ++number)
        ok = read_batch(directory, number, &images, &capacity);
    if (ok && images.count == 0) {
        message_error("%s: no image in data_batch_1.bin to data_batch_5.bin "
                      "(CIFAR-10, binary version)",
                      directory);
        ok = false;
    }
    if (!ok) {
        images_free(&images);
        return false;
    }
    *out = images;
    return true;
}

/* ---- Use ------------------------------------------------------------ */

void images_free(image_set *images)
{
    free(images->pixels);
    free(images->labels);
    *images = (image_set){0};
}

static void upscale_plane(const unsigned char *from, size_t from_size,
                          float *to, size_t size)
{
    for (size_t h = 0; h < size; ++h) {
        const unsigned char *row = from + h * from_size / size * from_size;

        for (size_t w = 0; w < size; ++w)
            *to++ = (float)row[w * from_size / size] / 255.0f - 0.5f;
    }
}

void images_upscale(const image_set *images, const size_t *index, size_t n,
                    size_t size, float *x)
{
    size_t plane = images->size * images->size;

    for (size_t i = 0; i < n; ++i) {
        for (size_t c = 0; c < images->channels; ++c) {
            size_t number = index[i] * images->channels + c;

            upscale_plane(images->pixels + number * plane, images->size,
                          x + (i * images->channels + c) * size * size, size);
        }
    }
}
