/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bytes.h"

#include <string.h>

#include "hash.h"

void clconv_bytes_put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < CLCONV_BYTES_U64; ++i)
        at[i] = (unsigned char)(value >> (8 * i));
}

uint64_t clconv_bytes_get_u64(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < CLCONV_BYTES_U64; ++i)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void clconv_bytes_put_hash(unsigned char *at, const void *data, size_t size)
{
    clconv_hash hash = clconv_hash_bytes(data, size);
    clconv_bytes_put_u64(at, hash.low);
    clconv_bytes_put_u64(at + CLCONV_BYTES_U64, hash.high);
}

bool clconv_bytes_same_hash(const unsigned char *at, const void *data,
                            size_t size)
{
    unsigned char hash[CLCONV_BYTES_HASH];
    clconv_bytes_put_hash(hash, data, size);
    return memcmp(at, hash, sizeof hash) == 0;
}
