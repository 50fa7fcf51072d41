/*
 * The header of a .npy file is the text of a Python dictionary:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (64, 3, 28, 28), }
 *
 * A cursor walks over it once. Every take_ function expects one thing at the
 * cursor and moves behind it, or writes what it expected and where, and
 * returns false. It never reads at or behind cursor.end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "npy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define ACCEPTED "only float32 ('<f4') and float16 ('<f2') can be read"

typedef struct cursor {
    const char *start, *at, *end;
    npy_error *error;
} cursor;

/* Which keys have been seen, a mask. */
enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

static size_t element_size(npy_type type)
{
    return type == NPY_F32 ? 4 : 2;
}

static bool fail_at(cursor *c, const char *reason)
{
    snprintf(c->error->text, sizeof(c->error->text),
             "header is damaged at its byte %td: %s", c->at - c->start, reason);
    return false;
}

/* ---- Characters and words ---------------------------------------------- */

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
                              *c->at == '\t' || *c->at == '\r'))
        ++c->at;
}

static bool is_next(const cursor *c, char wanted)
{
    return c->at < c->end && *c->at == wanted;
}

/* Takes wanted if it is next, then blanks. */
static bool try_char(cursor *c, char wanted)
{
    if (!is_next(c, wanted))
        return false;
    ++c->at;
    skip_blanks(c);
    return true;
}

static bool try_word(cursor *c, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    skip_blanks(c);
    return true;
}

/* A quoted string without escapes, of fewer than size bytes. */
static bool take_string(cursor *c, char *out, size_t size)
{
    char quote = is_next(c, '"') ? '"' : '\'';
    size_t length = 0;

    if (!is_next(c, quote))
        return fail_at(c, "a quoted string was expected");
    for (++c->at; !is_next(c, quote); ++c->at) {
        if (c->at == c->end || *c->at < ' ' || *c->at > '~' || *c->at == '\\' ||
            length + 1 == size)
            return fail_at(c, "a string is too long or has odd characters");
        out[length++] = *c->at;
    }
    out[length] = '\0';
    return try_char(c, quote);
}

/* A whole number of decimal digits, as Python 3 writes them, or Python 2 with
 * an L behind. */
static bool take_dimension(cursor *c, int64_t *out)
{
    const char *first = c->at;
    int64_t value = 0;

    if (is_next(c, '-'))
        return fail_at(c, "the shape has a negative dimension");
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; ++c->at) {
        int digit = *c->at - '0';

        if (value > (INT64_MAX - digit) / 10)
            return fail_at(c, "the shape has a dimension beyond 2^63");
        value = value * 10 + digit;
    }
    if (c->at == first)
        return fail_at(c, "a dimension was expected, a whole number");
    if (*first == '0' && c->at - first > 1)
        return fail_at(c, "a dimension starts with 0");
    try_char(c, 'L');
    skip_blanks(c);
    *out = value;
    return true;
}

/* ---- The three values -------------------------------------------------- */

/* The byte order '=' is this machine's, which like every machine with an
 * OpenCL device is little-endian; '|' says that there is none to choose. */
static bool take_descr(cursor *c, npy_header *header)
{
    char text[32];
    const char *type = text;

    if (is_next(c, '[')) {
        snprintf(c->error->text, sizeof(c->error->text),
                 "holds elements with fields; " ACCEPTED);
        return false;
    }
    if (!take_string(c, text, sizeof(text)))
        return false;
    if (*type != '\0' && strchr("<=|", *type))
        ++type;
    if (strcmp(type, "f4") == 0) {
        header->type = NPY_F32;
    } else if (strcmp(type, "f2") == 0) {
        header->type = NPY_F16;
    } else {
        snprintf(c->error->text, sizeof(c->error->text),
                 "holds elements of type '%s'; " ACCEPTED, text);
        return false;
    }
    return true;
}

static bool take_order(cursor *c)
{
    if (try_word(c, "False"))
        return true;
    if (!try_word(c, "True"))
        return fail_at(c, "fortran_order must be True or False");
    snprintf(c->error->text, sizeof(c->error->text),
             "is in Fortran order; only C order can be read "
             "(numpy.ascontiguousarray)");
    return false;
}

/* "()", "(3,)", "(3, 4)" or "(3, 4,)": a comma stands behind every number but
 * the last of several. */
static bool take_shape(cursor *c, npy_header *header)
{
    size_t ndim = 0;
    bool comma = true;

    if (!try_char(c, '('))
        return fail_at(c, "the shape must be a tuple");
    while (!try_char(c, ')')) {
        if (!comma)
            return fail_at(c, "',' or ')' was expected in the shape");
        if (ndim == NPY_MAX_DIMS)
            return fail_at(c, "the shape has more than 8 dimensions");
        if (!take_dimension(c, &header->shape[ndim++]))
            return false;
        comma = try_char(c, ',');
    }
    if (ndim == 1 && !comma)
        return fail_at(c, "the shape must be a tuple");
    header->ndim = ndim;
    return true;
}

/* ---- The dictionary ---------------------------------------------------- */

static int key_of(const char *name)
{
    return strcmp(name, "descr") == 0           ? KEY_DESCR
           : strcmp(name, "fortran_order") == 0 ? KEY_ORDER
           : strcmp(name, "shape") == 0         ? KEY_SHAPE
                                                : 0;
}

/* One "'key': value". */
static bool take_entry(cursor *c, int *seen, npy_header *header)
{
    char name[32];
    int key;

    if (!take_string(c, name, sizeof(name)))
        return false;
    key = key_of(name);
    if (key == 0)
        return fail_at(c, "a key is not descr, fortran_order or shape");
    if (*seen & key)
        return fail_at(c, "a key stands there twice");
    *seen |= key;
    if (!try_char(c, ':'))
        return fail_at(c, "':' was expected");
    switch (key) {
    case KEY_DESCR: return take_descr(c, header);
    case KEY_ORDER: return take_order(c);
    default: return take_shape(c, header);
    }
}

static bool take_dictionary(cursor *c, npy_header *header)
{
    int seen = 0;
    bool comma = true;

    skip_blanks(c);
    if (!try_char(c, '{'))
        return fail_at(c, "'{' was expected");
    while (!try_char(c, '}')) {
        if (!comma)
            return fail_at(c, "',' or '}' was expected");
        if (!take_entry(c, &seen, header))
            return false;
        comma = try_char(c, ',');
    }
    if (c->at != c->end)
        return fail_at(c, "something stands behind the '}'");
    if (seen != KEY_ALL)
        return fail_at(c, "descr, fortran_order or shape is missing");
    return true;
}

bool npy_header_parse(const char *text, size_t length, npy_header *out,
                      npy_error *error)
{
    cursor c = {text, text, text + length, error};
    npy_header header = {0};

    if (!take_dictionary(&c, &header) || !npy_header_complete(&header, error))
        return false;
    *out = header;
    return true;
}

bool npy_header_complete(npy_header *header, npy_error *error)
{
    size_t limit = (size_t)PTRDIFF_MAX / element_size(header->type);
    size_t elements = 1;
    bool empty = false, fits = true;

    for (size_t i = 0; i < header->ndim; ++i) {
        size_t dimension = (size_t)header->shape[i];

        if (header->shape[i] < 0) {
            snprintf(error->text, sizeof(error->text),
                     "the shape has a negative dimension");
            return false;
        }
        empty = empty || dimension == 0;
        fits = fits && (dimension == 0 || elements <= limit / dimension);
        if (fits && !empty)
            elements *= dimension;
    }
    if (!fits && !empty) {
        snprintf(error->text, sizeof(error->text),
                 "the shape is too large for this machine");
        return false;
    }
    header->elements = empty ? 0 : elements;
    header->bytes = header->elements * element_size(header->type);
    return true;
}

/* ---- Writing ----------------------------------------------------------- */

/* 8 numbers of at most 19 digits, with ", " between them. */
#define MAX_SHAPE_TEXT (NPY_MAX_DIMS * 22 + 4)

/* "(64, 3, 28, 28)", "(64,)" */
static void format_shape(const npy_header *header, char text[MAX_SHAPE_TEXT])
{
    int length = snprintf(text, MAX_SHAPE_TEXT, "(");

    for (size_t i = 0; i < header->ndim; ++i)
        length += snprintf(text + length, MAX_SHAPE_TEXT - (size_t)length,
                           "%s%" PRId64, i ? ", " : "", header->shape[i]);
    snprintf(text + length, MAX_SHAPE_TEXT - (size_t)length, "%s)",
             header->ndim == 1 ? "," : "");
}

size_t npy_header_format(const npy_header *header, char bytes[NPY_HEADER_BYTES])
{
    static const char magic[10] = "\x93NUMPY\x01\x00"; /* length: below */
    char shape[MAX_SHAPE_TEXT];
    size_t length, total;

    format_shape(header, shape);
    memcpy(bytes, magic, sizeof(magic));
    length = sizeof(magic);
    length += (size_t)snprintf(
        bytes + length, NPY_HEADER_BYTES - length,
        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
        header->type == NPY_F32 ? "<f4" : "<f2", shape);

    total = (length + 1 + 63) / 64 * 64;
    memset(bytes + length, ' ', total - length);
    bytes[total - 1] = '\n';
    bytes[8] = (char)((total - sizeof(magic)) & 0xFF);
    bytes[9] = (char)((total - sizeof(magic)) >> 8);
    return total;
}

const char *npy_shape_describe(const npy_header *header, char *text, size_t size)
{
    char shape[MAX_SHAPE_TEXT];

    format_shape(header, shape);
    snprintf(text, size, "%s", shape);
    return text;
}

const char *npy_header_describe(const npy_header *header, char *text,
                                size_t size)
{
    char shape[MAX_SHAPE_TEXT];

    format_shape(header, shape);
    snprintf(text, size, "%s %s",
             header->type == NPY_F32 ? "float32" : "float16", shape);
    return text;
}
