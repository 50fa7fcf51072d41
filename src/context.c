/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "cl_query.h"
#include "cl_selftest.h"
#include "cuda_maps.h"
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
        clconv_device_emulate(device, unit);
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
    clconv_tunedb_free(c->tunedb);
    clconv_cache_free(c->cache);
    free(c);
}

/* What is kept between processes: programs and tuned records. */
static clconv_status open_caches(clconv_context *c,
                                 const clconv_cache_options *options)
{
    clconv_status status =
        clconv_cache_new(c->cl_ctx, c->cl_device, options, &c->log, &c->cache);
    if (status != CLCONV_OK)
        return status;
    /* Of a directory that cannot be used the cache has warned already. */
    bool usable = clconv_cache_is_on_disk(c->cache);
    c->tunedb = clconv_tunedb_new(usable ? options->dir : NULL, &c->log);
    if (!c->tunedb)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a context");
    return CLCONV_OK;
}

/* Units that only their use shows. An emulated one is the only one. */
static void test_units(clconv_context *c, const char *emulated)
{
    const clconv_trial_place place = {c->cl_ctx, c->cl_device, c->cache};
    clconv_map_template maps[CLCONV_CUDA_SAMPLES];
    if (emulated || c->device.nv_sm != 90)
        return;
    c->device.wgmma_memory = clconv_selftest_wgmma(&place, &c->log);
    if (c->device.wgmma_memory == 0)
        return;
    c->device.units |= CLCONV_BIT(CLCONV_UNIT_WGMMA);
    c->device.tensor_maps = clconv_cuda_maps_work(maps, &c->log) &&
                            clconv_selftest_maps(&place, maps, &c->log);
}

static clconv_status fill(clconv_context *c,
                          const clconv_context_options *options)
{
    c->offline = clconv_os_flag("CLCONV_OFFLINE");
    clconv_status status =
        clconv_query_device(c->cl_ctx, c->cl_device, c->offline, &c->device);
    if (status == CLCONV_OK)
        status = emulate(options->emulate_unit, &c->device);
    if (status != CLCONV_OK)
        return status;
    char *dir = clconv_store_find_dir(options->cache_dir, &c->log);
    clconv_cache_options cache = {dir, options->cache_policy, c->offline};
    status = open_caches(c, &cache);
    free(dir);
    if (status == CLCONV_OK)
        test_units(c, options->emulate_unit);
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

/* NULL: no memory, said. */
static clconv_context *new_context(cl_context cl_ctx, cl_device_id device)
{
    clconv_context *c = calloc(1, sizeof *c);
    if (!c) {
        clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a context");
        return NULL;
    }
    atomic_init(&c->references, 1);
    c->process = clconv_os_process();
    c->cl_ctx = cl_ctx;
    c->cl_device = device;
    return c;
}

static clconv_status hand_out(clconv_context *c, clconv_status status,
                              clconv_context **out)
{
    if (status == CLCONV_OK)
        *out = c;
    else
        free_context(c);
    return status;
}

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
    clconv_context *c = new_context(cl_ctx, device);
    if (!c)
        return CLCONV_OUT_OF_MEMORY;
    c->log = (clconv_log){o.log, o.log_user};
    return hand_out(c, fill(c, &o), out);
}

clconv_status clconv_context_new_scratch(const clconv_context *like,
                                         clconv_context **out)
{
    clconv_context *c = new_context(like->cl_ctx, like->cl_device);
    if (!c)
        return CLCONV_OUT_OF_MEMORY;
    c->device = like->device;
    c->offline = like->offline;
    clconv_cache_options in_memory = {.offline = c->offline};
    return hand_out(c, open_caches(c, &in_memory), out);
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
