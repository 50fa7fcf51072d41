/*
 * Files of compiled programs. A checksum stops nearly every mutation at the
 * door, so each input is tried a second time with its checksums put right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "fuzz.h"
#include "program_file.h"

bool fuzz_seed(int index, unsigned char **data, size_t *size)
{
    static const clconv_program_file files[] = {
        {"device: any\nsource:\n", 20, (const unsigned char *)"\1\2\0\3", 4},
        {"a mark", 6, NULL, 0},
        {"", 0, (const unsigned char *)"no key", 6},
    };
    if ((size_t)index >= sizeof files / sizeof *files)
        return false;
    *data = clconv_program_file_pack(&files[index], size);
    FUZZ_CHECK(*data);
    return true;
}

static void check(const unsigned char *file, size_t size)
{
    clconv_program_file p;
    if (clconv_program_file_parse(file, size, &p))
        return;
    size_t total;
    unsigned char *again = clconv_program_file_pack(&p, &total);
    FUZZ_CHECK(again);
    FUZZ_CHECK(total == size && memcmp(again, file, size) == 0);
    free(again);
}

/* As program_file.c lays them out. */
enum { KEY_SIZE = 16, KEY_HASH = 32, HASH = 48, HEADER = 64 };

static void put_right(unsigned char *file, size_t size)
{
    if (size < HEADER)
        return;
    uint64_t rest = size - HEADER;
    uint64_t key = clconv_bytes_get_u64(file + KEY_SIZE);
    if (key > rest)
        return;
    clconv_bytes_put_hash(file + KEY_HASH, file + HEADER, (size_t)key);
    clconv_bytes_put_hash(file + HASH, file + HEADER + key,
                          (size_t)(rest - key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *file = fuzz_copy(data, size);
    check(file, size);
    put_right(file, size);
    check(file, size);
    free(file);
    return 0;
}
