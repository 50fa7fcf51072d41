/*
 * A small program run once, by one work-group, to see what a device does with
 * it.
 *
 *     clconv_trial_arg args[] = {{in, sizeof in, false},
 *                                {&number, sizeof number, true},
 *                                {out, sizeof out, false}};
 *     status = clconv_trial_run(&place, "name", source, 128, args, 3);
 *     ... out is what the program made of it ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_TRIAL_H
#define CLCONV_CL_TRIAL_H

#include "cl_cache.h"

typedef struct clconv_trial_place {
    cl_context context;
    cl_device_id device;
    clconv_cache *cache;
} clconv_trial_place;

typedef struct clconv_trial_arg {
    void *data;
    size_t size;
    bool by_value; /* else in a buffer */
} clconv_trial_arg;

#define CLCONV_TRIAL_MOST_ARGS 8

/* The program comes from the cache: later processes compile nothing. Its entry
 * has the program's name, and a work-group of items; the last argument, in a
 * buffer, comes back. */
clconv_status clconv_trial_run(const clconv_trial_place *place, const char *name,
                               const char *source, size_t items,
                               const clconv_trial_arg *args, int count);

#endif
