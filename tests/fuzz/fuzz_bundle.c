/*
 * Bundles. A checksum stops nearly every mutation at the door, so each input
 * is tried a second time with its checksums put right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "bundle_format.h"
#include "bytes.h"
#include "fuzz.h"

bool fuzz_seed(int index, unsigned char **data, size_t *size)
{
    static const clconv_part parts[] = {
        {CLCONV_PART_RECORD, "problem=n1c1h1w1k1r1s1 ops=dw", 29},
        {CLCONV_PART_PROGRAM, "clconvPB", 8},
        {CLCONV_PART_RECORD, "", 0},
    };
    size_t count = (size_t)index;
    if (count > sizeof parts / sizeof *parts)
        return false;
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_bundle_begin(&t);
    for (size_t i = 0; i < count; ++i)
        clconv_bundle_append(&t, &parts[i]);
    clconv_bundle_end(&t, count);
    FUZZ_CHECK(!t.failed);
    *size = t.length;
    *data = (unsigned char *)clconv_text_take(&t);
    return true;
}

/* A bundle of the same parts is the same bundle. */
static void check(const unsigned char *file, size_t size)
{
    clconv_bundle_reader reader;
    if (clconv_bundle_open(file, size, &reader))
        return;
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_part part;
    size_t count = 0;
    clconv_bundle_begin(&t);
    for (; clconv_bundle_next(&reader, &part); ++count)
        clconv_bundle_append(&t, &part);
    clconv_bundle_end(&t, count);
    FUZZ_CHECK(!t.failed);
    FUZZ_CHECK(t.length == size && memcmp(t.data, file, size) == 0);
    clconv_text_free(&t);
}

/* As bundle_format.c lays them out. */
enum {
    HASH = 32,
    HEADER = 48,
    PART_SIZE = 8,
    PART_HASH = 16,
    PART_HEADER = 32
};

static void put_right(unsigned char *file, size_t size)
{
    if (size < HEADER)
        return;
    for (size_t at = HEADER; size - at >= PART_HEADER;) {
        unsigned char *part = file + at;
        uint64_t length = clconv_bytes_get_u64(part + PART_SIZE);
        if (length > size - at - PART_HEADER)
            break;
        clconv_bytes_put_hash(part + PART_HASH, part + PART_HEADER,
                              (size_t)length);
        at += PART_HEADER + (size_t)length;
    }
    clconv_bytes_put_hash(file + HASH, file + HEADER, size - HEADER);
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
