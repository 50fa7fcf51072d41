/*
 * OpenCL allows more than 48 KiB of static shared memory in a kernel, CUDA
 * does not: there such an array must be the launch's dynamic memory. In PTX it
 * is one word more and a length less.
 *
 * The registers that tell a kernel of its OpenCL launch hold anything in a
 * CUDA launch. For those that are replayed, of one dimension and without an
 * offset, their values are known.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATIC_SHARED_MAX ((size_t)48 << 10)

/* src/program_file.c: a magic, u64 format, bytes of key, bytes of data, two
 * hashes; then the key, then the data. Numbers are little-endian. */
#define ENTRY_MAGIC "clconvPB"
enum { ENTRY_KEY_SIZE = 16, ENTRY_HEADER = 64 };

static bool fail(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    return false;
}

/* ---- Files -------------------------------------------------------------- */

/* All bytes and a terminator. */
static bool read_stream(FILE *stream, program_image *out)
{
    size_t room = 1 << 16, size = 0;
    char *data = malloc(room + 1);

    while (data) {
        size += fread(data + size, 1, room - size, stream);
        if (size < room)
            break;
        char *longer = realloc(data, (room *= 2) + 1);
        if (!longer)
            free(data);
        data = longer;
    }
    if (!data)
        return false;
    data[size] = '\0';
    *out = (program_image){.data = data, .size = size};
    return !ferror(stream);
}

static bool read_file(const char *path, program_image *out)
{
    FILE *stream = fopen(path, "rb");
    bool ok;

    if (!stream)
        return fail(path, strerror(errno));
    ok = read_stream(stream, out);
    fclose(stream);
    return ok || fail(path, "cannot be read");
}

/* ---- Entries of the cache ----------------------------------------------- */

static bool is_entry(const program_image *image)
{
    return image->size >= ENTRY_HEADER &&
           memcmp(image->data, ENTRY_MAGIC, strlen(ENTRY_MAGIC)) == 0;
}

/* Leaves the data alone. */
static bool unpack_entry(const char *path, program_image *image)
{
    uint64_t key_size;
    size_t rest = image->size - ENTRY_HEADER;

    memcpy(&key_size, image->data + ENTRY_KEY_SIZE, sizeof(key_size));
    if (key_size >= rest)
        return fail(path, "the entry has no program");
    image->size = rest - (size_t)key_size;
    memmove(image->data, image->data + ENTRY_HEADER + key_size, image->size);
    image->data[image->size] = '\0';
    return true;
}

/* ---- Shared memory ------------------------------------------------------ */

/* Text, which drivers end with one terminator or several. */
static bool is_ptx(const program_image *image)
{
    size_t end = strlen(image->data);

    while (end < image->size && image->data[end] == '\0')
        ++end;
    return end == image->size && strstr(image->data, ".version") != NULL;
}

/* Bytes of a declaration such as ".shared .align 16 .b8 tiles[102400];", which
 * begins at its first character and ends at the bracket; 0: it is another. */
static size_t declared_bytes(const char *begin, const char *bracket)
{
    const char *type = bracket;
    unsigned bits;
    size_t count;

    while (type > begin && *type != '.')
        --type;
    if (sscanf(type, ".%*[bfsu]%u", &bits) != 1 ||
        sscanf(bracket, "[%zu];", &count) != 1)
        return 0;
    return count * bits / 8;
}

/* What a text becomes: large arrays are declared before all else, for one that is
 * extern may not be declared in a function. */
typedef struct rewriting {
    FILE *declarations, *text;
    size_t dynamic; /* bytes of the largest */
} rewriting;

/* The next declaration in shared memory, not of a parameter that points there. */
static const char *find_shared(const char *text)
{
    static const char pointer[] = ".ptr ";
    const size_t length = sizeof(pointer) - 1;
    const char *at = strstr(text, ".shared ");

    while (at && (size_t)(at - text) >= length &&
           memcmp(at - length, pointer, length) == 0)
        at = strstr(at + 1, ".shared ");
    return at;
}

/* Writes the text up to the end of its next shared array, which becomes
 * dynamic if it is too large; returns where to go on, NULL at the end. */
static const char *rewrite_next(const char *text, rewriting *to)
{
    const char *begin = find_shared(text);
    const char *end = begin ? strchr(begin, ';') : NULL;
    const char *bracket = end ? memchr(begin, '[', (size_t)(end - begin)) : NULL;
    size_t bytes = bracket ? declared_bytes(begin, bracket) : 0;

    if (!end) {
        fputs(text, to->text);
        return NULL;
    }
    if (bytes <= STATIC_SHARED_MAX) {
        fwrite(text, 1, (size_t)(end + 1 - text), to->text);
        return end + 1;
    }
    fwrite(text, 1, (size_t)(begin - text), to->text);
    fprintf(to->declarations, ".extern %.*s[];\n", (int)(bracket - begin), begin);
    to->dynamic = bytes > to->dynamic ? bytes : to->dynamic;
    return end + 1;
}

/* The line behind the directives that come first. */
static const char *body_of(const char *ptx)
{
    const char *size = strstr(ptx, ".address_size");
    const char *line = strchr(size ? size : ptx, '\n');

    return line ? line + 1 : ptx;
}

/* Head, declarations, body. */
static bool join(const char *ptx, const char *declarations, const char *text,
                 program_image *out)
{
    size_t head = (size_t)(body_of(ptx) - ptx);

    out->size = head + strlen(declarations) + strlen(text) + 1;
    out->data = malloc(out->size); /* the terminator belongs to PTX */
    if (!out->data)
        return false;
    memcpy(out->data, ptx, head);
    snprintf(out->data + head, out->size - head, "%s%s", declarations, text);
    return true;
}

static bool make_large_arrays_dynamic(const char *path, program_image *image)
{
    char *parts[2] = {NULL, NULL};
    size_t sizes[2];
    rewriting to = {open_memstream(&parts[0], &sizes[0]),
                    open_memstream(&parts[1], &sizes[1]), 0};
    const char *rest = body_of(image->data);
    program_image changed = {0};
    bool done = to.declarations && to.text;

    while (done && rest)
        rest = rewrite_next(rest, &to);
    if (to.declarations)
        done = fclose(to.declarations) == 0 && done;
    if (to.text)
        done = fclose(to.text) == 0 && done;
    done = done && join(image->data, parts[0], parts[1], &changed);
    free(parts[0]);
    free(parts[1]);
    if (!done)
        return fail(path, "no memory");
    changed.dynamic_shared = to.dynamic;
    program_image_free(image);
    *image = changed;
    return true;
}

/* ---- Registers of an OpenCL launch --------------------------------------- */

/* %envreg0 to 5 are offsets of groups and items, 6 to 8 numbers of groups. */
static const char *value_of(int number)
{
    if (number > 8)
        return NULL;
    return number == 6 ? "%nctaid.x" : number > 6 ? "1" : "0";
}

/* Writes the text up to and with its next such register; returns where to go
 * on, NULL at the end. */
static const char *replace_next(const char *text, FILE *to)
{
    static const char name[] = "%envreg";
    const char *at = strstr(text, name);
    const char *value;
    char *end;

    if (!at) {
        fputs(text, to);
        return NULL;
    }
    value = value_of((int)strtol(at + strlen(name), &end, 10));
    fwrite(text, 1, (size_t)((value ? at : end) - text), to);
    fputs(value ? value : "", to);
    return end;
}

static bool replace_registers(const char *path, program_image *image)
{
    program_image changed = {.dynamic_shared = image->dynamic_shared};
    FILE *to = open_memstream(&changed.data, &changed.size);
    const char *rest = image->data;

    while (to && rest)
        rest = replace_next(rest, to);
    if (!to || fclose(to) != 0) {
        free(changed.data);
        return fail(path, "no memory");
    }
    ++changed.size; /* the terminator belongs to PTX */
    program_image_free(image);
    *image = changed;
    return true;
}

/* ---- The whole ---------------------------------------------------------- */

static bool make_ready(const char *path, program_image *image)
{
    return !is_ptx(image) || (make_large_arrays_dynamic(path, image) &&
                              replace_registers(path, image));
}

bool program_image_read(const char *path, program_image *out)
{
    program_image image = {0};

    if (!read_file(path, &image))
        return false;
    if ((is_entry(&image) && !unpack_entry(path, &image)) ||
        !make_ready(path, &image)) {
        program_image_free(&image);
        return false;
    }
    *out = image;
    return true;
}

void program_image_free(program_image *image)
{
    free(image->data);
    *image = (program_image){0};
}
