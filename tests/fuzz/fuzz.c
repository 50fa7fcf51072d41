/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fuzz_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s is false\n", file, line, condition);
    abort();
}

unsigned char *fuzz_copy(const void *data, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    FUZZ_CHECK(copy);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *fuzz_text(const void *data, size_t size)
{
    char *text = calloc(1, size + 1);
    FUZZ_CHECK(text);
    if (size > 0)
        memcpy(text, data, size);
    return text;
}

bool fuzz_seed_text(const char *const *texts, size_t count, int index,
                    unsigned char **data, size_t *size)
{
    if ((size_t)index >= count)
        return false;
    *size = strlen(texts[index]);
    *data = fuzz_copy(texts[index], *size);
    return true;
}
