/*
 * A flow is a list of steps over slots: a slot is one of the caller's tensors,
 * which differ from run to run, or a buffer of the flow's own.
 *
 * The casts of bf16 are part of the reorders. Gradients leave the convolution
 * in fp32, so that nothing is rounded twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_onednn_flow.h"

#include <string.h>

#include "shape.h"

/* ---- The problem ---------------------------------------------------------- */

/* A dense tensor of the dimensions a, b, rows, columns, stored in this order
 * or with b innermost. */
static bool describe_image(clconv_layout layout, const dnnl_dims_t dims,
                           dnnl_memory_desc_t *out)
{
    const dnnl_dim_t b = dims[1], rows = dims[2], columns = dims[3];
    const dnnl_dims_t nchw = {b * rows * columns, rows * columns, columns, 1};
    const dnnl_dims_t nhwc = {b * rows * columns, 1, columns * b, b};

    return dnnl_memory_desc_init_by_strides(
               out, 4, dims, dnnl_f32, layout == CLCONV_NCHW ? nchw : nhwc) ==
           dnnl_success;
}

/* oneDNN's filters have the group as a dimension of its own. */
static bool describe_filter(clconv_layout layout, const shape *z,
                            dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {z->k, z->cg, z->r, z->s};
    dnnl_dims_t grouped = {z->groups, z->kg, z->cg, z->r, z->s};
    dnnl_dims_t strides;

    if (!describe_image(layout, dims, out))
        return false;
    if (z->groups == 1)
        return true;
    memcpy(strides + 1, out->format_desc.blocking.strides,
           4 * sizeof(strides[0]));
    strides[0] = strides[1] * z->kg;
    return dnnl_memory_desc_init_by_strides(out, 5, grouped, dnnl_f32,
                                            strides) == dnnl_success;
}

static void set_pair(dnnl_dims_t dims, int64_t height, int64_t width)
{
    dims[0] = height;
    dims[1] = width;
}

bool onednn_problem_init(const clconv_desc *desc, unsigned ops,
                         onednn_problem *out)
{
    onednn_problem p = {.ops = ops};
    dnnl_memory_desc_t *user = p.user;
    const dnnl_dims_t filters = {desc->k}, dense = {1};
    shape z;

    if (!shape_from_desc(desc, &z))
        return false;
    const dnnl_dims_t x = {z.n, z.c, z.h, z.w}, dy = {z.n, z.k, z.p, z.q};
    set_pair(p.strides, z.stride_h, z.stride_w);
    set_pair(p.dilates, z.dilation_h - 1, z.dilation_w - 1);
    set_pair(p.padding_begin, z.pad_top, z.pad_left);
    set_pair(p.padding_end, z.pad_bottom, z.pad_right);
    if (!describe_image(desc->layout, x, &user[CONTENDER_X]) ||
        !describe_image(desc->layout, dy, &user[CONTENDER_DY]) ||
        !describe_filter(desc->layout, &z, &user[CONTENDER_W]) ||
        dnnl_memory_desc_init_by_strides(&user[CONTENDER_DB], 1, filters,
                                         dnnl_f32, dense) != dnnl_success)
        return false;
    user[CONTENDER_DX] = user[CONTENDER_X];
    user[CONTENDER_DW] = user[CONTENDER_W];
    *out = p;
    return true;
}

/* ---- Primitives ----------------------------------------------------------- */

/* What the primitive is asked for: the caller's layout, or any. */
static dnnl_memory_desc_t wish(const dnnl_memory_desc_t *user,
                               dnnl_data_type_t type, bool plain)
{
    dnnl_memory_desc_t md = *user;

    md.data_type = type;
    if (!plain) {
        md.format_kind = dnnl_format_kind_any;
        memset(&md.format_desc, 0, sizeof(md.format_desc));
    }
    return md;
}

static bool is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;

    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) ==
               dnnl_success &&
           strncmp(name, "ref", 3) == 0;
}

static dnnl_status_t create_convolution(dnnl_engine_t engine,
                                        const dnnl_convolution_desc_t *desc,
                                        bool plain, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t pd;
    dnnl_status_t status =
        dnnl_primitive_desc_create(&pd, desc, NULL, engine, NULL);

    if (status)
        return status;
    if (plain && is_reference(pd)) {
        dnnl_primitive_desc_destroy(pd);
        return dnnl_unimplemented;
    }
    *out = pd;
    return dnnl_success;
}

static dnnl_status_t create_bwd_weight(dnnl_engine_t engine,
                                       const onednn_problem *p,
                                       const onednn_way *way,
                                       dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *user = p->user;
    bool plain = way->plain_dw;
    dnnl_memory_desc_t x = wish(&user[CONTENDER_X], way->type, plain);
    dnnl_memory_desc_t dy = wish(&user[CONTENDER_DY], way->type, plain);
    dnnl_memory_desc_t dw = wish(&user[CONTENDER_DW], dnnl_f32, plain);
    const dnnl_memory_desc_t *db =
        p->ops & CLCONV_OP_DB ? &user[CONTENDER_DB] : NULL;
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &desc, dnnl_convolution_direct, &x, &dw, db, &dy, p->strides,
        p->dilates, p->padding_begin, p->padding_end);

    return status ? status : create_convolution(engine, &desc, plain, out);
}

static dnnl_status_t create_bwd_data(dnnl_engine_t engine,
                                     const onednn_problem *p,
                                     const onednn_way *way,
                                     dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *user = p->user;
    bool plain = way->plain_dx;
    dnnl_memory_desc_t dx = wish(&user[CONTENDER_DX], dnnl_f32, plain);
    dnnl_memory_desc_t w = wish(&user[CONTENDER_W], way->type, plain);
    dnnl_memory_desc_t dy = wish(&user[CONTENDER_DY], way->type, plain);
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &desc, dnnl_convolution_direct, &dx, &w, &dy, p->strides, p->dilates,
        p->padding_begin, p->padding_end);

    return status ? status : create_convolution(engine, &desc, plain, out);
}

/* ---- Steps ---------------------------------------------------------------- */

/* Takes nothing of pd. */
static dnnl_status_t add_step(onednn_flow *flow, const_dnnl_primitive_desc_t pd)
{
    dnnl_status_t status =
        dnnl_primitive_create(&flow->steps[flow->count].primitive, pd);

    if (!status)
        ++flow->count;
    return status;
}

/* To the last step. */
static void add_arg(onednn_flow *flow, int arg, int slot)
{
    onednn_step *step = &flow->steps[flow->count - 1];

    step->args[step->count].arg = arg;
    step->args[step->count].slot = slot;
    ++step->count;
}

static dnnl_status_t add_reorder(onednn_flow *flow,
                                 const dnnl_memory_desc_t *from, int from_slot,
                                 const dnnl_memory_desc_t *to, int to_slot)
{
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &pd, from, flow->engine, to, flow->engine, NULL);

    if (status)
        return status;
    status = add_step(flow, pd);
    dnnl_primitive_desc_destroy(pd);
    if (!status) {
        add_arg(flow, DNNL_ARG_FROM, from_slot);
        add_arg(flow, DNNL_ARG_TO, to_slot);
    }
    return status;
}

static dnnl_status_t new_between(onednn_flow *flow, int slot,
                                 const dnnl_memory_desc_t *md)
{
    return dnnl_memory_create(&flow->between[slot], md, flow->engine,
                              DNNL_MEMORY_ALLOCATE);
}

/* Does the flow hold such a tensor in slot already? */
static bool holds(const onednn_flow *flow, int slot,
                  const dnnl_memory_desc_t *md)
{
    const dnnl_memory_desc_t *held = NULL;

    return flow->between[slot] &&
           dnnl_memory_get_memory_desc(flow->between[slot], &held) ==
               dnnl_success &&
           dnnl_memory_desc_equal(held, md);
}

/* An input as md wants it; *slot says where it is then: in the caller's own,
 * or reordered into between. */
static dnnl_status_t add_input(onednn_flow *flow, const onednn_problem *p,
                               int user, int between,
                               const dnnl_memory_desc_t *md, int *slot)
{
    dnnl_status_t status;

    *slot = between;
    if (dnnl_memory_desc_equal(&p->user[user], md)) {
        *slot = user;
        return dnnl_success;
    }
    status = new_between(flow, between, md);
    return status ? status
                  : add_reorder(flow, &p->user[user], user, md, between);
}

/* The step that computes an output as md says, named by arg; pd is the
 * convolution. */
static dnnl_status_t add_convolution(onednn_flow *flow, const onednn_problem *p,
                                     const_dnnl_primitive_desc_t pd, int arg,
                                     int user, int between,
                                     const dnnl_memory_desc_t *md, int *slot)
{
    dnnl_status_t status = dnnl_success;

    *slot = user;
    if (!dnnl_memory_desc_equal(&p->user[user], md)) {
        *slot = between;
        status = new_between(flow, between, md);
    }
    if (!status)
        status = add_step(flow, pd);
    if (!status)
        add_arg(flow, arg, *slot);
    return status;
}

static dnnl_status_t add_bwd_weight(onednn_flow *flow, const onednn_problem *p,
                                    const_dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t *x, *dy, *dw;
    int x_slot, dy_slot, dw_slot;
    dnnl_status_t status;

    x = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
    dy = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0);
    dw = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
    status = add_input(flow, p, CONTENDER_X, ONEDNN_X_IN, x, &x_slot);
    if (!status)
        status = add_input(flow, p, CONTENDER_DY, ONEDNN_DY_IN, dy, &dy_slot);
    if (!status)
        status = add_convolution(flow, p, pd, DNNL_ARG_DIFF_WEIGHTS,
                                 CONTENDER_DW, ONEDNN_DW_OUT, dw, &dw_slot);
    if (status)
        return status;
    add_arg(flow, DNNL_ARG_SRC, x_slot);
    add_arg(flow, DNNL_ARG_DIFF_DST, dy_slot);
    if (p->ops & CLCONV_OP_DB)
        add_arg(flow, DNNL_ARG_DIFF_BIAS, CONTENDER_DB);
    if (dw_slot != CONTENDER_DW)
        status = add_reorder(flow, dw, dw_slot, &p->user[CONTENDER_DW],
                             CONTENDER_DW);
    return status;
}

static dnnl_status_t add_bwd_data(onednn_flow *flow, const onednn_problem *p,
                                  const_dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t *w, *dy, *dx;
    int w_slot, dy_slot = ONEDNN_DY_IN, dx_slot;
    dnnl_status_t status;

    w = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dy = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0);
    dx = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0);
    status = add_input(flow, p, CONTENDER_W, ONEDNN_W_IN, w, &w_slot);
    if (!status && !holds(flow, ONEDNN_DY_IN, dy))
        status = add_input(flow, p, CONTENDER_DY, ONEDNN_DY_IN_DX, dy, &dy_slot);
    if (!status)
        status = add_convolution(flow, p, pd, DNNL_ARG_DIFF_SRC, CONTENDER_DX,
                                 ONEDNN_DX_OUT, dx, &dx_slot);
    if (status)
        return status;
    add_arg(flow, DNNL_ARG_WEIGHTS, w_slot);
    add_arg(flow, DNNL_ARG_DIFF_DST, dy_slot);
    if (dx_slot != CONTENDER_DX)
        status = add_reorder(flow, dx, dx_slot, &p->user[CONTENDER_DX],
                             CONTENDER_DX);
    return status;
}

/* ---- The flow ------------------------------------------------------------- */

static dnnl_status_t fill_flow(onednn_flow *flow, const onednn_problem *p,
                               const onednn_way *way)
{
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = dnnl_success;

    if (p->ops & CLCONV_OP_DW) {
        status = create_bwd_weight(flow->engine, p, way, &pd);
        if (status)
            return status;
        status = add_bwd_weight(flow, p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    if (!status && p->ops & CLCONV_OP_DX) {
        status = create_bwd_data(flow->engine, p, way, &pd);
        if (status)
            return status;
        status = add_bwd_data(flow, p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    return status;
}

dnnl_status_t onednn_flow_open(dnnl_engine_t engine,
                               const onednn_problem *problem,
                               const onednn_way *way, onednn_flow *out)
{
    onednn_flow flow = {.engine = engine};
    dnnl_status_t status = fill_flow(&flow, problem, way);

    if (status)
        onednn_flow_close(&flow);
    else
        *out = flow;
    return status;
}

dnnl_status_t onednn_flow_run(const onednn_flow *flow, dnnl_stream_t stream,
                              const dnnl_memory_t user[CONTENDER_TENSORS])
{
    for (int i = 0; i < flow->count; ++i) {
        const onednn_step *step = &flow->steps[i];
        dnnl_exec_arg_t args[ONEDNN_MAX_ARGS];
        dnnl_status_t status;

        for (int j = 0; j < step->count; ++j) {
            int slot = step->args[j].slot;

            args[j].arg = step->args[j].arg;
            args[j].memory =
                slot < CONTENDER_TENSORS ? user[slot] : flow->between[slot];
        }
        status =
            dnnl_primitive_execute(step->primitive, stream, step->count, args);
        if (status)
            return status;
    }
    return dnnl_success;
}

void onednn_flow_close(onednn_flow *flow)
{
    for (int i = 0; i < flow->count; ++i)
        dnnl_primitive_destroy(flow->steps[i].primitive);
    for (int i = 0; i < ONEDNN_SLOTS; ++i) {
        if (flow->between[i])
            dnnl_memory_destroy(flow->between[i]);
    }
    *flow = (onednn_flow){0};
}
