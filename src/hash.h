/*
 * A 128-bit hash that names cache files and finds damage in them. It is not
 * cryptographic: whoever may write the cache directory is trusted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_HASH_H
#define CLCONV_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct clconv_hash {
    uint64_t low, high;
} clconv_hash;

#define CLCONV_HASH_HEX 33 /* digits and terminator */

clconv_hash clconv_hash_bytes(const void *data, size_t size);

/* 32 lower-case digits, the high half first. */
void clconv_hash_hex(clconv_hash hash, char out[CLCONV_HASH_HEX]);

#endif
