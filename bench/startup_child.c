/*
 * Buffers are made before the clock starts, for the empty program as well, so
 * that the device is awake in every case.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "message.h"
#include "shape.h"

static const char generic_plan[] =
    "cast:vec=4;bwd_data_generic;bwd_weight_generic";

const startup_kind startup_kinds[STARTUP_KINDS] = {
    {"empty", "empty program", NULL, CLCONV_CACHE_CHEAP},
    {"generic", "generic plan", generic_plan, CLCONV_CACHE_CHEAP},
    {"generic-all", "generic plan, CACHE_ALL", generic_plan, CLCONV_CACHE_ALL},
    {"default", "default plan", NULL, CLCONV_CACHE_CHEAP},
    {"default-all", "default plan, CACHE_ALL", NULL, CLCONV_CACHE_ALL},
};

enum { X, W, DY, DW, DB, DX, TENSORS };

typedef struct buffers {
    cl_mem mem[TENSORS];
} buffers;

/* ---- Buffers ------------------------------------------------------------ */

static cl_mem new_zeros(const host *h, size_t elements)
{
    float *zeros = calloc(elements, sizeof(*zeros));
    cl_mem mem = zeros ? host_buffer(h, elements * sizeof(*zeros), zeros) : NULL;

    if (!zeros)
        message_error("out of memory");
    free(zeros);
    return mem;
}

static void buffers_free(buffers *b)
{
    for (int i = 0; i < TENSORS; ++i) {
        if (b->mem[i])
            clReleaseMemObject(b->mem[i]);
    }
}

static bool buffers_new(const host *h, const clconv_desc *desc, buffers *out)
{
    buffers b = {.mem = {NULL}};
    size_t elements[TENSORS];
    bool ok = true;
    shape z;

    if (!shape_from_desc(desc, &z))
        return false;
    elements[X] = elements[DX] = shape_x_count(&z);
    elements[W] = elements[DW] = shape_w_count(&z);
    elements[DY] = shape_dy_count(&z);
    elements[DB] = (size_t)z.k;
    for (int i = 0; ok && i < TENSORS; ++i) {
        b.mem[i] = new_zeros(h, elements[i]);
        ok = b.mem[i] != NULL;
    }
    if (ok)
        *out = b;
    else
        buffers_free(&b);
    return ok;
}

/* ---- The empty program -------------------------------------------------- */

static bool fine(cl_int error, const char *call)
{
    if (error)
        message_error("%s failed with OpenCL error %d", call, (int)error);
    return error == CL_SUCCESS;
}

static bool launch(const host *h, cl_kernel kernel, cl_mem mem)
{
    const size_t one = 1;

    return fine(clSetKernelArg(kernel, 0, sizeof(mem), &mem),
                "clSetKernelArg") &&
           fine(clEnqueueNDRangeKernel(h->queue, kernel, 1, NULL, &one, &one, 0,
                                       NULL, NULL),
                "clEnqueueNDRangeKernel") &&
           host_finish(h);
}

static bool time_program(const host *h, cl_program program, cl_mem mem,
                         startup_times *out)
{
    double begin = clock_seconds(), built;
    cl_kernel kernel;
    cl_int error;
    bool ok;

    if (!fine(clBuildProgram(program, 1, &h->device, "", NULL, NULL),
              "clBuildProgram"))
        return false;
    kernel = clCreateKernel(program, "first", &error);
    if (!fine(error, "clCreateKernel"))
        return false;
    built = clock_seconds();
    ok = launch(h, kernel, mem);
    *out = (startup_times){0, built - begin, clock_seconds() - built};
    clReleaseKernel(kernel);
    return ok;
}

static bool time_empty(const host *h, cl_mem mem, startup_times *out)
{
    const char *text = "__kernel void first(__global float *x)\n"
                       "{\n"
                       "    x[0] = 1.0f;\n"
                       "}\n";
    cl_int error;
    cl_program program =
        clCreateProgramWithSource(h->context, 1, &text, NULL, &error);
    bool ok;

    if (!fine(error, "clCreateProgramWithSource"))
        return false;
    ok = time_program(h, program, mem, out);
    clReleaseProgram(program);
    return ok;
}

/* ---- The library -------------------------------------------------------- */

static clconv_backward_args arguments(const buffers *b, unsigned ops)
{
    clconv_backward_args args;

    clconv_backward_args_init(&args);
    args.x.mem = b->mem[X];
    args.w.mem = b->mem[W];
    args.dy.mem = b->mem[DY];
    args.dw.mem = ops & CLCONV_OP_DW ? b->mem[DW] : NULL;
    args.db.mem = ops & CLCONV_OP_DB ? b->mem[DB] : NULL;
    args.dx.mem = ops & CLCONV_OP_DX ? b->mem[DX] : NULL;
    return args;
}

static bool succeeded(clconv_status status)
{
    if (status)
        message_error("%s", clconv_last_error());
    return status == CLCONV_OK;
}

static const startup_kind *find_kind(const char *name)
{
    for (int i = 0; i < STARTUP_KINDS; ++i) {
        if (strcmp(startup_kinds[i].name, name) == 0)
            return &startup_kinds[i];
    }
    message_error("--startup-child does not know \"%s\"", name);
    return NULL;
}

/* --plan is the kind's own plan, if it has one. */
static bool time_library(const host *h, const bench_options *o,
                         const startup_kind *kind, const buffers *b,
                         startup_times *out)
{
    clconv_backward_args args = arguments(b, o->ops);
    clconv_context *context = NULL;
    clconv_plan *plan = NULL;
    clconv_context_options cache;
    clconv_plan_options options;
    double at[4] = {clock_seconds()};
    bool ok;

    clconv_context_options_init(&cache);
    cache.cache_policy = kind->cache_policy;
    clconv_plan_options_init(&options);
    options.plan = o->plan;
    ok = succeeded(
        clconv_context_create(h->context, h->device, &cache, &context));
    at[1] = clock_seconds();
    ok = ok && succeeded(clconv_plan_create(context, &o->problems.items[0].desc,
                                            o->ops, &options, &plan));
    at[2] = clock_seconds();
    ok = ok &&
         succeeded(
             clconv_enqueue_backward(plan, h->queue, &args, 0, NULL, NULL)) &&
         host_finish(h);
    at[3] = clock_seconds();
    *out = (startup_times){at[1] - at[0], at[2] - at[1], at[3] - at[2]};
    clconv_plan_release(plan);
    clconv_context_release(context);
    return ok;
}

/* ---- The whole ---------------------------------------------------------- */

static bool time_kind(const host *h, const bench_options *o, startup_times *out)
{
    const startup_kind *kind = find_kind(o->startup_kind);
    buffers b;
    bool ok = false;

    if (!kind || !buffers_new(h, &o->problems.items[0].desc, &b))
        return false;
    if (kind == &startup_kinds[0])
        ok = time_empty(h, b.mem[X], out);
    else
        ok = time_library(h, o, kind, &b, out);
    buffers_free(&b);
    return ok;
}

int startup_child(const bench_options *o)
{
    startup_times times;
    host h;
    bool ok;

    switch (host_open(o->device, HOST_IN_ORDER, &h)) {
    case HOST_OK: break;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
    ok = time_kind(&h, o, &times);
    if (ok)
        printf("%.9f %.9f %.9f %s / %s\n", times.context, times.plan,
               times.call, h.platform_name, h.device_name);
    host_close(&h);
    return ok && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
