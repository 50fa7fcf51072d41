/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "launch_file.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *path;
    int line;
    char *rest; /* of the line, where the next word is looked for */
    launch_file *file;
} reader;

static bool fail(const reader *in, const char *expected)
{
    fprintf(stderr, "%s:%d: expected %s\n", in->path, in->line, expected);
    return false;
}

/* ---- Words -------------------------------------------------------------- */

/* NULL: the line has no more. */
static char *next_word(reader *in)
{
    char *word = in->rest + strspn(in->rest, " \t\r\n");
    size_t length = strcspn(word, " \t\r\n");

    in->rest = word + length + (word[length] != '\0');
    word[length] = '\0';
    return length ? word : NULL;
}

static bool take_name(reader *in, char out[NAME_SIZE])
{
    const char *word = next_word(in);

    if (!word || strlen(word) >= NAME_SIZE)
        return fail(in, "a name of fewer than 256 characters");
    strcpy(out, word);
    return true;
}

static bool parse_number(const char *text, unsigned long long most,
                         unsigned long long *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 &&
           *out <= most;
}

static bool take_number(reader *in, unsigned long long most,
                        unsigned long long *out)
{
    const char *word = next_word(in);

    return (word && parse_number(word, most, out)) || fail(in, "a number");
}

/* The number of a line that defines a program or a buffer. */
static bool take_index(reader *in, int expected)
{
    unsigned long long number;

    return take_number(in, INT_MAX, &number) &&
           ((int)number == expected || fail(in, "the next number in order"));
}

/* One element more; NULL without memory. */
static void *grown(reader *in, void *array, int count, size_t size)
{
    void *longer = realloc(array, ((size_t)count + 1) * size);

    if (!longer)
        fail(in, "more memory");
    return longer;
}

/* ---- Arguments ---------------------------------------------------------- */

static bool take_hex(reader *in, const char *digits, replay_arg *out)
{
    size_t length = strlen(digits);

    if (length == 0 || length % 2 || length / 2 > VALUE_MAX)
        return fail(in, "two hex digits for each of 1 to 512 bytes");
    for (out->size = 0; out->size < length / 2; ++out->size) {
        const char pair[3] = {digits[2 * out->size], digits[2 * out->size + 1],
                              '\0'};
        char *end;

        out->value[out->size] = (unsigned char)strtoul(pair, &end, 16);
        if (*end)
            return fail(in, "hex digits");
    }
    return true;
}

static void set_value(replay_arg *out, const void *value, size_t size)
{
    memcpy(out->value, value, size);
    out->size = size;
}

static bool take_buffer(reader *in, const char *text, replay_arg *out)
{
    unsigned long long number;

    if (!parse_number(text, INT_MAX, &number) ||
        (int)number >= in->file->buffer_count)
        return fail(in, "the number of a buffer above");
    out->buffer = (int)number;
    return true;
}

static bool take_scalar(reader *in, const char *word, replay_arg *out)
{
    char *end;
    long long whole = strtoll(word + 1, &end, 10);
    int32_t narrow = (int32_t)whole;
    int64_t wide = whole;
    float real = strtof(word + 1, word[0] == 'f' ? &end : NULL);

    if (word[1] == '\0' || *end)
        return fail(in, "i5, l5 or f0.5");
    switch (word[0]) {
    case 'i': set_value(out, &narrow, sizeof(narrow)); break;
    case 'l': set_value(out, &wide, sizeof(wide)); break;
    default: set_value(out, &real, sizeof(real)); break;
    }
    return true;
}

static bool take_arg(reader *in, const char *word, replay_arg *out)
{
    *out = (replay_arg){.buffer = -1};
    if (strcmp(word, "null") == 0) {
        out->size = sizeof(void *);
        return true;
    }
    switch (word[0]) {
    case 'b': return take_buffer(in, word + 1, out);
    case 'x': return take_hex(in, word + 1, out);
    case 'i':
    case 'l':
    case 'f': return take_scalar(in, word, out);
    default: return fail(in, "b0, l5, i5, f0.5, null or x0a00");
    }
}

/* ---- Lines -------------------------------------------------------------- */

static bool take_program_line(reader *in)
{
    launch_file *f = in->file;
    void *longer =
        grown(in, f->programs, f->program_count, sizeof(*f->programs));

    if (!longer)
        return false;
    f->programs = longer;
    return take_index(in, f->program_count) &&
           take_name(in, f->programs[f->program_count++]);
}

static bool take_buffer_line(reader *in)
{
    launch_file *f = in->file;
    void *longer = grown(in, f->buffers, f->buffer_count, sizeof(*f->buffers));
    unsigned long long bytes;
    replay_buffer *b;

    if (!longer)
        return false;
    f->buffers = longer;
    b = &f->buffers[f->buffer_count];
    if (!take_index(in, f->buffer_count) ||
        !take_number(in, SIZE_MAX, &bytes) || !take_name(in, b->fill))
        return false;
    b->bytes = (size_t)bytes;
    ++f->buffer_count;
    return true;
}

static bool take_launch(reader *in, replay_launch *out)
{
    unsigned long long program, groups, local;
    const char *word;

    if (!take_number(in, INT_MAX, &program) || !take_name(in, out->entry) ||
        !take_number(in, INT_MAX, &groups) || !take_number(in, 1024, &local))
        return false;
    if ((int)program >= in->file->program_count)
        return fail(in, "the number of a program above");
    out->program = (int)program;
    out->groups = (unsigned)groups;
    out->local = (unsigned)local;
    for (out->arg_count = 0; (word = next_word(in)) != NULL; ++out->arg_count) {
        if (out->arg_count == ARGS_MAX)
            return fail(in, "at most 48 arguments");
        if (!take_arg(in, word, &out->args[out->arg_count]))
            return false;
    }
    return true;
}

static bool take_launch_line(reader *in)
{
    launch_file *f = in->file;
    void *longer = grown(in, f->launches, f->launch_count, sizeof(*f->launches));

    if (!longer)
        return false;
    f->launches = longer;
    return take_launch(in, &f->launches[f->launch_count++]);
}

static bool take_line(reader *in)
{
    const char *word;

    in->rest[strcspn(in->rest, "#")] = '\0';
    word = next_word(in);
    if (!word)
        return true;
    if (strcmp(word, "program") == 0)
        return take_program_line(in);
    if (strcmp(word, "buffer") == 0)
        return take_buffer_line(in);
    if (strcmp(word, "launch") == 0)
        return take_launch_line(in);
    return fail(in, "program, buffer or launch");
}

/* ---- Files -------------------------------------------------------------- */

static bool take_lines(reader *in, FILE *stream)
{
    static char text[TEXT_MAX];

    for (in->line = 1; fgets(text, sizeof(text), stream); ++in->line) {
        in->rest = text;
        if (!take_line(in))
            return false;
    }
    return in->file->launch_count > 0 || fail(in, "a launch");
}

bool launch_file_read(const char *path, launch_file *out)
{
    launch_file f = {0};
    reader in = {.path = path, .file = &f};
    FILE *stream = fopen(path, "r");
    bool ok;

    if (!stream) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    ok = take_lines(&in, stream);
    fclose(stream);
    if (ok)
        *out = f;
    else
        launch_file_free(&f);
    return ok;
}

void launch_file_free(launch_file *f)
{
    free(f->programs);
    free(f->buffers);
    free(f->launches);
    *f = (launch_file){0};
}

void launch_file_print(FILE *to, const launch_file *f)
{
    for (int i = 0; i < f->launch_count; ++i) {
        const replay_launch *l = &f->launches[i];

        fprintf(to, "%3d  %s (%s): %u groups of %u, %d arguments\n", i, l->entry,
                f->programs[l->program], l->groups, l->local, l->arg_count);
    }
}
