/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_trial.h"

#include "cl_error.h"

/* NULL: not there yet. */
typedef struct run {
    cl_program program;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer[CLCONV_TRIAL_MOST_ARGS];
} run;

static void free_run(run *r)
{
    for (int i = 0; i < CLCONV_TRIAL_MOST_ARGS; ++i)
        if (r->buffer[i])
            clReleaseMemObject(r->buffer[i]);
    if (r->kernel)
        clReleaseKernel(r->kernel);
    if (r->queue)
        clReleaseCommandQueue(r->queue);
    if (r->program)
        clReleaseProgram(r->program);
}

static clconv_status open_run(run *r, const clconv_trial_place *place,
                              const char *name, const char *text)
{
    const clconv_source source = {name, "any problem", text};
    clconv_origin origin;
    clconv_status status =
        clconv_cache_program(place->cache, &source, &origin, &r->program);
    if (status != CLCONV_OK)
        return status;
    cl_int error;
    r->queue = clCreateCommandQueue(place->context, place->device, 0, &error);
    if (!r->queue)
        return clconv_cl_fail("clCreateCommandQueue", error);
    r->kernel = clCreateKernel(r->program, name, &error);
    if (!r->kernel)
        return clconv_cl_fail("clCreateKernel", error);
    return CLCONV_OK;
}

static clconv_status set_arg(run *r, cl_context context, cl_uint index,
                             const clconv_trial_arg *arg)
{
    size_t size = arg->size;
    const void *value = arg->data;
    cl_int error;
    if (!arg->by_value) {
        r->buffer[index] =
            clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                           arg->size, arg->data, &error);
        if (!r->buffer[index])
            return clconv_cl_fail("clCreateBuffer", error);
        size = sizeof(cl_mem);
        value = &r->buffer[index];
    }
    error = clSetKernelArg(r->kernel, index, size, value);
    return error == CL_SUCCESS ? CLCONV_OK
                               : clconv_cl_fail("clSetKernelArg", error);
}

static clconv_status launch(run *r, size_t items, cl_mem buffer,
                            const clconv_trial_arg *last)
{
    cl_int error = clEnqueueNDRangeKernel(r->queue, r->kernel, 1, NULL, &items,
                                          &items, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clEnqueueNDRangeKernel", error);
    error = clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 0, last->size,
                                last->data, 0, NULL, NULL);
    return error == CL_SUCCESS ? CLCONV_OK
                               : clconv_cl_fail("clEnqueueReadBuffer", error);
}

clconv_status clconv_trial_run(const clconv_trial_place *place, const char *name,
                               const char *source, size_t items,
                               const clconv_trial_arg *args, int count)
{
    run r = {0};
    clconv_status status = open_run(&r, place, name, source);
    for (int i = 0; status == CLCONV_OK && i < count; ++i)
        status = set_arg(&r, place->context, (cl_uint)i, &args[i]);
    if (status == CLCONV_OK)
        status = launch(&r, items, r.buffer[count - 1], &args[count - 1]);
    free_run(&r);
    return status;
}
