/*
 * All numbers little-endian:
 *
 *      0  "clconvBU"
 *      8  u64 format, u64 parts, u64 bytes of all parts
 *     32  u64[2] hash of these bytes
 *     48  the parts, each
 *              0  u64 kind, u64 bytes of data
 *             16  u64[2] hash of the data
 *             32  data
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bundle_format.h"

#include <string.h>

#include "bytes.h"

enum { FORMAT = 1 };

enum { AT_FORMAT = 8, AT_PARTS = 16, AT_SIZE = 24, AT_HASH = 32, HEADER = 48 };
enum { PART_AT_SIZE = 8, PART_AT_HASH = 16, PART_HEADER = 32 };

static const unsigned char magic[8] = {'c', 'l', 'c', 'o', 'n', 'v', 'B', 'U'};

/* ---- Writing ----------------------------------------------------------- */

static void append_bytes(clconv_text *t, const void *data, size_t size)
{
    clconv_text_append(t, data, size);
}

void clconv_bundle_begin(clconv_text *t)
{
    const unsigned char header[HEADER] = {0};
    append_bytes(t, header, sizeof header);
}

void clconv_bundle_append(clconv_text *t, const clconv_part *part)
{
    unsigned char header[PART_HEADER];
    clconv_bytes_put_u64(header, (uint64_t)part->kind);
    clconv_bytes_put_u64(header + PART_AT_SIZE, part->size);
    clconv_bytes_put_hash(header + PART_AT_HASH, part->data, part->size);
    append_bytes(t, header, sizeof header);
    append_bytes(t, part->data, part->size);
}

void clconv_bundle_end(clconv_text *t, size_t parts)
{
    if (t->failed)
        return;
    unsigned char *file = (unsigned char *)t->data;
    size_t size = t->length - HEADER;
    memcpy(file, magic, sizeof magic);
    clconv_bytes_put_u64(file + AT_FORMAT, FORMAT);
    clconv_bytes_put_u64(file + AT_PARTS, parts);
    clconv_bytes_put_u64(file + AT_SIZE, size);
    clconv_bytes_put_hash(file + AT_HASH, file + HEADER, size);
}

/* ---- Reading ----------------------------------------------------------- */

/* The length of the part, header and all; 0: it does not fit or is damaged. */
static size_t check_part(const unsigned char *at, size_t rest)
{
    if (rest < PART_HEADER)
        return 0;
    uint64_t kind = clconv_bytes_get_u64(at);
    uint64_t size = clconv_bytes_get_u64(at + PART_AT_SIZE);
    if (kind != CLCONV_PART_RECORD && kind != CLCONV_PART_PROGRAM)
        return 0;
    if (size > rest - PART_HEADER ||
        !clconv_bytes_same_hash(at + PART_AT_HASH, at + PART_HEADER,
                                (size_t)size))
        return 0;
    return PART_HEADER + (size_t)size;
}

static bool check_parts(const unsigned char *at, size_t rest, uint64_t parts)
{
    for (; rest > 0 && parts > 0; --parts) {
        size_t length = check_part(at, rest);
        if (length == 0)
            return false;
        at += length;
        rest -= length;
    }
    return rest == 0 && parts == 0;
}

const char *clconv_bundle_open(const unsigned char *file, size_t size,
                               clconv_bundle_reader *out)
{
    if (size < HEADER || memcmp(file, magic, sizeof magic) != 0)
        return "it is no bundle";
    if (clconv_bytes_get_u64(file + AT_FORMAT) != FORMAT)
        return "it is a bundle of another version's format";
    size_t rest = size - HEADER;
    if (clconv_bytes_get_u64(file + AT_SIZE) != rest)
        return "its length is wrong: it is cut off, or something follows";
    if (!clconv_bytes_same_hash(file + AT_HASH, file + HEADER, rest))
        return "its checksum is wrong";
    if (!check_parts(file + HEADER, rest, clconv_bytes_get_u64(file + AT_PARTS)))
        return "one of its parts is damaged";
    *out = (clconv_bundle_reader){file + HEADER, file + size};
    return NULL;
}

bool clconv_bundle_next(clconv_bundle_reader *r, clconv_part *out)
{
    if (r->at == r->end)
        return false;
    out->kind = (clconv_part_kind)clconv_bytes_get_u64(r->at);
    out->data = r->at + PART_HEADER;
    out->size = (size_t)clconv_bytes_get_u64(r->at + PART_AT_SIZE);
    r->at += PART_HEADER + out->size;
    return true;
}
