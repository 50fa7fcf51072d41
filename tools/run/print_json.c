/*
 * The JSON object (RFC 8259). Numbers are finite by construction: max_abs is
 * that of the finite elements, and NaN and Inf are counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <inttypes.h>

#include "extent.h"

/* Bytes of the well-formed UTF-8 character at text, 0 if it is none. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80                       ? 1
                    : text[0] >= 0xC2 && text[0] <= 0xDF ? 2
                    : (text[0] & 0xF0) == 0xE0           ? 3
                    : text[0] >= 0xF0 && text[0] <= 0xF4 ? 4
                                                         : 0;

    for (size_t i = 1; i < length; ++i) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((text[0] == 0xE0 && text[1] < 0xA0) || /* longer than needed */
        (text[0] == 0xED && text[1] > 0x9F) || /* half of a pair */
        (text[0] == 0xF0 && text[1] < 0x90) ||
        (text[0] == 0xF4 && text[1] > 0x8F)) /* beyond the last */
        return 0;
    return length;
}

/* A file's name may hold any byte: what is not UTF-8 becomes U+FFFD. */
static void print_string(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    putchar('"');
    while (*at) {
        size_t length = utf8_length(at);

        if (length == 0)
            fputs("\\ufffd", stdout);
        else if (*at < 0x20 || *at == 0x7F)
            printf("\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else
            fwrite(at, 1, length, stdout);
        at += length ? length : 1;
    }
    putchar('"');
}

static void print_member(const char *key, const char *text)
{
    printf("  \"%s\": ", key);
    print_string(text);
    fputs(",\n", stdout);
}

static void print_counts(const clconv_counts *c)
{
    printf("{\"nonzero\": %" PRIu64 ", \"zeroed\": %" PRIu64
           ", \"subnormal\": %" PRIu64 ", \"saturated\": %" PRIu64
           ", \"nan\": %" PRIu64 ", \"inf\": %" PRIu64 "}",
           c->nonzero, c->zeroed, c->subnormal, c->saturated, c->nan, c->inf);
}

static void print_shape(const npy_header *header)
{
    putchar('[');
    for (size_t i = 0; i < header->ndim; ++i)
        printf("%s%" PRId64, i ? ", " : "", header->shape[i]);
    putchar(']');
}

static void print_tensor(const print_row *row)
{
    extent e = extent_of(row->array);

    printf("    \"%s\": {\n      \"file\": ", row->name);
    print_string(row->path);
    printf(",\n      \"type\": \"%s\", \"shape\": ",
           row->array->header.type == NPY_F32 ? "float32" : "float16");
    print_shape(&row->array->header);
    printf(",\n      \"max_abs\": %.9g, \"nan\": %" PRIu64
           ", \"inf\": %" PRIu64,
           e.max_abs, e.nan, e.inf);
    fputs(",\n      \"cast\": ", stdout);
    if (row->counts)
        print_counts(row->counts);
    else
        fputs("null", stdout);
    fputs("\n    }", stdout);
}

static void print_tensors(const print_row rows[PRINT_ROWS])
{
    fputs("  \"tensors\": {\n", stdout);
    for (size_t i = 0; i < PRINT_ROWS; ++i) {
        print_tensor(&rows[i]);
        fputs(i + 1 < PRINT_ROWS ? ",\n" : "\n", stdout);
    }
    fputs("  },\n", stdout);
}

static void print_warnings(const advice *a)
{
    fputs("  \"warnings\": [", stdout);
    for (size_t i = 0; i < a->count; ++i) {
        fputs(i ? ",\n    " : "\n    ", stdout);
        print_string(a->lines[i]);
    }
    fputs(a->count ? "\n  ]\n" : "]\n", stdout);
}

void print_json(const run_summary *summary)
{
    print_row rows[PRINT_ROWS];

    print_collect_rows(summary, rows);
    puts("{");
    print_member("version", clconv_version());
    print_member("problem", summary->facts->problem);
    print_member("platform", summary->facts->platform);
    print_member("device", summary->facts->device);
    print_member("plan", summary->facts->plan);
    printf("  \"milliseconds\": %.6f,\n", summary->facts->milliseconds);
    print_tensors(rows);
    print_warnings(summary->warnings);
    puts("}");
}
