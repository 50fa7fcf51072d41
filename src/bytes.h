/*
 * Numbers and hashes in files: little-endian, whatever the machine is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BYTES_H
#define CLCONV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLCONV_BYTES_U64 8
#define CLCONV_BYTES_HASH 16

void clconv_bytes_put_u64(unsigned char *at, uint64_t value);
uint64_t clconv_bytes_get_u64(const unsigned char *at);

/* The hash of size bytes of data, in CLCONV_BYTES_HASH bytes at. */
void clconv_bytes_put_hash(unsigned char *at, const void *data, size_t size);
bool clconv_bytes_same_hash(const unsigned char *at, const void *data,
                            size_t size);

#endif
