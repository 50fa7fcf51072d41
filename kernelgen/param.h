/*
 * The tunables of a kernel as one data table: it prints, parses, enumerates
 * and fills the emitter's holes. A value is an int; one with names prints as
 * its name.
 *
 *     static const clconv_param params[] = {
 *         [TILE_K] = {"tile_k", CLCONV_VALUES(4, 8, 2, 1), "channels a ..."},
 *         [CAST] = {"cast", CLCONV_NAMES("fused", "separate"), "where ..."},
 *     };
 *
 * A named value i stands for names[i].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PARAM_H
#define CLCONV_PARAM_H

#include <stdbool.h>

#include "emit.h"
#include "text.h"

#define CLCONV_MAX_PARAMS 12
#define CLCONV_MAX_VALUES 8

typedef struct clconv_param {
    const char *name; /* also the hole: $tile_k */
    int count;
    int values[CLCONV_MAX_VALUES];        /* distinct, legal in principle */
    const char *names[CLCONV_MAX_VALUES]; /* or all NULL */
    const char *help;
} clconv_param;

/* The arguments give count, values and names, in the order of the struct. */
#define CLCONV_COUNT(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define CLCONV_VALUES(...)                                                     \
    CLCONV_COUNT(__VA_ARGS__), {__VA_ARGS__},                                  \
    {                                                                          \
        0                                                                      \
    }
#define CLCONV_NAMES(...)                                                      \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),             \
        {0, 1, 2, 3, 4, 5, 6, 7},                                              \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* The first value of each: where a kernel's defaults start from. */
void clconv_param_first(const clconv_param *params, int count, int *values);

/* "tile_k=4,cast=fused", in the order of the table. */
void clconv_param_format(const clconv_param *params, int count,
                         const int *values, clconv_text *out);

/*
 * Sets one value from "name=value". False if there is no such parameter or
 * value; *why then gets a sentence that lists what there is.
 */
bool clconv_param_parse(const clconv_param *params, int count,
                        const char *assignment, size_t length, int *values,
                        clconv_text *why);

/* The next combination in odometer order; false after the last one. */
bool clconv_param_next(const clconv_param *params, int count, int *values);

/* Holes $name for all: the number, or the name of a named value. */
void clconv_param_emit(const clconv_param *params, int count, const int *values,
                       clconv_emit *e);

#endif
