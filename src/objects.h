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
#include "tunedb.h"

/* Constant after creation but for references; cache and records lock
 * themselves. */
struct clconv_context {
    atomic_long references;
    long process; /* that made it: OpenCL does not survive a fork */
    clconv_log log;
    clconv_device device;
    cl_context cl_ctx; /* both retained by the cache */
    cl_device_id cl_device;
    bool offline; /* nothing is compiled from source */
    clconv_cache *cache;
    clconv_tunedb *tunedb; /* the tuned records */
};

typedef struct clconv_built {
    clconv_origin origin;
    double milliseconds; /* that it took to get the program */
} clconv_built;

/* Constant after creation but for references; the launch locks itself. */
struct clconv_plan {
    atomic_long references;
    clconv_context *context;
    clconv_device device; /* the context's, perhaps without matrix units */
    clconv_steps steps;
    clconv_match match; /* that steps come from; its record NULL: none */
    clconv_launch *launch;
    clconv_built built[CLCONV_MAX_STEPS];
};

/* INVALID_ARGUMENT in a process that was forked from the one that made it. */
clconv_status clconv_context_check(const clconv_context *context);

/* A context of the same device that keeps what it compiles to itself and says
 * nothing: no directory, no log. */
clconv_status clconv_context_new_scratch(const clconv_context *like,
                                         clconv_context **out);

/* "programs: 2 from disk, 0 built from source": where the plan's come from. */
void clconv_plan_describe_programs(const clconv_plan *plan, clconv_text *out);

/*
 * Copies a caller's struct over out, which holds the defaults: an older,
 * smaller one leaves the rest alone. name is for the message: "args" and its
 * initialiser, "clconv_backward_args_init".
 */
clconv_status clconv_struct_read(const char *name, const char *init,
                                 const void *in, void *out, size_t size);

#endif
