/*
 * Convolution by CLBlast: im2col and GEMM, and GEMM and col2im.
 *
 *     dW            = sum over n of dY[n] [K][PQ] * col(X[n]) [CRS][PQ]^T
 *     col(dX[n])    = W [K][CRS]^T * dY[n] [K][PQ]
 *     db            = sums of dY, by GEMV with ones
 *
 * image by image, or with many images in one strided-batched GEMM (dW is then
 * the sum of one matrix an image). A 1x1 filter needs no col. CLBlast's col2im
 * adds to what is there: dX is cleared first. In fp16, tensors are cast into
 * half buffers on the way, dY times 2^10.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_clblast_backward.h"

#include "message.h"

#define HALF_SCALE 1024.0F

/* ---- Clearing -------------------------------------------------------------- */

bool clblast_clear(const clblast_backward *b, cl_mem mem)
{
    const cl_uchar zero = 0;
    size_t bytes = 0;
    cl_int error =
        clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);

    if (!error)
        error = clEnqueueFillBuffer(b->host->queue, mem, &zero, sizeof(zero), 0,
                                    bytes, 0, NULL, NULL);
    if (error)
        message_error("clEnqueueFillBuffer failed with OpenCL error %d",
                      (int)error);
    return error == CL_SUCCESS;
}

bool clblast_clear_outputs(const clblast_backward *b,
                           const cl_mem mem[CONTENDER_TENSORS])
{
    for (int i = CONTENDER_DW; i <= CONTENDER_DX; ++i) {
        if (mem[i] && !clblast_clear(b, mem[i]))
            return false;
    }
    return true;
}

/* ---- The gradients -------------------------------------------------------- */

static size_t images_from(const clblast_backward *b, size_t first)
{
    size_t left = (size_t)b->z.n - first;

    return left < b->chunk ? left : b->chunk;
}

static clblast_matrix image_matrix(cl_mem mem, size_t first, size_t rows,
                                   size_t columns)
{
    return (clblast_matrix){.mem = mem,
                            .offset = first * rows * columns,
                            .columns = columns,
                            .stride = rows * columns};
}

static clblast_columns columns_of(const clblast_backward *b, cl_mem im,
                                  size_t first, size_t images)
{
    return (clblast_columns){.half = b->half,
                             .shape = &b->z,
                             .images = images,
                             .im = im,
                             .col = b->col,
                             .im_offset = first * (size_t)b->z.c *
                                          (size_t)b->z.h * (size_t)b->z.w};
}

/* The images' columns as a batch of [crs][pq]. */
static bool make_columns(const clblast_backward *b, cl_mem x, size_t first,
                         size_t images, clblast_matrix *out)
{
    clblast_columns c = columns_of(b, x, first, images);

    if (b->pointwise) {
        *out = image_matrix(x, first, b->crs, b->pq);
        return true;
    }
    *out = image_matrix(b->col, 0, b->crs, b->pq);
    return clblast_im2col(b->host->queue, &c);
}

/* dw += the chunk's, or = for the first. */
static bool add_chunk_to_dw(const clblast_backward *b, const cl_mem *mem,
                            size_t first)
{
    size_t k = (size_t)b->z.k, images = images_from(b, first);
    clblast_gemm g = {.half = b->half,
                      .m = k,
                      .n = b->crs,
                      .k = b->pq,
                      .batch = images,
                      .a = image_matrix(mem[CONTENDER_DY], first, k, b->pq),
                      .c = image_matrix(mem[CONTENDER_DW], 0, k, b->crs)};
    clblast_sum sum = {.half = b->half,
                       .rows = images,
                       .columns = k * b->crs,
                       .matrix = b->partial,
                       .ones = b->half ? b->half_ones : b->ones,
                       .y = mem[CONTENDER_DW],
                       .transposed = true,
                       .accumulate = first > 0};

    if (!make_columns(b, mem[CONTENDER_X], first, images, &g.b))
        return false;
    g.b.transposed = true;
    if (images == 1) {
        g.accumulate = first > 0;
        return clblast_multiply(b->host->queue, &g);
    }
    g.c.mem = b->partial;
    return clblast_multiply(b->host->queue, &g) &&
           clblast_add_up(b->host->queue, &sum);
}

static bool compute_dx_chunk(const clblast_backward *b, const cl_mem *mem,
                             size_t first)
{
    size_t k = (size_t)b->z.k, images = images_from(b, first);
    clblast_columns c = columns_of(b, mem[CONTENDER_DX], first, images);
    clblast_gemm g = {.half = b->half,
                      .m = b->crs,
                      .n = b->pq,
                      .k = k,
                      .batch = images,
                      .a = image_matrix(mem[CONTENDER_W], 0, k, b->crs),
                      .b = image_matrix(mem[CONTENDER_DY], first, k, b->pq),
                      .c = image_matrix(b->col, 0, b->crs, b->pq)};

    g.a.transposed = true;
    g.a.stride = 0; /* the same filters for every image */
    if (b->pointwise)
        g.c = image_matrix(mem[CONTENDER_DX], first, b->crs, b->pq);
    return clblast_multiply(b->host->queue, &g) &&
           (b->pointwise || clblast_col2im(b->host->queue, &c));
}

/* From the fp32 dY, first for each image. */
static bool compute_db(const clblast_backward *b, const cl_mem *mem)
{
    size_t n = (size_t)b->z.n, k = (size_t)b->z.k;
    clblast_sum of_image = {.rows = n * k,
                            .columns = b->pq,
                            .matrix = mem[CONTENDER_DY],
                            .ones = b->ones,
                            .y = b->image_sums};
    clblast_sum of_batch = {.rows = n,
                            .columns = k,
                            .matrix = b->image_sums,
                            .ones = b->ones,
                            .y = mem[CONTENDER_DB],
                            .transposed = true};

    return clblast_add_up(b->host->queue, &of_image) &&
           clblast_add_up(b->host->queue, &of_batch);
}

static bool compute(const clblast_backward *b, const cl_mem *mem)
{
    if (mem[CONTENDER_DX] && !b->pointwise &&
        !clblast_clear(b, mem[CONTENDER_DX]))
        return false;
    for (size_t n = 0; n < (size_t)b->z.n; n += b->chunk) {
        if (mem[CONTENDER_DW] && !add_chunk_to_dw(b, mem, n))
            return false;
        if (mem[CONTENDER_DX] && !compute_dx_chunk(b, mem, n))
            return false;
    }
    return true;
}

/* ---- Half precision ------------------------------------------------------- */

static bool cast_inputs(clblast_backward *b, const cl_mem *mem)
{
    for (int i = CONTENDER_X; i <= CONTENDER_DY; ++i) {
        float scale = i == CONTENDER_DY ? HALF_SCALE : 1;

        if (b->halves[i] && !clblast_cast_to_half(&b->cast, mem[i], b->halves[i],
                                                  b->buffers.elements[i], scale))
            return false;
    }
    return true;
}

static bool cast_outputs(clblast_backward *b, const cl_mem *mem)
{
    for (int i = CONTENDER_DW; i <= CONTENDER_DX; ++i) {
        if (b->halves[i] &&
            !clblast_cast_from_half(&b->cast, b->halves[i], mem[i],
                                    b->buffers.elements[i], 1 / HALF_SCALE))
            return false;
    }
    return true;
}

static bool compute_half(clblast_backward *b, const cl_mem *mem)
{
    return cast_inputs(b, mem) && compute(b, b->halves) && cast_outputs(b, mem);
}

/* ---- One set -------------------------------------------------------------- */

bool clblast_backward_enqueue(clblast_backward *b, int set)
{
    const cl_mem *mem = b->buffers.mem[set];

    if (mem[CONTENDER_DB] && !compute_db(b, mem))
        return false;
    return b->half ? compute_half(b, mem) : compute(b, mem);
}
