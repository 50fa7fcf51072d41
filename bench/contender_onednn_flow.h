/*
 * One way to compute the gradients with oneDNN 2.x on the CPU, from plain
 * tensors to plain tensors: convolution primitives, and the reorders that
 * their layouts call for.
 *
 *     onednn_problem_init(&desc, &problem);
 *     onednn_flow_open(engine, &problem, &way, &flow)  // compiles
 *     onednn_flow_run(&flow, stream, user)             // enqueues
 *     onednn_flow_close(&flow);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_ONEDNN_FLOW_H
#define CONTENDER_ONEDNN_FLOW_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#include "contender_buffers.h"

/* The convolution in oneDNN's terms, and the caller's tensors: fp32, dense,
 * indexed by CONTENDER_X and so on. */
typedef struct onednn_problem {
    unsigned ops;
    dnnl_dims_t strides, dilates, padding_begin, padding_end;
    dnnl_memory_desc_t user[CONTENDER_TENSORS];
} onednn_problem;

bool onednn_problem_init(const clconv_desc *desc, unsigned ops,
                         onednn_problem *out);

/* Plain: the primitive works in the caller's layout. Otherwise it chooses its
 * own, and reorders stand before and behind it. */
typedef struct onednn_way {
    dnnl_data_type_t type; /* of what is multiplied */
    bool plain_dw, plain_dx;
} onednn_way;

/* The caller's tensors, then what lies between the steps. */
enum {
    ONEDNN_X_IN = CONTENDER_TENSORS,
    ONEDNN_W_IN,
    ONEDNN_DY_IN, /* for dW, and for dX if it asks for the same layout */
    ONEDNN_DY_IN_DX,
    ONEDNN_DW_OUT,
    ONEDNN_DX_OUT,
    ONEDNN_SLOTS
};

enum { ONEDNN_MAX_STEPS = 8, ONEDNN_MAX_ARGS = 4 };

typedef struct onednn_step {
    dnnl_primitive_t primitive;
    int count;
    struct {
        int arg;  /* DNNL_ARG_... */
        int slot; /* CONTENDER_... or ONEDNN_... */
    } args[ONEDNN_MAX_ARGS];
} onednn_step;

typedef struct onednn_flow {
    dnnl_engine_t engine;
    onednn_step steps[ONEDNN_MAX_STEPS];
    int count;
    dnnl_memory_t between[ONEDNN_SLOTS]; /* the caller's are NULL */
} onednn_flow;

/* dnnl_unimplemented also where oneDNN has nothing but its reference code in
 * the caller's layout, which nobody would use. On failure out is untouched. */
dnnl_status_t onednn_flow_open(dnnl_engine_t engine,
                               const onednn_problem *problem,
                               const onednn_way *way, onednn_flow *out);
dnnl_status_t onednn_flow_run(const onednn_flow *flow, dnnl_stream_t stream,
                              const dnnl_memory_t user[CONTENDER_TENSORS]);
void onednn_flow_close(onednn_flow *flow);

#endif
