/*
 * Line by line: all that matters stands at the start of one, after white
 * space. Line ends stay as they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ptx.h"

#include <ctype.h>
#include <string.h>

bool clconv_ptx_wants_retarget(const char *source)
{
    return strstr(source, CLCONV_PTX_MARK) != NULL;
}

/* ---- A line, from at to end -------------------------------------------- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        ++at;
    return at;
}

/* Behind the word that the line starts with; NULL: it does not. */
static const char *skip_word(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    bool starts = (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
    return starts ? at + length : NULL;
}

/* Behind the name in ".target sm_90, texmode_independent"; NULL: another line. */
static const char *skip_target(const char *at, const char *end, const char *name)
{
    at = skip_word(at, end, ".target");
    if (at)
        at = skip_word(skip_blanks(at, end), end, name);
    return at && at < end && isalnum((unsigned char)*at) ? NULL : at;
}

/* ---- The text ---------------------------------------------------------- */

typedef struct found {
    bool version, target, mark;
} found;

static void put_line(const char *line, const char *end, found *f,
                     clconv_text *out)
{
    const char *at = skip_blanks(line, end);
    const char *marked = skip_word(at, end, CLCONV_PTX_MARK);
    const char *target = skip_target(at, end, "sm_90");
    f->version = f->version || skip_word(at, end, ".version");
    f->target = f->target || target || skip_target(at, end, "sm_90a");
    clconv_text_append(out, line, (size_t)(at - line));
    if (marked) {
        f->mark = true;
        at = marked;
    } else if (target) {
        clconv_text_append(out, at, (size_t)(target - at));
        clconv_text_puts(out, "a");
        at = target;
    }
    clconv_text_append(out, at, (size_t)(end - at));
}

static void put_lines(const char *at, const char *end, found *f,
                      clconv_text *out)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        put_line(at, next, f, out);
        at = next;
    }
}

/* NULL: none. */
static const char *fault_of(const found *f)
{
    return !f->version  ? "is no PTX"
           : !f->target ? "has no line \".target sm_90\" or \"sm_90a\""
           : !f->mark   ? "lacks the lines marked " CLCONV_PTX_MARK
                        : NULL;
}

clconv_status clconv_ptx_retarget(const char *ptx, size_t length, char **out)
{
    const char *terminator = memchr(ptx, '\0', length);
    found f = {0};
    clconv_text lines = CLCONV_TEXT_EMPTY;
    put_lines(ptx, terminator ? terminator : ptx + length, &f, &lines);
    const char *fault = fault_of(&f);
    if (fault) {
        clconv_text_free(&lines);
        return clconv_fail(CLCONV_BUILD_FAILED,
                           "what the compiler made for sm_90 %s", fault);
    }
    char *text = clconv_text_take(&lines);
    if (!text)
        return clconv_fail(CLCONV_OUT_OF_MEMORY,
                           "no memory for a program for sm_90a");
    *out = text;
    return CLCONV_OK;
}
