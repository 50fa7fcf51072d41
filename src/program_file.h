/*
 * The bytes of a file that holds one compiled program under its key. Pure: no
 * file is touched here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PROGRAM_FILE_H
#define CLCONV_PROGRAM_FILE_H

#include <stddef.h>

/* No program is as large; a larger file is not ours. */
#define CLCONV_PROGRAM_FILE_MAX ((size_t)1 << 30)

/* Of directories that hold such files; another format is another number. */
#define CLCONV_PROGRAM_FILE_FORMAT 1

/* Borrowed. */
typedef struct clconv_program_file {
    const char *key; /* text without a terminator */
    size_t key_size;
    const unsigned char *data; /* the binary */
    size_t size;               /* 0: a mark, see store.h */
} clconv_program_file;

/* Yours to free(); NULL: no memory, or larger than the limit. */
unsigned char *clconv_program_file_pack(const clconv_program_file *p,
                                        size_t *total);

/* NULL if these bytes are a whole file: *out then points into them. Else what
 * is wrong with them, and *out stays. */
const char *clconv_program_file_parse(const unsigned char *file, size_t total,
                                      clconv_program_file *out);

#endif
