/*
 * NumPy's files: an array that is read has the bytes that its header says, and
 * its header is written as one that reads the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "npy.h"

enum { MAX_NDIM = 4 };

bool fuzz_seed(int index, unsigned char **data, size_t *size)
{
    static const npy_header headers[] = {
        {.type = NPY_F32, .ndim = 1, .shape = {3}},
        {.type = NPY_F16, .ndim = 4, .shape = {1, 2, 3, 1}},
        {.type = NPY_F32, .ndim = 2, .shape = {0, 5}},
    };
    if ((size_t)index >= sizeof headers / sizeof *headers)
        return false;
    npy_header h = headers[index];
    npy_error error;
    FUZZ_CHECK(npy_header_complete(&h, &error));
    char bytes[NPY_HEADER_BYTES];
    size_t length = npy_header_format(&h, bytes);
    *size = length + h.bytes;
    *data = calloc(1, *size);
    FUZZ_CHECK(*data);
    memcpy(*data, bytes, length);
    return true;
}

static void check_header(const npy_header *h)
{
    char bytes[NPY_HEADER_BYTES];
    npy_error error;
    npy_header again = *h;
    FUZZ_CHECK(npy_header_complete(&again, &error));
    FUZZ_CHECK(again.bytes == h->bytes && again.elements == h->elements);
    FUZZ_CHECK(npy_header_format(h, bytes) <= NPY_HEADER_BYTES);
}

static void check_stream(unsigned char *data, size_t size, size_t ndim)
{
    npy_array array;
    npy_error error;
    FILE *file = fmemopen(data, size, "rb");
    FUZZ_CHECK(file);
    if (npy_read_stream(file, ndim, &array, &error)) {
        FUZZ_CHECK(array.header.ndim == ndim && array.header.bytes < size);
        check_header(&array.header);
        npy_free(&array);
    }
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) /* fmemopen() may refuse */
        return 0;
    unsigned char *bytes = fuzz_copy(data, size);
    npy_header header;
    npy_error error;
    if (npy_header_parse((const char *)bytes, size, &header, &error))
        check_header(&header);
    for (size_t ndim = 1; ndim <= MAX_NDIM; ++ndim)
        check_stream(bytes, size, ndim);
    free(bytes);
    return 0;
}
