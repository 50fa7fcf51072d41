/*
 * What the public handles point to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_OBJECTS_H
#define CLCONV_OBJECTS_H

#include <stdatomic.h>

#include "cl_launch.h"
#include "log.h"

/* Constant after creation but for references; the cache locks itself. */
struct clconv_context {
    atomic_long references;
    long process; /* that made it: OpenCL does not survive a fork */
    clconv_log log;
    clconv_device device;
    cl_context cl_ctx; /* both retained by the cache */
    cl_device_id cl_device;
    clconv_cache *cache;
};

typedef struct clconv_built {
    clconv_origin origin;
    double milliseconds; /* that it took to get the program */
} clconv_built;

/* Constant after creation but for references; the launch locks itself. */
struct clconv_plan {
    atomic_long references;
    clconv_context *context;
    clconv_device device; /* the context's, perhaps without its matrix unit */
    clconv_steps steps;
    clconv_launch *launch;
    clconv_built built[CLCONV_MAX_STEPS];
};

/* INVALID_ARGUMENT in a process that was forked from the one that made it. */
clconv_status clconv_context_check(const clconv_context *context);

/*
 * Copies a caller's struct over out, which holds the defaults: an older,
 * smaller one leaves the rest alone. name is for the message: "args" and its
 * initialiser, "clconv_backward_args_init".
 */
clconv_status clconv_struct_read(const char *name, const char *init,
                                 const void *in, void *out, size_t size);

#endif
