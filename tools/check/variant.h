/*
 * Unusual ways to call the library that leave results exact: the integers
 * judgement picks one for each check, so that a file of cases goes through
 * all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_VARIANT_H
#define CLCONV_CHECK_VARIANT_H

#include <stddef.h>

#include "clconv/clconv.h"
#include "run.h"

typedef struct variant {
    const char *name;
    unsigned fp16; /* mask of VARIANT_X and the like: these are fp16 */
    float beta_w, beta_b, beta_x;
    size_t alignment; /* 0: the default */
    size_t offset;
    unsigned unplanned; /* mask of clconv_op: the plan cannot do these */
    unsigned unwanted;  /* the call does not ask for these */
    int extra_images;   /* in the description, beyond the call's */
    int dy_log2, dx_log2;
    bool out_of_order;
} variant;

enum {
    VARIANT_X = 1,
    VARIANT_W = 2,
    VARIANT_DY = 4,
    VARIANT_DW = 8,
    VARIANT_DB = 16,
    VARIANT_DX = 32
};

size_t variant_count(void);
const variant *variant_get(size_t index); /* index < variant_count() */

/* The setup changed as the variant says. */
run_setup variant_apply(const variant *v, const run_setup *plain);

#endif
