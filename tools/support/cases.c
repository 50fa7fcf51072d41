/*
 * A field is cut out of the line, trimmed of nothing, and read as its column
 * says. One reader walks the whole text and knows where it is, so every
 * message carries file, line and column (bytes, from 1).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Columns ------------------------------------------------------------ */

typedef struct column {
    const char *name;
    size_t offset; /* of the int64_t in clconv_desc */
    int64_t low;
} column;

/* Column 0 is the row's name; the others fill the description. */
static const column columns[] = {
    {"name", 0, 0},
    {"N", offsetof(clconv_desc, n), 0},
    {"C", offsetof(clconv_desc, c), 1},
    {"H", offsetof(clconv_desc, h), 1},
    {"W", offsetof(clconv_desc, w), 1},
    {"K", offsetof(clconv_desc, k), 1},
    {"R", offsetof(clconv_desc, r), 1},
    {"S", offsetof(clconv_desc, s), 1},
    {"stride_h", offsetof(clconv_desc, stride_h), 1},
    {"stride_w", offsetof(clconv_desc, stride_w), 1},
    {"pad_top", offsetof(clconv_desc, pad_top), 0},
    {"pad_bottom", offsetof(clconv_desc, pad_bottom), 0},
    {"pad_left", offsetof(clconv_desc, pad_left), 0},
    {"pad_right", offsetof(clconv_desc, pad_right), 0},
    {"dilation_h", offsetof(clconv_desc, dilation_h), 1},
    {"dilation_w", offsetof(clconv_desc, dilation_w), 1},
    {"groups", offsetof(clconv_desc, groups), 1},
};

enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]) };

static int find_column(const char *name, size_t length)
{
    for (int i = 0; i < COLUMN_COUNT; ++i) {
        if (strlen(columns[i].name) == length &&
            memcmp(columns[i].name, name, length) == 0)
            return i;
    }
    return -1;
}

/* ---- Reading the text --------------------------------------------------- */

typedef struct reader {
    const char *file;
    const char *line_start;
    const char *at;
    size_t line;             /* from 1 */
    int order[COLUMN_COUNT]; /* the column of each field */
    char *error;
} reader;

typedef struct field {
    const char *text;
    size_t length;
} field;

/* Writes "file:line:column: reason" and returns false. */
static bool fail_at(const reader *in, const char *where, const char *format, ...)
{
    va_list values;
    int length =
        snprintf(in->error, CASES_ERROR_SIZE, "%.200s:%zu:%zu: ", in->file,
                 in->line, (size_t)(where - in->line_start) + 1);

    va_start(values, format);
    vsnprintf(in->error + length, CASES_ERROR_SIZE - (size_t)length, format,
              values);
    va_end(values);
    return false;
}

/* A field's text for a message: at most 40 bytes of it. */
static int shown(field f)
{
    return f.length > 40 ? 40 : (int)f.length;
}

static bool at_line_end(const reader *in)
{
    return *in->at == '\0' || *in->at == '\n' ||
           (in->at[0] == '\r' && in->at[1] == '\n');
}

static void next_line(reader *in)
{
    in->at += *in->at == '\r';
    in->at += *in->at == '\n';
    in->line_start = in->at;
    ++in->line;
}

/* The text up to the next comma or the end of the line. */
static field take_field(reader *in)
{
    field f = {in->at, 0};

    while (*in->at != ',' && !at_line_end(in))
        ++in->at;
    f.length = (size_t)(in->at - f.text);
    return f;
}

/* Steps over the comma between field i and the next; after the last there
 * must be none. */
static bool take_separator(reader *in, int i)
{
    bool last = i == COLUMN_COUNT - 1;

    if (last && *in->at == ',')
        return fail_at(in, in->at, "a row has %d fields, this one has more",
                       COLUMN_COUNT);
    if (!last && *in->at != ',')
        return fail_at(in, in->at, "a row has %d fields, this one has %d",
                       COLUMN_COUNT, i + 1);
    in->at += !last;
    return true;
}

/* ---- Header ------------------------------------------------------------- */

static bool fail_missing(const reader *in, const bool *seen)
{
    for (int i = 0; i < COLUMN_COUNT; ++i) {
        if (!seen[i])
            return fail_at(in, in->at, "column \"%s\" is missing",
                           columns[i].name);
    }
    return true;
}

static bool read_header(reader *in)
{
    bool seen[COLUMN_COUNT] = {false};

    if (at_line_end(in))
        return fail_at(in, in->at, "the first line must name the columns");
    for (int i = 0;; ++i) {
        field f = take_field(in);
        int id = find_column(f.text, f.length);

        if (id < 0)
            return fail_at(in, f.text, "unknown column \"%.*s\"", shown(f),
                           f.text);
        if (seen[id])
            return fail_at(in, f.text, "column \"%s\" stands twice",
                           columns[id].name);
        seen[id] = true;
        in->order[i] = id;
        if (*in->at != ',')
            break;
        ++in->at;
    }
    return fail_missing(in, seen);
}

/* ---- Rows --------------------------------------------------------------- */

static bool is_digits(field f)
{
    size_t i = 0;

    while (i < f.length && f.text[i] >= '0' && f.text[i] <= '9')
        ++i;
    return i == f.length && i > 0;
}

static bool read_number(const reader *in, field f, const column *c,
                        clconv_desc *desc)
{
    char text[24] = "";
    int64_t value;

    if (!is_digits(f))
        return fail_at(in, f.text, "%s: \"%.*s\" is not a whole number",
                       c->name, shown(f), f.text);
    /* More digits than CASES_MAX has are out of range by their number. */
    if (f.length < sizeof(text))
        memcpy(text, f.text, f.length);
    value = f.length < 12 ? (int64_t)strtoll(text, NULL, 10) : INT64_MAX;
    if (value < c->low || value > CASES_MAX)
        return fail_at(in, f.text, "%s: %.*s is not in %" PRId64 " to %d",
                       c->name, shown(f), f.text, c->low, CASES_MAX);
    memcpy((char *)desc + c->offset, &value, sizeof(value));
    return true;
}

static bool check_name(const reader *in, field f)
{
    if (f.length == 0)
        return fail_at(in, f.text, "the name is empty");
    if (memchr(f.text, '"', f.length))
        return fail_at(in, f.text, "quotes are not supported");
    return true;
}

static bool add_field_copy(case_list *list, field name, const clconv_desc *desc)
{
    case_row *grown =
        realloc(list->items, (list->count + 1) * sizeof(*list->items));
    char *copy = malloc(name.length + 1);

    if (grown)
        list->items = grown;
    if (!grown || !copy) {
        free(copy);
        return false;
    }
    memcpy(copy, name.text, name.length);
    copy[name.length] = '\0';
    grown[list->count++] = (case_row){.name = copy, .desc = *desc};
    return true;
}

static bool read_row(reader *in, case_list *list)
{
    field name = {NULL, 0};
    clconv_desc desc;

    clconv_desc_init(&desc);
    for (int i = 0; i < COLUMN_COUNT; ++i) {
        field f = take_field(in);
        const column *c = &columns[in->order[i]];

        if (c == &columns[0]) {
            name = f;
            if (!check_name(in, f))
                return false;
        } else if (!read_number(in, f, c, &desc)) {
            return false;
        }
        if (!take_separator(in, i))
            return false;
    }
    if (!add_field_copy(list, name, &desc))
        return fail_at(in, in->at, "out of memory");
    return true;
}

static bool read_rows(reader *in, case_list *list)
{
    for (; *in->at; next_line(in)) {
        if (!at_line_end(in) && !read_row(in, list))
            return false;
    }
    if (list->count == 0)
        return fail_at(in, in->at, "there are no rows");
    return true;
}

/* ---- The whole ---------------------------------------------------------- */

/* Spreadsheets mark UTF-8 by an invisible character in front. */
static const char *skip_mark(const char *text)
{
    static const char mark[] = "\xEF\xBB\xBF";

    return strncmp(text, mark, strlen(mark)) == 0 ? text + strlen(mark) : text;
}

bool cases_parse(const char *file, const char *text, case_list *out, char *error)
{
    const char *start = skip_mark(text);
    reader in = {.file = file,
                 .line_start = start,
                 .at = start,
                 .line = 1,
                 .error = error};
    case_list list = {NULL, 0};

    if (!read_header(&in))
        return false;
    next_line(&in);
    if (!read_rows(&in, &list)) {
        cases_free(&list);
        return false;
    }
    *out = list;
    return true;
}

/* The whole stream, terminated; *length is without the 0 behind it. NULL and
 * errno on failure. */
static char *read_stream(FILE *stream, size_t *length)
{
    size_t size = 0, capacity = 1 << 16;
    char *text = malloc(capacity);

    while (text) {
        char *grown;

        size += fread(text + size, 1, capacity - size - 1, stream);
        if (feof(stream) || ferror(stream))
            break;
        capacity *= 2;
        grown = realloc(text, capacity);
        if (!grown)
            free(text);
        text = grown;
    }
    if (text && ferror(stream)) {
        free(text);
        return NULL;
    }
    if (text)
        text[size] = '\0';
    *length = size;
    return text;
}

bool cases_read(const char *path, case_list *out, char *error)
{
    FILE *stream = fopen(path, "rb");
    size_t length = 0;
    char *text = stream ? read_stream(stream, &length) : NULL;
    bool ok = false;

    if (!text)
        snprintf(error, CASES_ERROR_SIZE, "%.200s: %s", path, strerror(errno));
    else if (strlen(text) != length)
        snprintf(error, CASES_ERROR_SIZE, "%.200s: is not text", path);
    else
        ok = cases_parse(path, text, out, error);
    if (stream)
        fclose(stream);
    free(text);
    return ok;
}

bool cases_add(case_list *list, const char *name, const clconv_desc *desc)
{
    return add_field_copy(list, (field){name, strlen(name)}, desc);
}

void cases_free(case_list *list)
{
    for (size_t i = 0; i < list->count; ++i)
        free(list->items[i].name);
    free(list->items);
    *list = (case_list){NULL, 0};
}

/* ---- Printing ----------------------------------------------------------- */

static void print_row(FILE *to, const case_row *row)
{
    fputs(row->name, to);
    for (int i = 1; i < COLUMN_COUNT; ++i) {
        int64_t value;

        memcpy(&value, (const char *)&row->desc + columns[i].offset,
               sizeof(value));
        fprintf(to, ",%" PRId64, value);
    }
    fputc('\n', to);
}

void cases_print(FILE *to, const case_list *list)
{
    for (int i = 0; i < COLUMN_COUNT; ++i)
        fprintf(to, "%s%s", i ? "," : "", columns[i].name);
    fputc('\n', to);
    for (size_t i = 0; i < list->count; ++i)
        print_row(to, &list->items[i]);
}
