/*
 * Programs by their source: from memory, else from disk, else compiled. One
 * cache a context; safe for threads, and for processes that share the
 * directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_CACHE_H
#define CLCONV_CL_CACHE_H

#include "log.h"
#include "status.h"

typedef struct clconv_cache clconv_cache;

typedef enum clconv_origin {
    CLCONV_ORIGIN_MEMORY, /* this context had it already */
    CLCONV_ORIGIN_DISK,
    CLCONV_ORIGIN_BUILT,
    CLCONV_ORIGINS
} clconv_origin;

typedef struct clconv_cache_options {
    const char *dir; /* NULL: memory only */
    clconv_cache_policy policy;
    bool offline; /* compile nothing: a program is there or it is not */
} clconv_cache_options;

/* Retains context and device, copies the log. */
clconv_status clconv_cache_new(cl_context context, cl_device_id device,
                               const clconv_cache_options *options,
                               const clconv_log *log, clconv_cache **out);
void clconv_cache_free(clconv_cache *c); /* NULL: no-op */

/* What a program is made from, and what it is for, in messages. */
typedef struct clconv_source {
    const char *kernel;  /* its name */
    const char *problem; /* as a string */
    const char *text;    /* OpenCL C */
} clconv_source;

/*
 * The program of that source, built; *out is yours to release. BUILD_FAILED as
 * from clconv_build_source(), and where it would have to be built offline.
 */
clconv_status clconv_cache_program(clconv_cache *c, const clconv_source *source,
                                   clconv_origin *origin, cl_program *out);

/*
 * Call this when a launched program is about to be idle: stores its binary
 * where that had to wait for a launch, and again where it has grown. Where a
 * binary is costly and the policy is thrifty, the first process leaves a mark
 * only, and a later one that builds the same source stores the binary.
 */
void clconv_cache_refresh(clconv_cache *c, cl_program program);

/* Is there a directory, and may we use it? */
bool clconv_cache_is_on_disk(const clconv_cache *c);

/* How many programs were compiled from source so far. */
int clconv_cache_builds(clconv_cache *c);

/* How the key of every program of this device begins, with this driver and
 * library. Yours to free(); NULL: no memory. */
char *clconv_cache_prefix(cl_device_id device);

const char *clconv_origin_name(clconv_origin origin);

#endif
