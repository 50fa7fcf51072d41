/*
 * A fuzz target: one function that takes any bytes, and good inputs to start
 * from. libFuzzer drives it, or fuzz_main.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_FUZZ_H
#define CLCONV_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns 0; ends the process if something is not as it must be. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A good input, yours to free(); index from 0; false: no more. */
bool fuzz_seed(int index, unsigned char **data, size_t *size);

#define FUZZ_CHECK(condition)                                                  \
    ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))

_Noreturn void fuzz_failed(const char *file, int line, const char *condition);

/* A copy in memory of exactly that size, so that a sanitizer sees a step past
 * its end; yours to free(). */
unsigned char *fuzz_copy(const void *data, size_t size);

/* The same as a string, terminated; it may have a 0 within. */
char *fuzz_text(const void *data, size_t size);

/* A row of texts as seeds. */
bool fuzz_seed_text(const char *const *texts, size_t count, int index,
                    unsigned char **data, size_t *size);

#endif
