/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tensors.h"

#include <stdlib.h>

#include "cl_error.h"
#include "elements.h"

/* A set begins where a page does, as an allocation of its own would. */
#define SET_ALIGN 4096

/* Sets together, in caches: what was written last may be in the cache still
 * when the first set's turn comes again. */
#define CACHE_FACTOR 2
/* A CPU's driver tells of one cache level, which need not be the last. */
#define CPU_BYTES ((size_t)64 << 20)
/* Of the device's memory: others use it too. */
#define MEMORY_SHARE 4

bool clconv_tensors_use(unsigned ops, clconv_tensor tensor)
{
    static const unsigned users[CLCONV_TENSORS] = {
        [CLCONV_DY] = CLCONV_OP_BACKWARD, [CLCONV_X] = CLCONV_OP_DW,
        [CLCONV_W] = CLCONV_OP_DX,        [CLCONV_DW] = CLCONV_OP_DW,
        [CLCONV_DB] = CLCONV_OP_DB,       [CLCONV_DX] = CLCONV_OP_DX,
    };
    return (ops & users[tensor]) != 0;
}

/* ---- How many sets ----------------------------------------------------- */

static size_t stride_of(const clconv_problem *p, clconv_tensor tensor)
{
    size_t pages = clconv_problem_bytes(p, tensor) / SET_ALIGN + 1;
    return pages * SET_ALIGN;
}

static size_t bytes_that_no_cache_holds(cl_device_id device)
{
    cl_ulong cache = 0;
    cl_device_type type = 0;
    clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof cache,
                    &cache, NULL);
    clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    size_t bytes = CACHE_FACTOR * (size_t)cache;
    return type & CL_DEVICE_TYPE_CPU && bytes < CPU_BYTES ? CPU_BYTES : bytes;
}

static size_t memory_of(cl_device_id device)
{
    cl_ulong bytes = 0;
    clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes,
                    NULL);
    return (size_t)bytes;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

int clconv_tensors_count_sets(cl_device_id device, const clconv_problem *p,
                              unsigned ops, size_t max_allocation)
{
    size_t set = 0, largest = 1;
    for (int t = 0; t < CLCONV_TENSORS; ++t) {
        size_t stride = stride_of(p, (clconv_tensor)t);
        if (!clconv_tensors_use(ops, (clconv_tensor)t))
            continue;
        set += stride;
        largest = stride > largest ? stride : largest;
    }
    size_t wanted = bytes_that_no_cache_holds(device) / set + 1;
    size_t most = smaller(memory_of(device) / MEMORY_SHARE / set,
                          max_allocation / largest);
    size_t sets = smaller(wanted < 2 ? 2 : wanted, most);
    return sets > 0 ? (int)sets : 1;
}

/* ---- Buffers ----------------------------------------------------------- */

clconv_status clconv_tensors_new(cl_context context, cl_command_queue queue,
                                 const clconv_problem *p, unsigned ops,
                                 int sets, clconv_tensors *out)
{
    clconv_tensors made = {.problem = *p, .queue = queue, .sets = sets};
    for (int t = 0; t < CLCONV_TENSORS; ++t) {
        cl_int error;
        if (!clconv_tensors_use(ops, (clconv_tensor)t))
            continue;
        made.stride[t] = stride_of(p, (clconv_tensor)t);
        made.mem[t] =
            clCreateBuffer(context, CL_MEM_READ_WRITE,
                           (size_t)sets * made.stride[t], NULL, &error);
        if (!made.mem[t]) {
            clconv_tensors_free(&made);
            return clconv_cl_fail("clCreateBuffer", error);
        }
    }
    *out = made;
    return CLCONV_OK;
}

void clconv_tensors_free(clconv_tensors *t)
{
    for (int i = 0; i < CLCONV_TENSORS; ++i)
        if (t->mem[i])
            clReleaseMemObject(t->mem[i]);
    *t = (clconv_tensors){.sets = 0};
}

void clconv_tensors_args(const clconv_tensors *t, int set, unsigned ops,
                         clconv_backward_args *args)
{
    clconv_buffer *fields[CLCONV_TENSORS] = {
        [CLCONV_DY] = &args->dy, [CLCONV_X] = &args->x,
        [CLCONV_W] = &args->w,   [CLCONV_DW] = &args->dw,
        [CLCONV_DB] = &args->db, [CLCONV_DX] = &args->dx,
    };
    for (int i = 0; i < CLCONV_TENSORS; ++i)
        if (clconv_tensors_use(ops, (clconv_tensor)i))
            *fields[i] = (clconv_buffer){t->mem[i], (size_t)set * t->stride[i]};
}

/* ---- Contents ---------------------------------------------------------- */

/* The first unit bytes, again and again up to total. Each copy doubles what is
 * there: thousands of sets take ten calls. */
static clconv_status repeat(const clconv_tensors *t, clconv_tensor tensor,
                            size_t unit, size_t total)
{
    cl_mem mem = t->mem[tensor];
    for (size_t done = unit; done > 0 && done < total;) {
        size_t bytes = smaller(done, total - done);
        cl_int error = clEnqueueCopyBuffer(t->queue, mem, mem, 0, done, bytes,
                                           0, NULL, NULL);
        if (error != CL_SUCCESS)
            return clconv_cl_fail("clEnqueueCopyBuffer", error);
        done += bytes;
    }
    return CLCONV_OK;
}

static clconv_status finish(const clconv_tensors *t)
{
    cl_int error = clFinish(t->queue);
    return error == CL_SUCCESS ? CLCONV_OK : clconv_cl_fail("clFinish", error);
}

clconv_status clconv_tensors_write(const clconv_tensors *t, clconv_tensor tensor,
                                   const float *values, int64_t images)
{
    clconv_problem part = t->problem;
    part.n = images;
    size_t count = (size_t)clconv_problem_elements(&part, tensor);
    size_t bytes = clconv_problem_bytes(&part, tensor);
    void *packed = malloc(bytes + 1);
    if (!packed)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a tensor");
    clconv_elements_pack(part.type[tensor], values, count, packed);
    cl_int error = clEnqueueWriteBuffer(t->queue, t->mem[tensor], CL_TRUE, 0,
                                        bytes, packed, 0, NULL, NULL);
    free(packed);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clEnqueueWriteBuffer", error);
    clconv_status status =
        repeat(t, tensor, bytes, clconv_problem_bytes(&t->problem, tensor));
    return status == CLCONV_OK ? finish(t) : status;
}

clconv_status clconv_tensors_copy_sets(const clconv_tensors *t)
{
    clconv_status status = CLCONV_OK;
    for (int i = CLCONV_DY; i <= CLCONV_W && status == CLCONV_OK; ++i)
        if (t->mem[i])
            status = repeat(t, (clconv_tensor)i, t->stride[i],
                            (size_t)t->sets * t->stride[i]);
    return status == CLCONV_OK ? finish(t) : status;
}

clconv_status clconv_tensors_poison(const clconv_tensors *t)
{
    static const cl_uchar ones = 0xFF; /* a NaN in fp32 and in fp16 */
    for (int i = CLCONV_DW; i <= CLCONV_DX; ++i) {
        if (!t->mem[i])
            continue;
        cl_int error =
            clEnqueueFillBuffer(t->queue, t->mem[i], &ones, sizeof ones, 0,
                                t->stride[i], 0, NULL, NULL);
        if (error != CL_SUCCESS)
            return clconv_cl_fail("clEnqueueFillBuffer", error);
    }
    return CLCONV_OK;
}

static clconv_status read_bytes(const clconv_tensors *t, clconv_tensor tensor,
                                void *out)
{
    cl_int error = clEnqueueReadBuffer(t->queue, t->mem[tensor], CL_TRUE, 0,
                                       clconv_problem_bytes(&t->problem, tensor),
                                       out, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clEnqueueReadBuffer", error);
    return CLCONV_OK;
}

clconv_status clconv_tensors_read(const clconv_tensors *t, clconv_tensor tensor,
                                  float **out)
{
    size_t count = (size_t)clconv_problem_elements(&t->problem, tensor);
    void *raw = malloc(clconv_problem_bytes(&t->problem, tensor) + 1);
    float *values = malloc((count + 1) * sizeof *values);
    clconv_status status =
        raw && values ? read_bytes(t, tensor, raw)
                      : clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a "
                                                          "tensor");
    if (status == CLCONV_OK) {
        clconv_elements_unpack(t->problem.type[tensor], raw, count, values);
        *out = values;
        values = NULL;
    }
    free(values);
    free(raw);
    return status;
}
