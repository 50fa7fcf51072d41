/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "seal.h"

#include <string.h>

#include "hash.h"

/* " check=" and 16 digits, the upper half of the hash. */
#define CHECK " check="
enum { CHECK_DIGITS = 16, CHECK_LENGTH = sizeof CHECK - 1 + CHECK_DIGITS };

static void hash_line(const char *line, size_t length, char out[CLCONV_HASH_HEX])
{
    clconv_hash_hex(clconv_hash_bytes(line, length), out);
}

void clconv_seal_put(clconv_text *line, size_t start)
{
    if (line->failed)
        return;
    char hash[CLCONV_HASH_HEX];
    hash_line(line->data + start, line->length - start, hash);
    clconv_text_printf(line, CHECK "%.*s", CHECK_DIGITS, hash);
}

clconv_seal clconv_seal_take(const char *line, size_t *length)
{
    size_t before = *length < CHECK_LENGTH ? 0 : *length - CHECK_LENGTH;
    if (before == 0 || memcmp(line + before, CHECK, sizeof CHECK - 1) != 0)
        return CLCONV_SEAL_MISSING;
    char hash[CLCONV_HASH_HEX];
    hash_line(line, before, hash);
    if (memcmp(line + *length - CHECK_DIGITS, hash, CHECK_DIGITS) != 0)
        return CLCONV_SEAL_WRONG;
    *length = before;
    return CLCONV_SEAL_RIGHT;
}
