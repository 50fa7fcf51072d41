/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "hash.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

clconv_hash clconv_hash_bytes(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);
    return (clconv_hash){hash.low64, hash.high64};
}

void clconv_hash_hex(clconv_hash hash, char out[CLCONV_HASH_HEX])
{
    snprintf(out, CLCONV_HASH_HEX, "%016" PRIx64 "%016" PRIx64, hash.high,
             hash.low);
}
