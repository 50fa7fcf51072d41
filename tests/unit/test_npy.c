/*
 * .npy files: what is written is read back, and every damaged, foreign or
 * unfinished file is refused with a reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy.h"

static const float three[3] = {1.5f, -2.0f, 0x1p-30f};

/* A file in memory: prefix for a version, header text, data. */
static size_t compose(char *bytes, int major, const char *text,
                      const void *data, size_t data_size)
{
    size_t length = strlen(text), prefix = major == 1 ? 10 : 12;

    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (char)major;
    bytes[7] = 0;
    for (size_t i = 8; i < prefix; ++i)
        bytes[i] = (char)(length >> (8 * (i - 8)) & 0xFF);
    memcpy(bytes + prefix, text, length);
    if (data_size)
        memcpy(bytes + prefix + length, data, data_size);
    return prefix + length + data_size;
}

static bool read_bytes(char *bytes, size_t size, size_t ndim, npy_array *out,
                       npy_error *error)
{
    FILE *file = fmemopen(bytes, size, "rb");
    bool ok = npy_read_stream(file, ndim, out, error);

    fclose(file);
    return ok;
}

/* The header alone must be refused, for a reason that contains part. */
static void assert_refused(const char *text, const char *part)
{
    npy_header header = {.ndim = 77};
    npy_error error = {""};

    cr_assert_not(npy_header_parse(text, strlen(text), &header, &error), "%s",
                  text);
    cr_assert(strstr(error.text, part), "%s\ngave \"%s\"\nwithout \"%s\"", text,
              error.text, part);
    cr_assert_eq(header.ndim, 77, "%s touched the output", text);
}

static npy_header parse(const char *text)
{
    npy_header header;
    npy_error error = {""};

    cr_assert(npy_header_parse(text, strlen(text), &header, &error), "%s: %s",
              text, error.text);
    return header;
}

/* ---- Headers ----------------------------------------------------------- */

Test(npy, headers_of_numpy_are_read)
{
    npy_header h = parse("{'descr': '<f4', 'fortran_order': False, "
                         "'shape': (64, 3, 28, 27), }      \n");

    cr_assert_eq(h.type, NPY_F32);
    cr_assert_eq(h.ndim, 4);
    cr_assert_eq(h.shape[0], 64);
    cr_assert_eq(h.shape[3], 27);
    cr_assert_eq(h.elements, 64 * 3 * 28 * 27);
    cr_assert_eq(h.bytes, 4 * h.elements);
}

Test(npy, key_order_blanks_and_quotes_are_free)
{
    npy_header h = parse(" {\"shape\":(2,3,),\t\"fortran_order\" : False ,"
                         "\n\"descr\":\"=f2\"}");

    cr_assert_eq(h.type, NPY_F16);
    cr_assert_eq(h.ndim, 2);
    cr_assert_eq(h.bytes, 12);
}

Test(npy, python_2_long_integers_are_read)
{
    npy_header h =
        parse("{'descr': '|f4', 'fortran_order': False, 'shape': (5L,)}");

    cr_assert_eq(h.ndim, 1);
    cr_assert_eq(h.shape[0], 5);
}

Test(npy, scalars_and_empty_arrays_have_shapes)
{
    npy_header scalar =
        parse("{'descr': '<f4', 'fortran_order': False, 'shape': ()}");
    npy_header empty = parse("{'descr': '<f4', 'fortran_order': False, "
                             "'shape': (9223372036854775807, 4, 0)}");

    cr_assert_eq(scalar.ndim, 0);
    cr_assert_eq(scalar.elements, 1);
    cr_assert_eq(empty.elements, 0);
    cr_assert_eq(empty.bytes, 0);
}

#define WITH_DESCR(descr)                                                      \
    "{'descr': " descr ", 'fortran_order': False, 'shape': (3,)}"
#define WITH_SHAPE(shape)                                                      \
    "{'descr': '<f4', 'fortran_order': False, 'shape': " shape "}"

Test(npy, other_element_types_are_refused)
{
    assert_refused(WITH_DESCR("'<f8'"), "'<f8'; only float32");
    assert_refused(WITH_DESCR("'>f4'"), "'>f4'; only float32");
    assert_refused(WITH_DESCR("'<i4'"), "'<i4'");
    assert_refused(WITH_DESCR("'|O'"), "'|O'");
    assert_refused(WITH_DESCR("''"), "''");
    assert_refused(WITH_DESCR("'<<f4'"), "'<<f4'");
    assert_refused(WITH_DESCR("[('a', '<f4')]"), "fields");
    assert_refused(WITH_DESCR("4"), "quoted string");
    assert_refused(WITH_DESCR("'<f4\\''"), "odd characters");
    assert_refused(WITH_DESCR("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"),
                   "too long");
}

Test(npy, fortran_order_is_refused)
{
    assert_refused("{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}",
                   "Fortran order; only C order");
    assert_refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
                   "True or False");
}

Test(npy, impossible_shapes_are_refused)
{
    assert_refused(WITH_SHAPE("(-1,)"), "negative");
    assert_refused(WITH_SHAPE("(3)"), "tuple");
    assert_refused(WITH_SHAPE("3"), "tuple");
    assert_refused(WITH_SHAPE("[3]"), "tuple");
    assert_refused(WITH_SHAPE("(,)"), "dimension was expected");
    assert_refused(WITH_SHAPE("(3,,4)"), "dimension was expected");
    assert_refused(WITH_SHAPE("(3 4)"), "',' or ')'");
    assert_refused(WITH_SHAPE("(3.0,)"), "',' or ')'");
    assert_refused(WITH_SHAPE("(03,)"), "starts with 0");
    assert_refused(WITH_SHAPE("(1,1,1,1,1,1,1,1,1)"), "8 dimensions");
    assert_refused(WITH_SHAPE("(9223372036854775808,)"), "beyond 2^63");
    assert_refused(WITH_SHAPE("(99999999999999999999999999,)"), "beyond 2^63");
    assert_refused(WITH_SHAPE("(9223372036854775807,)"), "too large");
    assert_refused(WITH_SHAPE("(4294967296, 4294967296)"), "too large");
    assert_refused(WITH_SHAPE("(4294967296, 4294967296, 3)"), "too large");
}

Test(npy, damaged_dictionaries_are_refused)
{
    assert_refused("", "'{' was expected");
    assert_refused("{}", "missing");
    assert_refused("{'descr': '<f4', 'shape': (3,)}", "missing");
    assert_refused("{'descr': '<f4', 'descr': '<f4', 'shape': (3,)}", "twice");
    assert_refused("{'color': 'red'}", "not descr");
    assert_refused("{'descr' '<f4'}", "':' was expected");
    assert_refused("{'descr': '<f4' 'shape': (3,)}", "',' or '}'");
    assert_refused("{,}", "quoted string");
    assert_refused(WITH_SHAPE("(3,)") " x", "behind the '}'");
    assert_refused(WITH_SHAPE("(3,)") "}", "behind the '}'");
}

Test(npy, every_beginning_of_a_header_is_refused)
{
    static const char text[] = WITH_SHAPE("(3, 4)");

    for (size_t length = 0; length < sizeof(text) - 1; ++length) {
        npy_header header;
        npy_error error = {""};
        char *exact = malloc(length + 1); /* so that a sanitizer sees reads */

        memcpy(exact, text, length);
        cr_assert_not(npy_header_parse(exact, length, &header, &error),
                      "%zu bytes", length);
        cr_assert_neq(error.text[0], '\0', "%zu bytes", length);
        free(exact);
    }
}

/* Random bytes at random places: no crash, and either a sane header or a
 * reason. */
Test(npy, mutated_headers_never_confuse_the_parser)
{
    static const char text[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 3L, 28,), }\n";
    static const char alphabet[] = "{}()[]'\",:<>=|fFT0123456789L -\\\n\x80x";
    size_t length = sizeof(text) - 1;
    int accepted = 0;

    srand(1);
    for (int round = 0; round < 200000; ++round) {
        char *copy = malloc(length);
        npy_header header;
        npy_error error = {""};

        memcpy(copy, text, length);
        for (int i = rand() % 4; i >= 0; --i)
            copy[(size_t)rand() % length] =
                alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
        if (npy_header_parse(copy, length, &header, &error)) {
            ++accepted;
            cr_assert_leq(header.ndim, NPY_MAX_DIMS);
        } else {
            cr_assert_neq(error.text[0], '\0');
        }
        free(copy);
    }
    cr_assert_gt(accepted, 0, "the mutations were all fatal");
    cr_assert_lt(accepted, 100000, "the mutations were mostly harmless");
}

/* ---- Files ------------------------------------------------------------- */

Test(npy, versions_1_to_3_are_read)
{
    for (int major = 1; major <= 3; ++major) {
        char bytes[256];
        npy_array array;
        npy_error error = {""};
        size_t size = compose(bytes, major, WITH_SHAPE("(3,)"), three, 12);

        cr_assert(read_bytes(bytes, size, 1, &array, &error), "version %d: %s",
                  major, error.text);
        cr_assert_eq(memcmp(array.data, three, 12), 0, "version %d", major);
        npy_free(&array);
    }
}

Test(npy, unfinished_files_are_refused_at_every_length)
{
    for (int major = 1; major <= 3; ++major) {
        char bytes[256];
        size_t size = compose(bytes, major, WITH_SHAPE("(3,)"), three, 12);

        for (size_t length = 1; length < size; ++length) {
            npy_array array;
            npy_error error = {""};

            cr_assert_not(read_bytes(bytes, length, 1, &array, &error),
                          "version %d, %zu bytes", major, length);
            cr_assert_neq(error.text[0], '\0');
        }
    }
}

static void assert_file_refused(char *bytes, size_t size, size_t ndim,
                                const char *part)
{
    npy_array array = {.data = bytes};
    npy_error error = {""};

    cr_assert_not(read_bytes(bytes, size, ndim, &array, &error));
    cr_assert(strstr(error.text, part), "\"%s\" without \"%s\"", error.text,
              part);
    cr_assert_eq(array.data, bytes, "the output was touched");
}

Test(npy, wrong_files_are_refused_with_the_reason)
{
    char bytes[256];
    size_t size = compose(bytes, 1, WITH_SHAPE("(3,)"), three, 12);

    assert_file_refused(bytes, size - 2, 1, "ends after 10 of the 12 bytes");
    assert_file_refused(bytes, size, 4,
                        "has the shape (3,), but must have 4 dimensions");
    bytes[size] = 0;
    assert_file_refused(bytes, size + 1, 1, "goes on after");
    bytes[6] = 4;
    assert_file_refused(bytes, size, 1, "version 4.0");
    bytes[6] = 1, bytes[7] = 1;
    assert_file_refused(bytes, size, 1, "version 1.1");
    bytes[0] = 'P';
    assert_file_refused(bytes, size, 1, "not a .npy file");
}

Test(npy, a_header_that_is_too_long_is_refused)
{
    char bytes[64] = "\x93NUMPY\x02";

    memset(bytes + 8, 0xFF, 4);
    assert_file_refused(bytes, sizeof(bytes), 1, "header of 4294967295 bytes");
}

/* Memory grows with the data, so this neither takes nor asks for terabytes. */
Test(npy, a_shape_that_promises_too_much_is_refused)
{
    char bytes[256];
    size_t size = compose(bytes, 1, WITH_SHAPE("(1099511627776,)"), three, 12);

    assert_file_refused(bytes, size, 1, "ends after 12 of the 4398046511104");
}

/* ---- Writing ----------------------------------------------------------- */

/* A new directory under $TMPDIR; its name stays valid in this process. */
static const char *temporary_directory(void)
{
    static char path[512];
    const char *base = getenv("TMPDIR");

    snprintf(path, sizeof(path), "%s/clconv-npy-XXXXXX", base ? base : "/tmp");
    cr_assert(mkdtemp(path) != NULL);
    return path;
}

static int count_files(const char *directory)
{
    DIR *dir = opendir(directory);
    int count = 0;

    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void assert_round_trip(const char *path, npy_header header,
                              const void *data)
{
    npy_error error = {""};
    npy_array array;

    cr_assert(npy_header_complete(&header, &error), "%s", error.text);
    cr_assert(npy_write(path, &header, data, &error), "%s", error.text);
    cr_assert(npy_read(path, header.ndim, &array, &error), "%s", error.text);
    cr_assert_eq(array.header.type, header.type);
    cr_assert_eq(array.header.bytes, header.bytes);
    for (size_t i = 0; i < header.ndim; ++i)
        cr_assert_eq(array.header.shape[i], header.shape[i]);
    cr_assert_eq(memcmp(array.data, data, header.bytes), 0);
    npy_free(&array);
}

Test(npy, what_is_written_is_read_back)
{
    const char *directory = temporary_directory();
    size_t many = 700001; /* more than one chunk of reading */
    uint16_t *data = malloc(many * sizeof(*data));
    char path[600];

    for (size_t i = 0; i < many; ++i)
        data[i] = (uint16_t)(i * 40503u);
    snprintf(path, sizeof(path), "%s/a.npy", directory);
    assert_round_trip(path, (npy_header){NPY_F32, 1, {3}, 0, 0}, three);
    assert_round_trip(path, (npy_header){NPY_F16, 1, {700001}, 0, 0}, data);
    assert_round_trip(path, (npy_header){NPY_F32, 2, {1000, 350}, 0, 0}, data);
    assert_round_trip(path, (npy_header){NPY_F32, 4, {0, 3, 2, 2}, 0, 0}, data);
    assert_round_trip(path, (npy_header){NPY_F32, 0, {0}, 0, 0}, data);
    cr_assert_eq(count_files(directory), 1, "temporary files are left");
    unlink(path);
    rmdir(directory);
    free(data);
}

Test(npy, headers_are_aligned_and_parse_back)
{
    npy_header wide = {NPY_F16, 8, {0}, 0, 0};
    char bytes[NPY_HEADER_BYTES];
    npy_header back;
    npy_error error = {""};
    size_t size;

    for (int i = 0; i < 8; ++i)
        wide.shape[i] = i == 3 ? 0 : INT64_MAX;
    size = npy_header_format(&wide, bytes);
    cr_assert_eq(size % 64, 0);
    cr_assert_eq(bytes[size - 1], '\n');
    cr_assert_eq((unsigned char)bytes[8] + 256 * (unsigned char)bytes[9],
                 size - 10);
    cr_assert(npy_header_parse(bytes + 10, size - 10, &back, &error), "%s",
              error.text);
    cr_assert_eq(back.shape[7], INT64_MAX);
}

Test(npy, a_staged_file_replaces_the_old_one_only_when_committed)
{
    const char *directory = temporary_directory();
    npy_header header = {NPY_F32, 1, {3}, 3, 12};
    const float other[3] = {7, 8, 9};
    npy_staged *staged;
    npy_error error = {""};
    npy_array array;
    char path[600];

    snprintf(path, sizeof(path), "%s/a.npy", directory);
    cr_assert(npy_write(path, &header, three, &error), "%s", error.text);
    cr_assert(npy_stage(path, &header, other, &staged, &error));
    cr_assert(npy_read(path, 1, &array, &error));
    cr_assert_eq(memcmp(array.data, three, 12), 0, "changed before commit");
    npy_free(&array);
    npy_discard(staged);
    cr_assert_eq(count_files(directory), 1, "discard left its file");

    cr_assert(npy_stage(path, &header, other, &staged, &error));
    cr_assert(npy_commit(staged, &error));
    cr_assert(npy_read(path, 1, &array, &error));
    cr_assert_eq(memcmp(array.data, other, 12), 0, "commit changed nothing");
    npy_free(&array);
    cr_assert_eq(count_files(directory), 1);
    unlink(path);
    rmdir(directory);
}

Test(npy, places_that_cannot_be_written_or_read_give_a_reason)
{
    npy_header header = {NPY_F32, 1, {3}, 3, 12};
    npy_array array;
    npy_error error = {""};

    cr_assert_not(npy_write("/nonexistent/a.npy", &header, three, &error));
    cr_assert(strstr(error.text, "No such file"), "%s", error.text);
    cr_assert_not(npy_read("/nonexistent/a.npy", 1, &array, &error));
    cr_assert(strstr(error.text, "No such file"), "%s", error.text);
    cr_assert_not(npy_read("/", 1, &array, &error));
    cr_assert(strstr(error.text, "Is a directory"), "%s", error.text);
}
