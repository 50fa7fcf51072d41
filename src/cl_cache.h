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
    CLCONV_ORIGIN_BUILT
} clconv_origin;

/* Retains context and device, copies the log. dir NULL: memory only; policy
 * says which programs are written there. */
clconv_status clconv_cache_new(cl_context context, cl_device_id device,
                               const char *dir, clconv_cache_policy policy,
                               const clconv_log *log, clconv_cache **out);
void clconv_cache_free(clconv_cache *c); /* NULL: no-op */

/*
 * The program of that source, built; *out is yours to release. name is the
 * kernel's, for messages. BUILD_FAILED as from clconv_build_source().
 */
clconv_status clconv_cache_program(clconv_cache *c, const char *name,
                                   const char *source, clconv_origin *origin,
                                   cl_program *out);

/*
 * Call this when a launched program is about to be idle: stores its binary
 * where that had to wait for a launch, and again where it has grown.
 */
void clconv_cache_refresh(clconv_cache *c, cl_program program);

/* How many programs were compiled from source so far. */
int clconv_cache_builds(clconv_cache *c);

const char *clconv_origin_name(clconv_origin origin);

#endif
