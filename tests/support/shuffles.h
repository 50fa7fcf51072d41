/*
 * OpenCL C with the halves of vectors spelled element by element:
 *
 *     float8 eight = v.lo + v.hi;     becomes  (float8)(v.s0 + v.s8, ...)
 *     (float16)(a.even, b.even)       becomes  (float16)(a.s0, a.s2, ...)
 *
 * In oclgrind 21.10 with --uninitialized, element 11 of a vector counts as
 * never written once such a half has gone through a shuffle of the compiler's
 * (src/plugins/Uninitialized.cpp takes that number for the mark of a value
 * that is undefined), and the joining of two vectors of 8 can end it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_SHUFFLES_H
#define CLCONV_TESTS_SHUFFLES_H

/* A new text, the caller's to free(); NULL if there is no memory. */
char *shuffles_spell(const char *source);

#endif
