/*
 * CLBlast's rows: buffers, the choice between image by image and batches, and
 * fp32 or fp16. CLBlast's half GEMM also sums in fp16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "contender_clblast_backward.h"
#include "message.h"

/* At most so much for the columns of a batch; CLBlast takes as much again for
 * matrices that it transposes. */
#define COLUMNS_MAX_BYTES ((size_t)1 << 28)

/* Each way runs this often when the faster is looked for, after the first
 * run, which compiles. */
#define TRIALS 2

static const char *version(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "CLBlast %d.%d.%d", CLBLAST_VERSION_MAJOR,
             CLBLAST_VERSION_MINOR, CLBLAST_VERSION_PATCH);
    return text;
}

static void release(cl_mem mem)
{
    if (mem)
        clReleaseMemObject(mem);
}

static void close_state(void *opened)
{
    clblast_backward *b = opened;

    if (!b)
        return;
    release(b->col);
    release(b->partial);
    release(b->image_sums);
    release(b->ones);
    release(b->half_ones);
    for (int i = 0; i < CONTENDER_TENSORS; ++i)
        release(b->halves[i]);
    clblast_cast_close(&b->cast);
    contender_buffers_close(&b->buffers);
    free(b);
}

/* ---- Running -------------------------------------------------------------- */

static bool enqueue(void *opened, int set)
{
    return clblast_backward_enqueue(opened, set);
}

static bool wait_all(void *opened)
{
    clblast_backward *b = opened;

    return host_finish(b->host);
}

static bool read_results(void *opened, int set, const contender_results *out)
{
    clblast_backward *b = opened;

    return contender_buffers_read(&b->buffers, set, out);
}

static const char *variant(const void *opened)
{
    const clblast_backward *b = opened;

    return b->chunk > 1 ? "batched" : "image";
}

/* ---- Choosing the way ----------------------------------------------------- */

/* Seconds of the quickest run with this many images a GEMM; negative on
 * failure. */
static double time_chunk(clblast_backward *b, size_t chunk)
{
    double best = -1;

    b->chunk = chunk;
    for (int trial = 0; trial <= TRIALS; ++trial) {
        double start = clock_seconds(), seconds;

        if (!enqueue(b, trial % b->buffers.sets) || !wait_all(b))
            return -1;
        seconds = clock_seconds() - start;
        if (trial > 0 && (best < 0 || seconds < best))
            best = seconds;
    }
    return best;
}

static bool choose_chunk(clblast_backward *b)
{
    double image, batched;

    b->chunk = 1;
    if (b->max_chunk == 1)
        return true;
    batched = time_chunk(b, b->max_chunk);
    image = time_chunk(b, 1);
    if (image < 0 || batched < 0)
        return false;
    if (batched < image)
        b->chunk = b->max_chunk;
    return true;
}

/* ---- Opening -------------------------------------------------------------- */

static bool device_has(cl_device_id device, const char *extension)
{
    char text[8192] = "";

    return clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text,
                           NULL) == CL_SUCCESS &&
           strstr(text, extension) != NULL;
}

static bool have_common_factor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a != 1;
}

static contender_status refuse(const contender_setup *setup, bool half,
                               char why[256])
{
    const clconv_desc *d = setup->desc;
    const char *reason = NULL;

    if (half && !device_has(setup->host->device, "cl_khr_fp16"))
        reason = "the device has no cl_khr_fp16";
    else if (d->layout != CLCONV_NCHW)
        reason = "CLBlast's im2col is for NCHW";
    else if (d->groups != 1)
        reason = "CLBlast's im2col knows no groups";
    else if (d->pad_top != d->pad_bottom || d->pad_left != d->pad_right)
        reason = "CLBlast's im2col pads both sides alike";
    else if (setup->ops & CLCONV_OP_DX &&
             (have_common_factor(d->stride_h, d->dilation_h) ||
              have_common_factor(d->stride_w, d->dilation_w)))
        reason = "CLBlast's col2im is wrong where stride and dilation have a "
                 "common factor";
    if (!reason)
        return CONTENDER_OK;
    snprintf(why, 256, "%s", reason);
    return CONTENDER_UNSUPPORTED;
}

/* Images whose columns, and whose matrices dW, fit one buffer. */
static size_t find_max_chunk(const clblast_backward *b)
{
    cl_ulong limit = 0;
    size_t image = b->crs * (b->pq > (size_t)b->z.k ? b->pq : (size_t)b->z.k) *
                   sizeof(float);
    size_t images;

    if (clGetDeviceInfo(b->host->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                        sizeof(limit), &limit, NULL))
        return 1;
    if (limit > COLUMNS_MAX_BYTES)
        limit = COLUMNS_MAX_BYTES;
    images = (size_t)limit / image;
    if (images > (size_t)b->z.n)
        images = (size_t)b->z.n;
    return images ? images : 1;
}

static bool open_ones(clblast_backward *b)
{
    size_t count = b->pq > (size_t)b->z.n ? b->pq : (size_t)b->z.n;
    float *ones = malloc(count * sizeof(*ones));

    if (!ones) {
        message_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        ones[i] = 1;
    b->ones = host_buffer(b->host, count * sizeof(*ones), ones);
    free(ones);
    if (!b->ones || !b->half)
        return b->ones != NULL;
    b->half_ones = host_buffer(b->host, count * sizeof(cl_half), NULL);
    return b->half_ones &&
           clblast_cast_to_half(&b->cast, b->ones, b->half_ones, count, 1);
}

static bool open_halves(const contender_setup *setup, clblast_backward *b)
{
    if (!clblast_cast_open(setup->host, &b->cast))
        return false;
    for (int i = 0; i < CONTENDER_TENSORS; ++i) {
        if (!b->buffers.mem[0][i] || i == CONTENDER_DB)
            continue;
        b->halves[i] =
            host_buffer(b->host, b->buffers.elements[i] * sizeof(cl_half), NULL);
        if (!b->halves[i])
            return false;
    }
    return true;
}

static bool open_buffers(const contender_setup *setup, clblast_backward *b)
{
    size_t element = b->half ? sizeof(cl_half) : sizeof(float);
    size_t k = (size_t)b->z.k;

    if (!contender_buffers_open(setup, &b->buffers) ||
        (b->half && !open_halves(setup, b)) || !open_ones(b))
        return false;
    b->image_sums =
        host_buffer(b->host, (size_t)b->z.n * k * sizeof(float), NULL);
    if (!b->image_sums || !clblast_clear(b, b->image_sums))
        return false;
    if (!b->pointwise)
        b->col =
            host_buffer(b->host, b->max_chunk * b->crs * b->pq * element, NULL);
    if (b->max_chunk > 1)
        b->partial =
            host_buffer(b->host, b->max_chunk * k * b->crs * element, NULL);
    for (int set = 0; set < setup->sets; ++set) {
        if (!clblast_clear_outputs(b, b->buffers.mem[set]))
            return false;
    }
    return clblast_clear_outputs(b, b->halves) && (b->pointwise || b->col) &&
           (b->max_chunk == 1 || b->partial);
}

static bool is_pointwise(const shape *z)
{
    return z->r == 1 && z->s == 1 && z->stride_h == 1 && z->stride_w == 1 &&
           z->pad_top == 0 && z->pad_left == 0;
}

static contender_status open_state(const contender_setup *setup, bool half,
                                   void **out, char why[256])
{
    contender_status status = refuse(setup, half, why);
    clblast_backward *b;

    if (status)
        return status;
    b = calloc(1, sizeof(*b));
    if (!b || !shape_from_desc(setup->desc, &b->z)) {
        free(b);
        snprintf(why, 256, "out of memory");
        return CONTENDER_FAILED;
    }
    b->host = setup->host;
    b->half = half;
    b->pointwise = is_pointwise(&b->z);
    b->crs = (size_t)(b->z.c * b->z.r * b->z.s);
    b->pq = (size_t)(b->z.p * b->z.q);
    b->max_chunk = find_max_chunk(b);
    if (!open_buffers(setup, b) || !choose_chunk(b)) {
        close_state(b);
        snprintf(why, 256, "CLBlast could not run");
        return CONTENDER_FAILED;
    }
    *out = b;
    return CONTENDER_OK;
}

static contender_status open_fp32(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, false, out, why);
}

static contender_status open_fp16(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, true, out, why);
}

extern const contender contender_clblast, contender_clblast16;

const contender contender_clblast = {
    .name = "clblast",
    .summary = "CLBlast, im2col and GEMM, fp32",
    .bound = 1e-4,
    .version = version,
    .open = open_fp32,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};

/* The bound: a sum of depth 1e5 that is rounded to 11 bits at every step is
 * off by some 6 %. */
const contender contender_clblast16 = {
    .name = "clblast16",
    .summary = "CLBlast, im2col and GEMM, fp16 sums, casts included",
    .bound = 0.1,
    .version = version,
    .open = open_fp16,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};
