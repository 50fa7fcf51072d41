/*
 * A .npy file: the magic string "\x93NUMPY", two bytes of version, the length
 * of the header (two bytes little-endian in version 1, four in 2 and 3), the
 * header, the elements. Nothing is believed before it is there: memory grows
 * with the bytes that arrive, not with what the header promises.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)1 << 20)

static bool fail(npy_error *error, const char *reason)
{
    snprintf(error->text, sizeof(error->text), "%s", reason);
    return false;
}

static bool read_exactly(FILE *file, void *bytes, size_t count,
                         npy_error *error, const char *short_reason)
{
    if (fread(bytes, 1, count, file) == count)
        return true;
    return fail(error, ferror(file) ? strerror(errno) : short_reason);
}

/* Magic string and version; *length gets the bytes of header that follow. */
static bool read_prefix(FILE *file, size_t *length, npy_error *error)
{
    unsigned char bytes[12] = {0};
    const char *not_npy = "is not a .npy file: it does not start with "
                          "\\x93NUMPY";

    if (!read_exactly(file, bytes, 8, error, not_npy))
        return false;
    if (memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail(error, not_npy);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        snprintf(error->text, sizeof(error->text),
                 "has version %d.%d of the .npy format; 1.0, 2.0 and 3.0 can "
                 "be read",
                 bytes[6], bytes[7]);
        return false;
    }
    if (!read_exactly(file, bytes + 8, bytes[6] == 1 ? 2 : 4, error,
                      "ends within its header"))
        return false;
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8 |
              (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    return true;
}

static bool read_header(FILE *file, npy_header *out, npy_error *error)
{
    size_t length;
    char *text;
    bool ok;

    if (!read_prefix(file, &length, error))
        return false;
    if (length > NPY_MAX_HEADER) {
        snprintf(error->text, sizeof(error->text),
                 "has a header of %zu bytes; at most %d can be read", length,
                 NPY_MAX_HEADER);
        return false;
    }
    text = malloc(length + 1);
    if (!text)
        return fail(error, "out of memory");
    ok = read_exactly(file, text, length, error, "ends within its header") &&
         npy_header_parse(text, length, out, error);
    free(text);
    return ok;
}

static bool fail_short(size_t have, size_t need, npy_error *error)
{
    snprintf(error->text, sizeof(error->text),
             "ends after %zu of the %zu bytes of elements that its shape needs",
             have, need);
    return false;
}

/* bytes bytes in a new block of at least 1. */
static bool read_elements(FILE *file, size_t bytes, void **out, npy_error *error)
{
    size_t have = 0, room = bytes < FIRST_CHUNK ? bytes : FIRST_CHUNK;
    char *data = malloc(room ? room : 1);

    while (data && have < bytes) {
        size_t got = fread(data + have, 1, room - have, file);
        char *larger;

        have += got;
        if (have < room) {
            free(data);
            return ferror(file) ? fail(error, strerror(errno))
                                : fail_short(have, bytes, error);
        }
        if (have == bytes)
            break;
        room = room < bytes / 2 ? room * 2 : bytes;
        larger = realloc(data, room);
        if (!larger)
            free(data);
        data = larger;
    }
    if (!data)
        return fail(error, "out of memory");
    *out = data;
    return true;
}

bool npy_read_stream(FILE *file, size_t ndim, npy_array *out, npy_error *error)
{
    npy_array array = {.data = NULL};
    char shape[256];

    if (!read_header(file, &array.header, error))
        return false;
    if (array.header.ndim != ndim) {
        snprintf(error->text, sizeof(error->text),
                 "has the shape %s, but must have %zu dimensions",
                 npy_shape_describe(&array.header, shape, sizeof(shape)), ndim);
        return false;
    }
    if (!read_elements(file, array.header.bytes, &array.data, error))
        return false;
    if (fgetc(file) != EOF) {
        npy_free(&array);
        return fail(error, "goes on after the elements that its shape needs");
    }
    *out = array;
    return true;
}

bool npy_read(const char *path, size_t ndim, npy_array *out, npy_error *error)
{
    FILE *file = fopen(path, "rb");
    bool ok;

    if (!file)
        return fail(error, strerror(errno));
    ok = npy_read_stream(file, ndim, out, error);
    fclose(file);
    return ok;
}

void npy_free(npy_array *array)
{
    free(array->data);
    array->data = NULL;
}
