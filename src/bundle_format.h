/*
 * The bytes of a bundle: parts, each a tuned record or a compiled program.
 * Pure: no file is touched here.
 *
 *     clconv_text t = CLCONV_TEXT_EMPTY;
 *     clconv_bundle_begin(&t);
 *     clconv_bundle_append(&t, &part);
 *     clconv_bundle_end(&t, 1);
 *
 *     const char *fault = clconv_bundle_open(bytes, size, &reader);
 *     while (!fault && clconv_bundle_next(&reader, &part))
 *         ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BUNDLE_FORMAT_H
#define CLCONV_BUNDLE_FORMAT_H

#include "program_file.h"
#include "text.h"

typedef enum clconv_part_kind {
    CLCONV_PART_RECORD = 1, /* a line of record.h, sealed */
    CLCONV_PART_PROGRAM = 2 /* the bytes of program_file.h */
} clconv_part_kind;

typedef struct clconv_part {
    clconv_part_kind kind;
    const void *data; /* borrowed */
    size_t size;
} clconv_part;

/* A failure sticks to the text, as text.h has it. */
void clconv_bundle_begin(clconv_text *t);
void clconv_bundle_append(clconv_text *t, const clconv_part *part);
void clconv_bundle_end(clconv_text *t, size_t parts);

typedef struct clconv_bundle_reader {
    const unsigned char *at, *end;
} clconv_bundle_reader;

/* NULL if these bytes are a whole bundle, all of whose parts are as they were
 * written; else what is wrong with them. */
const char *clconv_bundle_open(const unsigned char *file, size_t size,
                               clconv_bundle_reader *out);

/* The next part, in the order of writing; false: no more. */
bool clconv_bundle_next(clconv_bundle_reader *r, clconv_part *out);

#endif
