/*
 * Runs the kernels of reference_kernels.c: pack some images, launch, read.
 * A device without fp64 gets plain loops on the host instead, which take
 * minutes where the kernels take seconds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "reference.h"

#include <stdlib.h>

#include "message.h"
#include "reference_kernels.h"
#include "reference_pack.h"

/* Bytes of packed images that one pass holds at most, if one image fits. */
#define PASS_BYTES ((size_t)256 << 20)
/* What a work-item of reference_dw reads in one launch: fits a cache. */
#define LAUNCH_BYTES ((int64_t)256 << 10)

struct reference {
    const host *h;
    cl_program program; /* NULL: no fp64, plain loops */
    cl_kernel dw, dx;
};

static bool failed(cl_int error, const char *call)
{
    if (error)
        message_error("reference: %s failed with OpenCL error %d", call,
                      (int)error);
    return error != CL_SUCCESS;
}

/* ---- Building ----------------------------------------------------------- */

static void say_build_log(const reference *ref)
{
    char log[2048] = "";

    clGetProgramBuildInfo(ref->program, ref->h->device, CL_PROGRAM_BUILD_LOG,
                          sizeof(log) - 1, log, NULL);
    message_error("reference: kernels do not build: %s", log);
}

static bool build(reference *ref)
{
    const char *source[REFERENCE_SOURCE_COUNT];
    cl_int error;

    for (int i = 0; i < REFERENCE_SOURCE_COUNT; ++i)
        source[i] = reference_source[i];
    ref->program = clCreateProgramWithSource(
        ref->h->context, REFERENCE_SOURCE_COUNT, source, NULL, &error);
    if (failed(error, "clCreateProgramWithSource"))
        return false;
    if (clBuildProgram(ref->program, 1, &ref->h->device, "", NULL, NULL)) {
        say_build_log(ref);
        return false;
    }
    ref->dw = clCreateKernel(ref->program, "reference_dw", &error);
    if (failed(error, "clCreateKernel"))
        return false;
    ref->dx = clCreateKernel(ref->program, "reference_dx", &error);
    return !failed(error, "clCreateKernel");
}

bool reference_new(const host *h, reference **out)
{
    reference *ref = calloc(1, sizeof(*ref));

    if (!ref) {
        message_error("reference: out of memory");
        return false;
    }
    ref->h = h;
    if (h->has_fp64 && !build(ref)) {
        reference_free(ref);
        return false;
    }
    *out = ref;
    return true;
}

void reference_free(reference *ref)
{
    if (!ref)
        return;
    if (ref->dw)
        clReleaseKernel(ref->dw);
    if (ref->dx)
        clReleaseKernel(ref->dx);
    if (ref->program)
        clReleaseProgram(ref->program);
    free(ref);
}

/* ---- One pass ----------------------------------------------------------- */

/* Some images on the device. */
typedef struct pass {
    reference_sizes g;
    cl_mem sizes;
    cl_mem operand; /* packed x, or packed w */
    cl_mem dy;
    cl_mem out; /* dw, or dx of these images */
} pass;

static void release(cl_mem *mem)
{
    if (*mem)
        clReleaseMemObject(*mem);
    *mem = NULL;
}

static void *packing_space(size_t count, size_t size)
{
    void *space = malloc(count * size);

    if (!space)
        message_error("reference: out of memory");
    return space;
}

/* Frees packed, which may be NULL: there was no space. */
static cl_mem send_packed(const reference *ref, void *packed, size_t bytes)
{
    cl_mem mem = packed ? host_buffer(ref->h, bytes, packed) : NULL;

    free(packed);
    return mem;
}

static cl_mem send_x(const reference *ref, const reference_sizes *g,
                     const float *x)
{
    size_t count = (size_t)g->n * reference_packed_x(g);
    float *packed = packing_space(count, sizeof(*packed));

    if (packed)
        reference_pack_x(g, x, packed);
    return send_packed(ref, packed, count * sizeof(*packed));
}

static cl_mem send_dy(const reference *ref, const reference_sizes *g,
                      const float *dy)
{
    size_t count = (size_t)g->n * reference_packed_dy(g);
    float *packed = packing_space(count, sizeof(*packed));

    if (packed)
        reference_pack_dy(g, dy, packed);
    return send_packed(ref, packed, count * sizeof(*packed));
}

static cl_mem send_w(const reference *ref, const reference_sizes *g,
                     const float *w)
{
    size_t count = reference_packed_w(g);
    double *packed = packing_space(count, sizeof(*packed));

    if (packed)
        reference_pack_w(g, w, packed);
    return send_packed(ref, packed, count * sizeof(*packed));
}

/* How many images one pass takes. */
static int64_t images_a_pass(const shape *z)
{
    reference_sizes g;
    size_t x, dy, images;

    if (!reference_sizes_from(z, 1, &g))
        return 1;
    x = reference_packed_x(&g) * sizeof(float);
    dy = reference_packed_dy(&g) * sizeof(float);
    images = PASS_BYTES / (x > dy ? x : dy);
    if (images < 1)
        return 1;
    return images < (size_t)z->n ? (int64_t)images : z->n;
}

/* Sizes and dy of images n0 to n0 + n - 1. */
static bool begin_pass(const reference *ref, const shape *z, const float *dy,
                       int64_t n0, int64_t n, pass *out)
{
    if (!reference_sizes_from(z, n, &out->g)) {
        message_error("reference: a padded tensor is too big");
        return false;
    }
    out->sizes = host_buffer(ref->h, sizeof(out->g), &out->g);
    out->dy = send_dy(ref, &out->g, dy + n0 * z->k * z->p * z->q);
    return out->sizes && out->dy;
}

/* Everything but out, which outlives the pass of reference_dw. */
static void end_pass(pass *p)
{
    release(&p->sizes);
    release(&p->operand);
    release(&p->dy);
}

static bool set_argument(cl_kernel kernel, cl_uint index, size_t size,
                         const void *value)
{
    return !failed(clSetKernelArg(kernel, index, size, value),
                   "clSetKernelArg");
}

static bool set_arguments(cl_kernel kernel, const pass *p)
{
    return set_argument(kernel, 0, sizeof(cl_mem), &p->sizes) &&
           set_argument(kernel, 1, sizeof(cl_mem), &p->operand) &&
           set_argument(kernel, 2, sizeof(cl_mem), &p->dy) &&
           set_argument(kernel, 3, sizeof(cl_mem), &p->out);
}

static bool launch(const reference *ref, cl_kernel kernel, int64_t d0,
                   int64_t d1, int64_t d2)
{
    const size_t global[3] = {(size_t)d0, (size_t)d1, (size_t)d2};
    const size_t local[3] = {1, 1, 1};

    return !failed(clEnqueueNDRangeKernel(ref->h->queue, kernel, 3, NULL,
                                          global, local, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel") &&
           host_finish(ref->h);
}

static int64_t blocks(int64_t size, int64_t step)
{
    return (size + step - 1) / step;
}

/* ---- dw ----------------------------------------------------------------- */

/* Rows of output whose share of 4 filters and 4 channels is LAUNCH_BYTES. */
static int64_t rows_a_launch(const reference_sizes *g)
{
    int64_t row = g->dy_width + (int64_t)g->stride_h * g->stride_w * g->x_width;
    int64_t bytes = REFERENCE_DW_FILTERS * row * (int64_t)sizeof(float);

    return bytes < LAUNCH_BYTES ? LAUNCH_BYTES / bytes : 1;
}

static bool launch_dw(const reference *ref, const pass *pass_now)
{
    const reference_sizes *g = &pass_now->g;
    int64_t rows = (int64_t)g->n * g->p, step = rows_a_launch(g);

    if (!set_arguments(ref->dw, pass_now))
        return false;
    for (int64_t row = 0; row < rows; row += step) {
        cl_int first = (cl_int)row;
        cl_int end = (cl_int)(row + step < rows ? row + step : rows);

        if (!set_argument(ref->dw, 4, sizeof(first), &first) ||
            !set_argument(ref->dw, 5, sizeof(end), &end) ||
            !launch(ref, ref->dw, (int64_t)g->r * g->s,
                    blocks(g->cg, REFERENCE_DW_CHANNELS),
                    g->groups * blocks(g->kg, REFERENCE_DW_FILTERS)))
            return false;
    }
    return true;
}

static bool add_dw_pass(const reference *ref, const shape *z, const float *x,
                        const float *dy, int64_t n0, int64_t n, cl_mem dw)
{
    pass p = {.out = dw};
    bool ok = begin_pass(ref, z, dy, n0, n, &p);

    if (ok) {
        p.operand = send_x(ref, &p.g, x + n0 * z->c * z->h * z->w);
        ok = p.operand && launch_dw(ref, &p);
    }
    end_pass(&p);
    return ok;
}

/* A buffer of dw's size that holds zeros, which dw points to. */
static cl_mem zeroed_dw(const reference *ref, const shape *z, double *dw)
{
    size_t count = shape_w_count(z);

    for (size_t i = 0; i < count; ++i)
        dw[i] = 0;
    return host_buffer(ref->h, count * sizeof(*dw), dw);
}

static bool device_dw(const reference *ref, const shape *z, const float *x,
                      const float *dy, double *dw)
{
    int64_t step = images_a_pass(z);
    cl_mem mem = zeroed_dw(ref, z, dw);
    bool ok = mem != NULL;

    for (int64_t n = 0; ok && n < z->n; n += step)
        ok = add_dw_pass(ref, z, x, dy, n, n + step < z->n ? step : z->n - n,
                         mem);
    ok = ok && host_read(ref->h, mem, 0, shape_w_count(z) * sizeof(*dw), dw);
    release(&mem);
    return ok;
}

bool reference_dw(reference *ref, const shape *z, const float *x,
                  const float *dy, double *dw)
{
    if (ref->program)
        return device_dw(ref, z, x, dy, dw);
    for (size_t i = 0; i < shape_w_count(z); ++i)
        dw[i] = reference_dw_element(z, x, dy, i, NULL);
    return true;
}

/* ---- dx ----------------------------------------------------------------- */

static bool launch_dx(const reference *ref, const pass *pass_now)
{
    const reference_sizes *g = &pass_now->g;
    cl_int place_blocks = (cl_int)reference_place_blocks(g);

    return set_arguments(ref->dx, pass_now) &&
           set_argument(ref->dx, 4, sizeof(place_blocks), &place_blocks) &&
           launch(ref, ref->dx, (int64_t)g->stride_w * place_blocks,
                  g->groups * blocks(g->cg, REFERENCE_DX_CHANNELS),
                  (int64_t)g->n * g->h);
}

static bool write_dx_pass(const reference *ref, const shape *z, const float *w,
                          const float *dy, int64_t n0, int64_t n, double *dx)
{
    size_t image = (size_t)(z->c * z->h * z->w);
    size_t bytes = (size_t)n * image * sizeof(*dx);
    pass p = {.out = host_buffer(ref->h, bytes, NULL)};
    bool ok = p.out && begin_pass(ref, z, dy, n0, n, &p);

    if (ok) {
        p.operand = send_w(ref, &p.g, w);
        ok = p.operand && launch_dx(ref, &p) &&
             host_read(ref->h, p.out, 0, bytes, dx + (size_t)n0 * image);
    }
    end_pass(&p);
    release(&p.out);
    return ok;
}

bool reference_dx(reference *ref, const shape *z, const float *w,
                  const float *dy, double *dx)
{
    int64_t step = images_a_pass(z);
    bool ok = true;

    if (!ref->program) {
        for (size_t i = 0; i < shape_x_count(z); ++i)
            dx[i] = reference_dx_element(z, w, dy, i, NULL);
        return true;
    }
    for (int64_t n = 0; ok && n < z->n; n += step)
        ok = write_dx_pass(ref, z, w, dy, n, n + step < z->n ? step : z->n - n,
                           dx);
    return ok;
}
