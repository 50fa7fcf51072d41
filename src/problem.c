/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "problem.h"

#include <inttypes.h>
#include <string.h>

#include "status.h"

void clconv_desc_init(clconv_desc *desc)
{
    if (!desc)
        return;
    *desc = (clconv_desc){
        .struct_size = sizeof *desc,
        .n = 1,
        .stride_h = 1,
        .stride_w = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .scale_log2 = CLCONV_SCALE_LOG2_DEFAULT,
        .alignment = 16,
    };
}

/* ---- Validation ------------------------------------------------------- */

/* Kernels index one dimension with an int, and step beyond its end by a tile
 * or a vector at most. */
#define INT_LIMIT (INT32_MAX - 65535)
#define ELEMENT_LIMIT ((int64_t)1 << 58) /* so that bytes fit as well */

#define INVALID(...) clconv_fail(CLCONV_INVALID_ARGUMENT, __VA_ARGS__)

static clconv_status check_range(const char *field, int64_t value, int64_t min,
                                 int64_t max)
{
    if (value >= min && value <= max)
        return CLCONV_OK;
    return INVALID("desc.%s is %" PRId64 "; it must be in [%" PRId64
                   ", %" PRId64 "]",
                   field, value, min, max);
}

typedef struct range {
    const char *field;
    int64_t value, min, max;
} range;

static clconv_status check_ranges(const range *ranges, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const range *r = &ranges[i];
        clconv_status status = check_range(r->field, r->value, r->min, r->max);
        if (status != CLCONV_OK)
            return status;
    }
    return CLCONV_OK;
}

/* clang-format off */
#define RANGE(field, min, max) {#field, (int64_t)d->field, min, max}
/* clang-format on */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static clconv_status check_fields(const clconv_desc *d)
{
    const range ranges[] = {
        RANGE(n, 0, INT_LIMIT),
        RANGE(c, 1, INT_LIMIT),
        RANGE(h, 1, INT_LIMIT),
        RANGE(w, 1, INT_LIMIT),
        RANGE(k, 1, INT_LIMIT),
        RANGE(r, 1, INT_LIMIT),
        RANGE(s, 1, INT_LIMIT),
        RANGE(stride_h, 1, INT32_MAX),
        RANGE(stride_w, 1, INT32_MAX),
        RANGE(pad_top, 0, INT_LIMIT),
        RANGE(pad_bottom, 0, INT_LIMIT),
        RANGE(pad_left, 0, INT_LIMIT),
        RANGE(pad_right, 0, INT_LIMIT),
        RANGE(dilation_h, 1, INT_LIMIT),
        RANGE(dilation_w, 1, INT_LIMIT),
        RANGE(groups, 1, d->c),
        RANGE(layout, CLCONV_NCHW, CLCONV_NHWC),
        RANGE(math, CLCONV_MIXED, CLCONV_FP32),
        RANGE(x_type, CLCONV_F32, CLCONV_F16),
        RANGE(w_type, CLCONV_F32, CLCONV_F16),
        RANGE(dy_type, CLCONV_F32, CLCONV_F16),
        RANGE(dw_type, CLCONV_F32, CLCONV_F16),
        RANGE(db_type, CLCONV_F32, CLCONV_F16),
        RANGE(dx_type, CLCONV_F32, CLCONV_F16),
        RANGE(scale, CLCONV_SCALE_FIXED, CLCONV_SCALE_DYNAMIC),
        RANGE(scale_log2, -CLCONV_LOG2_MAX, CLCONV_LOG2_MAX),
        RANGE(dy_log2, -CLCONV_LOG2_MAX, CLCONV_LOG2_MAX),
        RANGE(dx_log2, -CLCONV_LOG2_MAX, CLCONV_LOG2_MAX),
        RANGE(overflow, CLCONV_SATURATE, CLCONV_TO_INF),
        RANGE(alignment, 2, 4096),
        RANGE(y_type, CLCONV_F32, CLCONV_F16),
        RANGE(b_type, CLCONV_F32, CLCONV_F16),
        RANGE(activation, CLCONV_IDENTITY, CLCONV_RELU),
    };
    return check_ranges(ranges, COUNT(ranges));
}

static bool all_fp16(const clconv_desc *d)
{
    return d->x_type == CLCONV_F16 && d->w_type == CLCONV_F16 &&
           d->dy_type == CLCONV_F16 && d->dw_type == CLCONV_F16 &&
           d->db_type == CLCONV_F16 && d->dx_type == CLCONV_F16;
}

static clconv_status check_combinations(const clconv_desc *d)
{
    if (d->c % d->groups || d->k % d->groups)
        return INVALID("desc.groups is %" PRId64 "; it must divide c = %" PRId64
                       " and k = %" PRId64,
                       d->groups, d->c, d->k);
    if (d->alignment & (d->alignment - 1))
        return INVALID("desc.alignment is %zu; it must be a power of two",
                       d->alignment);
    if (d->alignment < 4 && !all_fp16(d))
        return INVALID("desc.alignment is %zu; it must be at least 4 where a "
                       "tensor is fp32",
                       d->alignment);
    return CLCONV_OK;
}

/* One axis of the output shape. All inputs are below 2^31, so that no sum or
 * product of two leaves 64 bits. */
static clconv_status output_size(const char *axis, int64_t in, int64_t before,
                                 int64_t after, int64_t filter,
                                 int64_t dilation, int64_t stride, int64_t *out)
{
    int64_t padded = in + before + after;
    if (padded > INT_LIMIT)
        return INVALID("desc: the padded %s is %" PRId64 "; it must be at "
                       "most %d",
                       axis, padded, INT_LIMIT);
    int64_t extent = dilation * (filter - 1) + 1;
    if (extent > padded)
        return INVALID("desc: the filter spans %" PRId64
                       " of %s with its dilation, the padded input only "
                       "%" PRId64,
                       extent, axis, padded);
    *out = (padded - extent) / stride + 1;
    return CLCONV_OK;
}

static clconv_status output_shape(const clconv_desc *d, int64_t *p, int64_t *q)
{
    clconv_status status = output_size("height", d->h, d->pad_top, d->pad_bottom,
                                       d->r, d->dilation_h, d->stride_h, p);
    if (status != CLCONV_OK)
        return status;
    return output_size("width", d->w, d->pad_left, d->pad_right, d->s,
                       d->dilation_w, d->stride_w, q);
}

static clconv_status check_elements(const char *tensor, int64_t a, int64_t b,
                                    int64_t c, int64_t d)
{
    /* A double tells 2^58 from anything that overflows an int64_t. */
    double elements = (double)a * (double)b * (double)c * (double)d;
    if (elements < (double)ELEMENT_LIMIT)
        return CLCONV_OK;
    return INVALID("desc: %s would have %.3g elements; at most 2^58 can be "
                   "addressed",
                   tensor, elements);
}

static clconv_status check_sizes(const clconv_desc *d, int64_t p, int64_t q)
{
    clconv_status status = check_elements("x", d->n, d->c, d->h, d->w);
    if (status == CLCONV_OK)
        status = check_elements("w", d->k, d->c / d->groups, d->r, d->s);
    if (status == CLCONV_OK)
        status = check_elements("dy", d->n, d->k, p, q);
    return status;
}

clconv_status clconv_problem_read_desc(const clconv_desc *desc, clconv_desc *out)
{
    if (!desc)
        return INVALID("desc is NULL");
    if (desc->struct_size < offsetof(clconv_desc, layout) ||
        desc->struct_size > sizeof *desc)
        return INVALID("desc.struct_size is %zu; call clconv_desc_init() first",
                       desc->struct_size);
    clconv_desc_init(out);
    memcpy(out, desc, desc->struct_size);
    out->struct_size = sizeof *out;
    return CLCONV_OK;
}

static clconv_status validate(const clconv_desc *desc, clconv_desc *d,
                              int64_t *p, int64_t *q)
{
    clconv_status status = clconv_problem_read_desc(desc, d);
    if (status == CLCONV_OK)
        status = check_fields(d);
    if (status == CLCONV_OK)
        status = check_combinations(d);
    if (status == CLCONV_OK)
        status = output_shape(d, p, q);
    if (status == CLCONV_OK)
        status = check_sizes(d, *p, *q);
    return status;
}

clconv_status clconv_desc_validate(const clconv_desc *desc)
{
    clconv_desc d;
    int64_t p, q;
    return validate(desc, &d, &p, &q);
}

clconv_status clconv_desc_output_shape(const clconv_desc *desc, int64_t *p,
                                       int64_t *q)
{
    if (!p || !q)
        return INVALID("%s is NULL", p ? "q" : "p");
    clconv_desc d;
    int64_t height, width;
    clconv_status status = validate(desc, &d, &height, &width);
    if (status != CLCONV_OK)
        return status;
    *p = height;
    *q = width;
    return CLCONV_OK;
}

/* ---- What follows from the numbers ------------------------------------ */

static void fill(const clconv_desc *d, int64_t p, int64_t q, clconv_problem *out)
{
    *out = (clconv_problem){
        .n = d->n,
        .c = d->c,
        .h = d->h,
        .w = d->w,
        .k = d->k,
        .r = d->r,
        .s = d->s,
        .p = p,
        .q = q,
        .stride_h = d->stride_h,
        .stride_w = d->stride_w,
        .pad_top = d->pad_top,
        .pad_bottom = d->pad_bottom,
        .pad_left = d->pad_left,
        .pad_right = d->pad_right,
        .dilation_h = d->dilation_h,
        .dilation_w = d->dilation_w,
        .groups = d->groups,
        .group_c = d->c / d->groups,
        .group_k = d->k / d->groups,
        .layout = d->layout,
        .math = d->math,
        .type =
            {
                [CLCONV_DY] = d->dy_type,
                [CLCONV_X] = d->x_type,
                [CLCONV_W] = d->w_type,
                [CLCONV_DW] = d->dw_type,
                [CLCONV_DB] = d->db_type,
                [CLCONV_DX] = d->dx_type,
                [CLCONV_Y] = d->y_type,
                [CLCONV_B] = d->b_type,
            },
        .scale_log2 = d->scale_log2,
        .dy_log2 = d->dy_log2,
        .dx_log2 = d->dx_log2,
        .overflow = d->overflow,
        .activation = d->activation,
        .alignment = d->alignment,
    };
}

clconv_status clconv_problem_init(const clconv_desc *desc, clconv_problem *out)
{
    clconv_desc d;
    int64_t p, q;
    clconv_status status = validate(desc, &d, &p, &q);
    if (status != CLCONV_OK)
        return status;
    if (d.scale == CLCONV_SCALE_DYNAMIC)
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "desc.scale: a dynamic scale is not supported yet; "
                           "use CLCONV_SCALE_FIXED");
    fill(&d, p, q, out);
    return CLCONV_OK;
}

clconv_status clconv_problem_check_forward(const clconv_problem *p)
{
    bool all_fp16 =
        p->type[CLCONV_Y] == CLCONV_F16 && p->type[CLCONV_B] == CLCONV_F16;
    if (p->alignment >= 4 || all_fp16)
        return CLCONV_OK;
    return INVALID("desc.alignment is %zu; it must be at least 4 where y or b "
                   "is fp32",
                   p->alignment);
}

const char *clconv_tensor_name(clconv_tensor tensor)
{
    static const char *const names[CLCONV_TENSORS] = {
        [CLCONV_DY] = "dy", [CLCONV_X] = "x",   [CLCONV_W] = "w",
        [CLCONV_DW] = "dw", [CLCONV_DB] = "db", [CLCONV_DX] = "dx",
        [CLCONV_Y] = "y",   [CLCONV_B] = "b",
    };
    return names[tensor];
}

bool clconv_tensor_is_input(clconv_tensor tensor)
{
    return tensor <= CLCONV_W || tensor == CLCONV_B;
}

clconv_problem clconv_problem_merge_groups(const clconv_problem *p,
                                           int64_t merge)
{
    clconv_problem merged = *p;
    merged.groups /= merge;
    merged.group_c *= merge;
    merged.group_k *= merge;
    return merged;
}

int64_t clconv_problem_elements(const clconv_problem *p, clconv_tensor tensor)
{
    switch (tensor) {
    case CLCONV_DY:
    case CLCONV_Y: return p->n * p->k * p->p * p->q;
    case CLCONV_X:
    case CLCONV_DX: return p->n * p->c * p->h * p->w;
    case CLCONV_W:
    case CLCONV_DW: return p->k * p->group_c * p->r * p->s;
    case CLCONV_DB:
    case CLCONV_B: return p->k;
    case CLCONV_TENSORS: break;
    }
    return 0;
}

size_t clconv_problem_bytes(const clconv_problem *p, clconv_tensor tensor)
{
    size_t size = p->type[tensor] == CLCONV_F16 ? 2 : 4;
    return (size_t)clconv_problem_elements(p, tensor) * size;
}

/* The strides of a dense tensor with these sizes of channel, row, column. */
static clconv_strides dense(clconv_layout layout, int64_t channels,
                            int64_t rows, int64_t columns)
{
    if (layout == CLCONV_NCHW)
        return (clconv_strides){channels * rows * columns, rows * columns,
                                columns, 1};
    return (clconv_strides){channels * rows * columns, 1, columns * channels,
                            channels};
}

clconv_strides clconv_problem_strides(const clconv_problem *p,
                                      clconv_tensor tensor)
{
    switch (tensor) {
    case CLCONV_DY:
    case CLCONV_Y: return dense(p->layout, p->k, p->p, p->q);
    case CLCONV_X:
    case CLCONV_DX: return dense(p->layout, p->c, p->h, p->w);
    case CLCONV_W:
    case CLCONV_DW: return dense(p->layout, p->group_c, p->r, p->s);
    case CLCONV_DB:
    case CLCONV_B:
    case CLCONV_TENSORS: break;
    }
    return (clconv_strides){0, 1, 0, 0};
}

bool clconv_problem_casts(const clconv_problem *p, clconv_tensor tensor)
{
    return p->math == CLCONV_MIXED && tensor <= CLCONV_W &&
           p->type[tensor] == CLCONV_F32;
}

int clconv_problem_cast_log2(const clconv_problem *p, clconv_tensor tensor)
{
    bool scaled = tensor == CLCONV_DY && clconv_problem_casts(p, CLCONV_DY);
    return scaled ? p->scale_log2 : 0;
}

int clconv_problem_epilogue_log2(const clconv_problem *p, clconv_tensor tensor)
{
    int undo = -p->dy_log2 - clconv_problem_cast_log2(p, CLCONV_DY);
    switch (tensor) {
    case CLCONV_DW: return undo;
    case CLCONV_DX: return undo + p->dx_log2;
    case CLCONV_DB: /* summed from dY as the caller gave it */
        return -p->dy_log2;
    case CLCONV_DY:
    case CLCONV_X:
    case CLCONV_W:
    case CLCONV_Y:
    case CLCONV_B:
    case CLCONV_TENSORS: break;
    }
    return 0;
}

double clconv_problem_flops(const clconv_problem *p)
{
    return 2.0 * (double)(p->n * p->p) * (double)(p->q * p->k) *
           (double)p->group_c * (double)(p->r * p->s);
}
