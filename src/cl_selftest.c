/*
 * Small whole numbers, whose products and sums fp16 and fp32 hold exactly: the
 * product is right or it is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_selftest.h"

#include <stdint.h>
#include <stdlib.h>

#include "cl_error.h"
#include "products.h"

enum { SIZE = 64, ELEMENTS = SIZE * SIZE };

/* SIZE x SIZE each, rows first. */
typedef struct matrices {
    int a[ELEMENTS], b[ELEMENTS];
    cl_ushort a_half[ELEMENTS], b_half[ELEMENTS];
    cl_float got[ELEMENTS];
} matrices;

/* ---- Numbers ----------------------------------------------------------- */

/* -4 ... 4, at random. */
static int next_number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (int)(*state >> 24) % 9 - 4;
}

static cl_ushort half_of(int number)
{
    static const cl_ushort halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    int sign = number < 0 ? 0x8000 : 0;
    return (cl_ushort)(sign | halves[abs(number)]);
}

/* NULL: no memory. */
static matrices *new_matrices(void)
{
    matrices *m = calloc(1, sizeof *m);
    uint32_t state = 1;
    for (int i = 0; m && i < ELEMENTS; ++i) {
        m->a[i] = next_number(&state);
        m->b[i] = next_number(&state);
        m->a_half[i] = half_of(m->a[i]);
        m->b_half[i] = half_of(m->b[i]);
    }
    return m;
}

static clconv_status check_element(const matrices *m, int row, int column)
{
    int want = 0;
    for (int k = 0; k < SIZE; ++k)
        want += m->a[row * SIZE + k] * m->b[k * SIZE + column];
    float got = m->got[row * SIZE + column];
    if (got == (float)want)
        return CLCONV_OK;
    return clconv_fail(CLCONV_UNSUPPORTED,
                       "its product is %g in row %d, column %d, not %d",
                       (double)got, row, column, want);
}

static clconv_status check(const matrices *m)
{
    clconv_status status = CLCONV_OK;
    for (int i = 0; status == CLCONV_OK && i < ELEMENTS; ++i)
        status = check_element(m, i / SIZE, i % SIZE);
    return status;
}

/* ---- On the device ----------------------------------------------------- */

/* NULL: not there yet. */
typedef struct run {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer[3]; /* a, b, their product: the kernel's arguments */
} run;

static void free_run(run *r)
{
    for (int i = 0; i < 3; ++i)
        if (r->buffer[i])
            clReleaseMemObject(r->buffer[i]);
    if (r->kernel)
        clReleaseKernel(r->kernel);
    if (r->queue)
        clReleaseCommandQueue(r->queue);
}

static clconv_status set_buffer(run *r, cl_context context, cl_uint index,
                                size_t size, void *data)
{
    cl_int error;
    r->buffer[index] = clCreateBuffer(
        context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, data, &error);
    if (!r->buffer[index])
        return clconv_cl_fail("clCreateBuffer", error);
    error = clSetKernelArg(r->kernel, index, sizeof(cl_mem), &r->buffer[index]);
    return error == CL_SUCCESS ? CLCONV_OK
                               : clconv_cl_fail("clSetKernelArg", error);
}

static clconv_status prepare(run *r, cl_context context, cl_device_id device,
                             cl_program program, matrices *m)
{
    cl_int error;
    r->queue = clCreateCommandQueue(context, device, 0, &error);
    if (!r->queue)
        return clconv_cl_fail("clCreateCommandQueue", error);
    r->kernel = clCreateKernel(program, "wgmma_selftest", &error);
    if (!r->kernel)
        return clconv_cl_fail("clCreateKernel", error);
    clconv_status status =
        set_buffer(r, context, 0, sizeof m->a_half, m->a_half);
    if (status == CLCONV_OK)
        status = set_buffer(r, context, 1, sizeof m->b_half, m->b_half);
    if (status == CLCONV_OK)
        status = set_buffer(r, context, 2, sizeof m->got, m->got);
    return status;
}

static clconv_status multiply(run *r, matrices *m)
{
    const size_t items = CLCONV_WARPGROUP;
    cl_int error = clEnqueueNDRangeKernel(r->queue, r->kernel, 1, NULL, &items,
                                          &items, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clEnqueueNDRangeKernel", error);
    error = clEnqueueReadBuffer(r->queue, r->buffer[2], CL_TRUE, 0,
                                sizeof m->got, m->got, 0, NULL, NULL);
    return error == CL_SUCCESS ? CLCONV_OK
                               : clconv_cl_fail("clEnqueueReadBuffer", error);
}

static clconv_status test_program(cl_context context, cl_device_id device,
                                  cl_program program)
{
    matrices *m = new_matrices();
    if (!m)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for matrices");
    run r = {0};
    clconv_status status = prepare(&r, context, device, program, m);
    if (status == CLCONV_OK)
        status = multiply(&r, m);
    if (status == CLCONV_OK)
        status = check(m);
    free_run(&r);
    free(m);
    return status;
}

static clconv_status get_program(clconv_cache *cache, cl_program *out)
{
    char *text = clconv_wgmma_selftest_source();
    if (!text)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a self-test");
    const clconv_source source = {"wgmma_selftest", "any problem", text};
    clconv_origin origin;
    clconv_status status = clconv_cache_program(cache, &source, &origin, out);
    free(text);
    return status;
}

bool clconv_selftest_wgmma(cl_context context, cl_device_id device,
                           clconv_cache *cache, const clconv_log *log)
{
    cl_program program = NULL;
    clconv_status status = get_program(cache, &program);
    if (status == CLCONV_OK)
        status = test_program(context, device, program);
    if (program)
        clReleaseProgram(program);
    if (status != CLCONV_OK)
        clconv_log_info(log, "the matrix unit wgmma is not used: %s",
                        clconv_last_error());
    return status == CLCONV_OK;
}
