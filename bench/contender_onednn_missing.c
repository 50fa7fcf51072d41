/*
 * The rows of oneDNN where this program is built without it.
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
    snprintf(why, 256, "%s", CLCONV_BENCH_NO_ONEDNN);
    return CONTENDER_UNSUPPORTED;
}

extern const contender contender_onednn, contender_onednn_bf16;

const contender contender_onednn = {
    .name = "onednn",
    .summary = "not built",
    .missing = CLCONV_BENCH_NO_ONEDNN,
    .version = version,
    .open = open_state,
};

const contender contender_onednn_bf16 = {
    .name = "onednn-bf16",
    .summary = "not built",
    .missing = CLCONV_BENCH_NO_ONEDNN,
    .version = version,
    .open = open_state,
};
