/*
 * All numbers little-endian:
 *
 *      0  "clconvPB"
 *      8  u64 format
 *     16  u64 bytes of key, u64 bytes of data
 *     32  u64[2] hash of key
 *     48  u64[2] hash of data
 *     64  key (no terminator), data
 *
 * The lengths must add up to the file's, so that every flipped or missing
 * byte is found before anything is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program_file.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

enum {
    AT_FORMAT = 8,
    AT_KEY_SIZE = 16,
    AT_SIZE = 24,
    AT_KEY_HASH = 32,
    AT_HASH = 48,
    HEADER = 64
};

static const unsigned char magic[8] = {'c', 'l', 'c', 'o', 'n', 'v', 'P', 'B'};

unsigned char *clconv_program_file_pack(const clconv_program_file *p,
                                        size_t *total)
{
    const size_t limit = CLCONV_PROGRAM_FILE_MAX;
    if (p->size > limit - HEADER || p->key_size > limit - HEADER - p->size)
        return NULL;
    unsigned char *file = calloc(1, HEADER + p->key_size + p->size);
    if (!file)
        return NULL;
    memcpy(file, magic, sizeof magic);
    clconv_bytes_put_u64(file + AT_FORMAT, CLCONV_PROGRAM_FILE_FORMAT);
    clconv_bytes_put_u64(file + AT_KEY_SIZE, p->key_size);
    clconv_bytes_put_u64(file + AT_SIZE, p->size);
    clconv_bytes_put_hash(file + AT_KEY_HASH, p->key, p->key_size);
    clconv_bytes_put_hash(file + AT_HASH, p->data, p->size);
    memcpy(file + HEADER, p->key, p->key_size);
    if (p->size > 0)
        memcpy(file + HEADER + p->key_size, p->data, p->size);
    *total = HEADER + p->key_size + p->size;
    return file;
}

const char *clconv_program_file_parse(const unsigned char *file, size_t total,
                                      clconv_program_file *out)
{
    if (total < HEADER || memcmp(file, magic, sizeof magic) != 0)
        return "it is not an entry";
    if (clconv_bytes_get_u64(file + AT_FORMAT) != CLCONV_PROGRAM_FILE_FORMAT)
        return "it has another format";
    uint64_t rest = total - HEADER;
    uint64_t key_size = clconv_bytes_get_u64(file + AT_KEY_SIZE);
    if (key_size > rest ||
        clconv_bytes_get_u64(file + AT_SIZE) != rest - key_size)
        return "its length is wrong";
    clconv_program_file p = {
        .key = (const char *)file + HEADER,
        .key_size = (size_t)key_size,
        .data = file + HEADER + key_size,
        .size = (size_t)(rest - key_size),
    };
    if (!clconv_bytes_same_hash(file + AT_KEY_HASH, p.key, p.key_size) ||
        !clconv_bytes_same_hash(file + AT_HASH, p.data, p.size))
        return "its checksum is wrong";
    if (memchr(p.key, '\0', p.key_size))
        return "its key is no text";
    *out = p;
    return NULL;
}
