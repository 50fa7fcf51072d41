/*
 * The kernels, one row each. Within a role the planner takes the cheapest that
 * covers the problem; of equals the first row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "kernel.h"

extern const clconv_kernel clconv_cast;
extern const clconv_kernel clconv_bwd_fused;
extern const clconv_kernel clconv_bwd_data_halo;
extern const clconv_kernel clconv_bwd_data_wgmma;
extern const clconv_kernel clconv_bwd_data_stem;
extern const clconv_kernel clconv_bwd_data_mma;
extern const clconv_kernel clconv_bwd_data_depthwise;
extern const clconv_kernel clconv_bwd_data_strip;
extern const clconv_kernel clconv_bwd_data_depthwise_gpu;
extern const clconv_kernel clconv_bwd_data_grouped;
extern const clconv_kernel clconv_bwd_data_tile;
extern const clconv_kernel clconv_bwd_data_panel;
extern const clconv_kernel clconv_bwd_data_local;
extern const clconv_kernel clconv_bwd_data_generic;
extern const clconv_kernel clconv_bwd_weight_wgmma;
extern const clconv_kernel clconv_bwd_weight_stem;
extern const clconv_kernel clconv_bwd_weight_mma;
extern const clconv_kernel clconv_bwd_weight_depthwise;
extern const clconv_kernel clconv_bwd_weight_strip;
extern const clconv_kernel clconv_bwd_weight_depthwise_gpu;
extern const clconv_kernel clconv_bwd_weight_grouped;
extern const clconv_kernel clconv_bwd_weight_tile;
extern const clconv_kernel clconv_bwd_weight_panel;
extern const clconv_kernel clconv_bwd_weight_local;
extern const clconv_kernel clconv_bwd_weight_generic;
extern const clconv_kernel clconv_forward_generic;

const clconv_kernel *const clconv_kernels[] = {
    &clconv_cast,
    &clconv_bwd_fused,
    &clconv_bwd_data_halo,
    &clconv_bwd_data_wgmma,
    &clconv_bwd_data_stem,
    &clconv_bwd_data_mma,
    &clconv_bwd_data_depthwise,
    &clconv_bwd_data_strip,
    &clconv_bwd_data_depthwise_gpu,
    &clconv_bwd_data_grouped,
    &clconv_bwd_data_tile,
    &clconv_bwd_data_panel,
    &clconv_bwd_data_local,
    &clconv_bwd_data_generic,
    &clconv_bwd_weight_wgmma,
    &clconv_bwd_weight_stem,
    &clconv_bwd_weight_mma,
    &clconv_bwd_weight_depthwise,
    &clconv_bwd_weight_strip,
    &clconv_bwd_weight_depthwise_gpu,
    &clconv_bwd_weight_grouped,
    &clconv_bwd_weight_tile,
    &clconv_bwd_weight_panel,
    &clconv_bwd_weight_local,
    &clconv_bwd_weight_generic,
    &clconv_forward_generic,
};

const int clconv_kernel_count =
    (int)(sizeof clconv_kernels / sizeof *clconv_kernels);

const clconv_kernel *clconv_kernel_find(const char *name, size_t length)
{
    for (int i = 0; i < clconv_kernel_count; ++i)
        if (strlen(clconv_kernels[i]->name) == length &&
            memcmp(clconv_kernels[i]->name, name, length) == 0)
            return clconv_kernels[i];
    return NULL;
}

/* The row of CLCONV_SHAPE_PARAM; -1: it has none. */
static int shape_param(const clconv_kernel *k)
{
    for (int i = 0; i < k->param_count; ++i)
        if (strcmp(k->params[i].name, "shape") == 0)
            return i;
    return -1;
}

bool clconv_kernel_bakes(const clconv_kernel *k, const int *values)
{
    int row = shape_param(k);
    return row >= 0 && values[row] == CLCONV_SHAPE_BAKED;
}

void clconv_kernel_unbake(const clconv_kernel *k, int *values)
{
    int row = shape_param(k);
    if (row >= 0)
        values[row] = CLCONV_SHAPE_ARGUMENTS;
}

char *clconv_kernel_source(const clconv_kernel *k, const clconv_task *t,
                           clconv_text *why)
{
    clconv_emit *e = clconv_emit_new();
    if (!e) {
        clconv_text_puts(why, "out of memory");
        return NULL;
    }
    clconv_param_emit(k->params, k->param_count, t->values, e);
    if (t->device->has_fp16)
        clconv_emit_line(e, "#pragma OPENCL EXTENSION cl_khr_fp16 : enable");
    k->emit(e, t);
    char *source = clconv_emit_take(e);
    if (!source)
        clconv_text_puts(why, clconv_emit_error(e));
    clconv_emit_free(e);
    return source;
}
