/*
 * To CLBlast the images of a batch are more channels of one image: one launch
 * takes them all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_clblast_blas.h"

#include "message.h"

static const cl_half half_one = 0x3C00;

static bool ok(CLBlastStatusCode status, const char *routine)
{
    if (status != CLBlastSuccess)
        message_error("CLBlast: %s failed with status %d", routine, (int)status);
    return status == CLBlastSuccess;
}

static CLBlastTranspose transpose(bool transposed)
{
    return transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

/* ---- GEMM ----------------------------------------------------------------- */

static CLBlastStatusCode multiply_float(cl_command_queue queue,
                                        const clblast_gemm *g)
{
    const clblast_matrix *a = &g->a, *b = &g->b, *c = &g->c;
    float beta = g->accumulate ? 1 : 0;

    if (g->batch == 1)
        return CLBlastSgemm(CLBlastLayoutRowMajor, transpose(a->transposed),
                            transpose(b->transposed), g->m, g->n, g->k, 1,
                            a->mem, a->offset, a->columns, b->mem, b->offset,
                            b->columns, beta, c->mem, c->offset, c->columns,
                            &queue, NULL);
    return CLBlastSgemmStridedBatched(
        CLBlastLayoutRowMajor, transpose(a->transposed),
        transpose(b->transposed), g->m, g->n, g->k, 1, a->mem, a->offset,
        a->columns, a->stride, b->mem, b->offset, b->columns, b->stride, beta,
        c->mem, c->offset, c->columns, c->stride, g->batch, &queue, NULL);
}

static CLBlastStatusCode multiply_half(cl_command_queue queue,
                                       const clblast_gemm *g)
{
    const clblast_matrix *a = &g->a, *b = &g->b, *c = &g->c;
    cl_half beta = g->accumulate ? half_one : 0;

    if (g->batch == 1)
        return CLBlastHgemm(CLBlastLayoutRowMajor, transpose(a->transposed),
                            transpose(b->transposed), g->m, g->n, g->k,
                            half_one, a->mem, a->offset, a->columns, b->mem,
                            b->offset, b->columns, beta, c->mem, c->offset,
                            c->columns, &queue, NULL);
    return CLBlastHgemmStridedBatched(
        CLBlastLayoutRowMajor, transpose(a->transposed),
        transpose(b->transposed), g->m, g->n, g->k, half_one, a->mem, a->offset,
        a->columns, a->stride, b->mem, b->offset, b->columns, b->stride, beta,
        c->mem, c->offset, c->columns, c->stride, g->batch, &queue, NULL);
}

bool clblast_multiply(cl_command_queue queue, const clblast_gemm *g)
{
    return ok(g->half ? multiply_half(queue, g) : multiply_float(queue, g),
              "GEMM");
}

/* ---- GEMV ----------------------------------------------------------------- */

bool clblast_add_up(cl_command_queue queue, const clblast_sum *s)
{
    CLBlastTranspose t = transpose(s->transposed);
    CLBlastStatusCode status;

    if (s->half)
        status = CLBlastHgemv(CLBlastLayoutRowMajor, t, s->rows, s->columns,
                              half_one, s->matrix, 0, s->columns, s->ones, 0, 1,
                              s->accumulate ? half_one : 0, s->y, 0, 1, &queue,
                              NULL);
    else
        status = CLBlastSgemv(CLBlastLayoutRowMajor, t, s->rows, s->columns, 1,
                              s->matrix, 0, s->columns, s->ones, 0, 1,
                              s->accumulate ? 1 : 0, s->y, 0, 1, &queue, NULL);
    return ok(status, "GEMV");
}

/* ---- im2col and col2im ---------------------------------------------------- */

bool clblast_im2col(cl_command_queue queue, const clblast_columns *c)
{
    const shape *z = c->shape;
    CLBlastStatusCode (*routine)(CLBlastKernelMode, size_t, size_t, size_t,
                                 size_t, size_t, size_t, size_t, size_t, size_t,
                                 size_t, size_t, cl_mem, size_t, cl_mem, size_t,
                                 cl_command_queue *, cl_event *) =
        c->half ? CLBlastHim2col : CLBlastSim2col;

    return ok(routine(CLBlastKernelModeCrossCorrelation, c->images * (size_t)z->c,
                      (size_t)z->h, (size_t)z->w, (size_t)z->r, (size_t)z->s,
                      (size_t)z->pad_top, (size_t)z->pad_left,
                      (size_t)z->stride_h, (size_t)z->stride_w,
                      (size_t)z->dilation_h, (size_t)z->dilation_w, c->im,
                      c->im_offset, c->col, 0, &queue, NULL),
              "im2col");
}

bool clblast_col2im(cl_command_queue queue, const clblast_columns *c)
{
    const shape *z = c->shape;
    CLBlastStatusCode (*routine)(CLBlastKernelMode, size_t, size_t, size_t,
                                 size_t, size_t, size_t, size_t, size_t, size_t,
                                 size_t, size_t, cl_mem, size_t, cl_mem, size_t,
                                 cl_command_queue *, cl_event *) =
        c->half ? CLBlastHcol2im : CLBlastScol2im;

    return ok(routine(CLBlastKernelModeCrossCorrelation, c->images * (size_t)z->c,
                      (size_t)z->h, (size_t)z->w, (size_t)z->r, (size_t)z->s,
                      (size_t)z->pad_top, (size_t)z->pad_left,
                      (size_t)z->stride_h, (size_t)z->stride_w,
                      (size_t)z->dilation_h, (size_t)z->dilation_w, c->col, 0,
                      c->im, c->im_offset, &queue, NULL),
              "col2im");
}
