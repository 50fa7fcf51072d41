/*
 * The command line of the example.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_OPTIONS_H
#define CLCONV_EXAMPLES_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_SIZES_MAX 8

typedef struct options {
    int64_t sizes[OPTIONS_SIZES_MAX];
    size_t size_count; /* 0: the images' own size, twice and four times it */
    int64_t batch, steps, calls;
    uint64_t seed;
    const char *device; /* NULL: any */
    const char *data;   /* directory of Fashion-MNIST */
    const char *cifar;  /* directory of CIFAR-10, NULL: Fashion-MNIST */
    const char *plot;   /* file to write, NULL: none */
} options;

typedef enum options_result {
    OPTIONS_OK,
    OPTIONS_HELP, /* was printed */
    OPTIONS_BAD   /* was said on stderr */
} options_result;

options_result options_parse(int argc, char **argv, options *out);

#endif
