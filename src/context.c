/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "cl_query.h"
#include "objects.h"
#include "os.h"
#include "store.h"

/* Every versioned struct begins with its size. */
clconv_status clconv_struct_read(const char *name, const char *init,
                                 const void *in, void *out, size_t size)
{
    size_t given;
    memcpy(&given, in, sizeof given);
    if (given < sizeof given || given > size)
        return clconv_fail(CLCONV_INVALID_ARGUMENT,
                           "%s.struct_size is %zu; it must be in [%zu, %zu]: "
                           "call %s() first",
                           name, given, sizeof given, size, init);
    memcpy(out, in, given);
    return CLCONV_OK;
}

void clconv_context_options_init(clconv_context_options *options)
{
    if (options)
        *options = (clconv_context_options){.struct_size = sizeof *options};
}

static clconv_status read_options(const clconv_context_options *options,
                                  clconv_context_options *out)
{
    clconv_context_options_init(out);
    if (!options)
        return CLCONV_OK;
    return clconv_struct_read("options", "clconv_context_options_init", options,
                              out, sizeof *out);
}

/* ---- Parts of a context ------------------------------------------------ */

static clconv_status emulate(const char *name, clconv_device *device)
{
    if (!name)
        return CLCONV_OK;
    clconv_unit_id unit = clconv_unit_find(name);
    if (unit < CLCONV_UNITS) {
        device->unit = unit;
        device->unit_emulated = unit != CLCONV_UNIT_NONE;
        return CLCONV_OK;
    }
    clconv_text names = CLCONV_TEXT_EMPTY;
    for (int i = 0; i < CLCONV_UNITS; ++i)
        clconv_text_printf(&names, "%s%s", i ? ", " : "",
                           clconv_unit_name((clconv_unit_id)i));
    clconv_fail(CLCONV_INVALID_ARGUMENT,
                "options.emulate_unit is \"%s\"; it must be one of: %s", name,
                names.data ? names.data : "");
    clconv_text_free(&names);
    return CLCONV_INVALID_ARGUMENT;
}

static void free_context(clconv_context *c)
{
    clconv_cache_free(c->cache);
    free(c);
}

static clconv_status fill(clconv_context *c,
                          const clconv_context_options *options)
{
    clconv_status status =
        clconv_query_device(c->cl_ctx, c->cl_device, &c->device);
    if (status == CLCONV_OK)
        status = emulate(options->emulate_unit, &c->device);
    if (status != CLCONV_OK)
        return status;
    char *dir = clconv_store_find_dir(options->cache_dir, &c->log);
    status = clconv_cache_new(c->cl_ctx, c->cl_device, dir,
                              options->cache_policy, &c->log, &c->cache);
    free(dir);
    return status;
}

static clconv_status check_policy(clconv_cache_policy policy)
{
    if (policy == CLCONV_CACHE_CHEAP || policy == CLCONV_CACHE_ALL)
        return CLCONV_OK;
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "options.cache_policy is %d; it must be a "
                       "clconv_cache_policy",
                       (int)policy);
}

/* ---- The object -------------------------------------------------------- */

clconv_status clconv_context_create(cl_context cl_ctx, cl_device_id device,
                                    const clconv_context_options *options,
                                    clconv_context **out)
{
    if (!out)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "out is NULL");
    clconv_context_options o;
    clconv_status status = read_options(options, &o);
    if (status == CLCONV_OK)
        status = check_policy(o.cache_policy);
    if (status != CLCONV_OK)
        return status;
    clconv_context *c = calloc(1, sizeof *c);
    if (!c)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a context");
    atomic_init(&c->references, 1);
    c->process = clconv_os_process();
    c->log = (clconv_log){o.log, o.log_user};
    c->cl_ctx = cl_ctx;
    c->cl_device = device;
    status = fill(c, &o);
    if (status != CLCONV_OK) {
        free_context(c);
        return status;
    }
    *out = c;
    return CLCONV_OK;
}

void clconv_context_retain(clconv_context *context)
{
    if (context)
        atomic_fetch_add(&context->references, 1);
}

void clconv_context_release(clconv_context *context)
{
    if (!context || atomic_fetch_sub(&context->references, 1) != 1)
        return;
    /* A forked child must not touch OpenCL: leave it to the process's end. */
    if (context->process == clconv_os_process())
        free_context(context);
}

clconv_status clconv_context_check(const clconv_context *context)
{
    long here = clconv_os_process();
    if (context->process == here)
        return CLCONV_OK;
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "context was made in process %ld, this is %ld: OpenCL "
                       "does not survive a fork, make a new cl_context and "
                       "context here",
                       context->process, here);
}
