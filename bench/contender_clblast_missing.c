/*
 * The rows of CLBlast where this program is built without it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "contender.h"

static const char *version(void)
{
    return NULL;
}

static contender_status open_state(const contender_setup *setup, void **out,
                                   char why[256])
{
    (void)setup;
    (void)out;
    snprintf(why, 256, "%s", CLCONV_BENCH_NO_CLBLAST);
    return CONTENDER_UNSUPPORTED;
}

extern const contender contender_clblast, contender_clblast16;

const contender contender_clblast = {
    .name = "clblast",
    .summary = "not built",
    .missing = CLCONV_BENCH_NO_CLBLAST,
    .version = version,
    .open = open_state,
};

const contender contender_clblast16 = {
    .name = "clblast16",
    .summary = "not built",
    .missing = CLCONV_BENCH_NO_CLBLAST,
    .version = version,
    .open = open_state,
};
