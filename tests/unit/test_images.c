/*
 * The example's readers of image files: what is taken, what is refused with
 * which words, and the upscaling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "images.h"
#include "message.h"

#define CIFAR_RECORD 3073

static char directory[] = "/tmp/test_images_XXXXXX";

static void make_directory(void)
{
    cr_redirect_stderr();
    message_program("test");
    cr_assert_not_null(mkdtemp(directory));
}

static char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void remove_directory(void)
{
    static const char *const names[] = {"train-images-idx3-ubyte.gz",
                                        "train-labels-idx1-ubyte.gz",
                                        "data_batch_1.bin", "data_batch_3.bin"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        unlink(path_of(names[i]));
    rmdir(directory);
}

TestSuite(images, .init = make_directory, .fini = remove_directory);

static void write_gzip(const char *name, const void *data, size_t bytes)
{
    gzFile file = gzopen(path_of(name), "wb");

    cr_assert_not_null(file);
    cr_assert_eq(gzwrite(file, data, (unsigned)bytes), (int)bytes);
    cr_assert_eq(gzclose(file), Z_OK);
}

static void write_plain(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(path_of(name), "wb");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

static bool stderr_has(const char *text)
{
    char said[1024] = {0};
    FILE *from = cr_get_redirected_stderr();

    fflush(stderr);
    fread(said, 1, sizeof(said) - 1, from);
    return strstr(said, text) != NULL;
}

/* Two images of 2 x 2 pixels. */
static const unsigned char idx_images[] = {0, 0,  8,   3,   0,   0,   0, 2,
                                           0, 0,  0,   2,   0,   0,   0, 2,
                                           0, 51, 102, 153, 204, 255, 1, 2};
static const unsigned char idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 4};

static void write_idx(const void *images, size_t image_bytes,
                      const void *labels, size_t label_bytes)
{
    write_gzip("train-images-idx3-ubyte.gz", images, image_bytes);
    write_gzip("train-labels-idx1-ubyte.gz", labels, label_bytes);
}

/* ---- Fashion-MNIST -------------------------------------------------- */

Test(images, idx_files_are_read)
{
    image_set images;

    write_idx(idx_images, sizeof(idx_images), idx_labels, sizeof(idx_labels));
    cr_assert(images_read_fashion_mnist(directory, &images));
    cr_assert_eq(images.count, 2);
    cr_assert_eq(images.channels, 1);
    cr_assert_eq(images.size, 2);
    cr_assert_arr_eq(images.pixels, idx_images + 16, 8);
    cr_assert_arr_eq(images.labels, idx_labels + 8, 2);
    images_free(&images);
}

Test(images, a_missing_file_names_the_package)
{
    image_set images;

    cr_assert_not(images_read_fashion_mnist(directory, &images));
    cr_assert(stderr_has("Debian package dataset-fashion-mnist"));
}

/* One byte of a good file is changed, or the file is cut or lengthened. */
static void check_refused(bool in_labels, size_t at, int value, int longer,
                          const char *expected)
{
    unsigned char bytes[2][64] = {{0}, {0}};
    size_t size[2] = {sizeof(idx_images), sizeof(idx_labels)};
    image_set images = {.count = 77};

    memcpy(bytes[0], idx_images, size[0]);
    memcpy(bytes[1], idx_labels, size[1]);
    bytes[in_labels][at] = (unsigned char)value;
    size[in_labels] = (size_t)((int)size[in_labels] + longer);
    write_idx(bytes[0], size[0], bytes[1], size[1]);
    cr_assert_not(images_read_fashion_mnist(directory, &images));
    cr_assert_eq(images.count, 77, "out was touched");
    cr_assert(stderr_has(expected), "expected \"%s\"", expected);
}

Test(images, another_magic_is_refused)
{
    check_refused(false, 3, 2, 0, "not an idx file of images");
}

Test(images, no_image_is_refused)
{
    check_refused(false, 7, 0, 0, "not an idx file of images");
}

Test(images, a_huge_count_is_refused)
{
    check_refused(false, 4, 255, 0, "not an idx file of images");
}

Test(images, images_that_are_not_square_are_refused)
{
    check_refused(false, 15, 3, 0, "must be square");
}

Test(images, a_file_cut_short_is_refused)
{
    check_refused(false, 23, 2, -1, "ends before its last image");
}

Test(images, bytes_after_the_end_are_refused)
{
    check_refused(false, 23, 2, 1, "bytes follow the last image");
}

Test(images, another_number_of_labels_is_refused)
{
    check_refused(true, 7, 1, -1, "one label for each image");
}

Test(images, a_label_of_ten_is_refused)
{
    check_refused(true, 9, 10, 0, "a label is not in 0..9");
}

/* ---- CIFAR-10 ------------------------------------------------------- */

Test(images, cifar_files_are_read_one_after_the_other)
{
    static unsigned char records[2 * CIFAR_RECORD];
    image_set images;

    records[0] = 3;
    records[CIFAR_RECORD] = 9;
    records[CIFAR_RECORD + 1] = 200;
    write_plain("data_batch_1.bin", records, sizeof(records));
    records[0] = 5;
    write_plain("data_batch_3.bin", records, CIFAR_RECORD);
    cr_assert(images_read_cifar10(directory, &images));
    cr_assert_eq(images.count, 3);
    cr_assert_eq(images.channels, 3);
    cr_assert_eq(images.size, 32);
    cr_assert_eq(images.labels[0], 3);
    cr_assert_eq(images.labels[1], 9);
    cr_assert_eq(images.labels[2], 5);
    cr_assert_eq(images.pixels[3072], 200);
    images_free(&images);
}

Test(images, a_cifar_file_cut_short_is_refused)
{
    static const unsigned char record[CIFAR_RECORD - 1];
    image_set images;

    write_plain("data_batch_1.bin", record, sizeof(record));
    cr_assert_not(images_read_cifar10(directory, &images));
    cr_assert(stderr_has("data_batch_1.bin: the file ends inside an image"));
}

Test(images, a_cifar_label_of_ten_is_refused)
{
    static const unsigned char record[CIFAR_RECORD] = {10};
    image_set images;

    write_plain("data_batch_1.bin", record, sizeof(record));
    cr_assert_not(images_read_cifar10(directory, &images));
    cr_assert(stderr_has("not CIFAR-10's binary format"));
}

Test(images, a_directory_without_cifar_is_refused)
{
    image_set images;

    cr_assert_not(images_read_cifar10(directory, &images));
    cr_assert(stderr_has("no image in data_batch_1.bin"));
}

/* ---- Upscaling ------------------------------------------------------ */

Test(images, upscaling_repeats_the_nearest_pixel)
{
    image_set images;
    const size_t index[1] = {0};
    const float expected[16] = {-0.5f, -0.5f, -0.3f, -0.3f, -0.5f, -0.5f,
                                -0.3f, -0.3f, -0.1f, -0.1f, 0.1f,  0.1f,
                                -0.1f, -0.1f, 0.1f,  0.1f};
    float x[16];

    write_idx(idx_images, sizeof(idx_images), idx_labels, sizeof(idx_labels));
    cr_assert(images_read_fashion_mnist(directory, &images));
    images_upscale(&images, index, 1, 4, x);
    for (size_t i = 0; i < 16; ++i)
        cr_assert_float_eq((double)x[i], (double)expected[i], 1e-6, "x[%zu]", i);
    images_free(&images);
}

Test(images, a_batch_follows_its_index)
{
    image_set images;
    const size_t index[3] = {1, 0, 1};
    float x[12];

    write_idx(idx_images, sizeof(idx_images), idx_labels, sizeof(idx_labels));
    cr_assert(images_read_fashion_mnist(directory, &images));
    images_upscale(&images, index, 3, 2, x);
    cr_assert_float_eq((double)x[0], 204 / 255.0 - 0.5, 1e-6);
    cr_assert_float_eq((double)x[4], -0.5, 1e-6);
    cr_assert_float_eq((double)x[9], 0.5, 1e-6);
    images_free(&images);
}
