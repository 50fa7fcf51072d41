/*
 * A work-item takes four elements; the last may have fewer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_clblast_cast.h"

#include "message.h"

enum { LOCAL_SIZE = 64, ELEMENTS_PER_ITEM = 4 };

static const char source[] =
    "__kernel void to_half(__global const float *from, __global half *to,\n"
    "                      float scale, ulong count)\n"
    "{\n"
    "    ulong first = 4 * (ulong)get_global_id(0);\n"
    "    if (first + 4 <= count)\n"
    "        vstore_half4_rte(vload4(0, from + first) * scale, 0,\n"
    "                         to + first);\n"
    "    else\n"
    "        for (ulong i = first; i < count; ++i)\n"
    "            vstore_half_rte(from[i] * scale, i, to);\n"
    "}\n"
    "\n"
    "__kernel void from_half(__global const half *from, __global float *to,\n"
    "                        float scale, ulong count)\n"
    "{\n"
    "    ulong first = 4 * (ulong)get_global_id(0);\n"
    "    if (first + 4 <= count)\n"
    "        vstore4(vload_half4(0, from + first) * scale, 0, to + first);\n"
    "    else\n"
    "        for (ulong i = first; i < count; ++i)\n"
    "            to[i] = vload_half(i, from) * scale;\n"
    "}\n";

static bool failed(cl_int error, const char *call)
{
    if (error)
        message_error("%s failed with OpenCL error %d", call, (int)error);
    return error != CL_SUCCESS;
}

static bool build(const host *h, clblast_cast *cast)
{
    const char *text = source;
    cl_int error;

    cast->program =
        clCreateProgramWithSource(h->context, 1, &text, NULL, &error);
    if (failed(error, "clCreateProgramWithSource") ||
        failed(clBuildProgram(cast->program, 1, &h->device, "", NULL, NULL),
               "clBuildProgram"))
        return false;
    cast->to_half = clCreateKernel(cast->program, "to_half", &error);
    if (failed(error, "clCreateKernel"))
        return false;
    cast->from_half = clCreateKernel(cast->program, "from_half", &error);
    return !failed(error, "clCreateKernel");
}

bool clblast_cast_open(const host *h, clblast_cast *out)
{
    clblast_cast cast = {.queue = h->queue};

    if (!build(h, &cast)) {
        clblast_cast_close(&cast);
        return false;
    }
    *out = cast;
    return true;
}

void clblast_cast_close(clblast_cast *cast)
{
    if (cast->to_half)
        clReleaseKernel(cast->to_half);
    if (cast->from_half)
        clReleaseKernel(cast->from_half);
    if (cast->program)
        clReleaseProgram(cast->program);
    *cast = (clblast_cast){0};
}

static bool enqueue(cl_command_queue queue, cl_kernel kernel, cl_mem from,
                    cl_mem to, size_t count, float scale)
{
    const size_t per_group = (size_t)LOCAL_SIZE * ELEMENTS_PER_ITEM;
    const size_t local = LOCAL_SIZE;
    const size_t global = (count + per_group - 1) / per_group * local;
    const cl_ulong elements = count;

    return !failed(clSetKernelArg(kernel, 0, sizeof(from), &from),
                   "clSetKernelArg") &&
           !failed(clSetKernelArg(kernel, 1, sizeof(to), &to),
                   "clSetKernelArg") &&
           !failed(clSetKernelArg(kernel, 2, sizeof(scale), &scale),
                   "clSetKernelArg") &&
           !failed(clSetKernelArg(kernel, 3, sizeof(elements), &elements),
                   "clSetKernelArg") &&
           !failed(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global,
                                          &local, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel");
}

bool clblast_cast_to_half(clblast_cast *cast, cl_mem from, cl_mem to,
                          size_t count, float scale)
{
    return enqueue(cast->queue, cast->to_half, from, to, count, scale);
}

bool clblast_cast_from_half(clblast_cast *cast, cl_mem from, cl_mem to,
                            size_t count, float scale)
{
    return enqueue(cast->queue, cast->from_half, from, to, count, scale);
}
