/*
 * oneDNN 2.x on the CPU, at its best for a caller with plain tensors: each
 * gradient in the caller's layout or in oneDNN's own with reorders around it,
 * whichever is the fastest of the four together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "contender_onednn_flow.h"
#include "message.h"

/* The fastest way is looked for in so many turns at least, and in more for so
 * many seconds, which leave out a way that is this many times slower. */
#define MIN_TURNS 3
#define MAX_TURNS 50
#define SEARCH_SECONDS 0.2
#define HOPELESS 2.0

enum { MAX_WAYS = 4 };

typedef struct state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    onednn_problem problem;
    size_t elements[CONTENDER_TENSORS];
    int sets;
    dnnl_memory_t (*user)[CONTENDER_TENSORS];
    onednn_flow flow;
    char variant[64];
} state;

static const char *version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    const char *threads = "";

    if (v->cpu_runtime == DNNL_RUNTIME_OMP)
        threads = " with OpenMP";
    else if (v->cpu_runtime == DNNL_RUNTIME_TBB)
        threads = " with TBB";
    snprintf(text, sizeof(text), "oneDNN %d.%d.%d%s", v->major, v->minor,
             v->patch, threads);
    return text;
}

static bool failed(dnnl_status_t status, const char *call)
{
    if (status)
        message_error("oneDNN: %s failed with status %d", call, (int)status);
    return status != dnnl_success;
}

static void close_state(void *opened)
{
    state *s = opened;

    if (!s)
        return;
    onednn_flow_close(&s->flow);
    for (int set = 0; s->user && set < s->sets; ++set) {
        for (int i = 0; i < CONTENDER_TENSORS; ++i) {
            if (s->user[set][i])
                dnnl_memory_destroy(s->user[set][i]);
        }
    }
    free(s->user);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    free(s);
}

/* ---- Tensors -------------------------------------------------------------- */

/* Outputs start as NaN, so that an element nobody writes is seen. */
static bool open_tensor(state *s, int set, int tensor, const float *data)
{
    size_t bytes = s->elements[tensor] * sizeof(float);
    void *to;

    if (failed(dnnl_memory_create(&s->user[set][tensor], &s->problem.user[tensor],
                                  s->engine, DNNL_MEMORY_ALLOCATE),
               "dnnl_memory_create") ||
        failed(dnnl_memory_get_data_handle(s->user[set][tensor], &to),
               "dnnl_memory_get_data_handle"))
        return false;
    if (data)
        memcpy(to, data, bytes);
    else
        memset(to, 0xFF, bytes);
    return true;
}

static bool open_tensors(const contender_setup *setup, state *s)
{
    const float *data[CONTENDER_TENSORS] = {setup->data.x, setup->data.w,
                                            setup->data.dy};

    s->sets = setup->sets;
    s->user = calloc((size_t)s->sets, sizeof(*s->user));
    if (!s->user) {
        message_error("out of memory");
        return false;
    }
    for (int set = 0; set < s->sets; ++set) {
        for (int i = 0; i < CONTENDER_TENSORS; ++i) {
            if (!open_tensor(s, set, i, data[i]))
                return false;
        }
    }
    return true;
}

/* ---- Choosing the way ----------------------------------------------------- */

/* Seconds of one run; negative on failure. */
static double time_flow(const state *s, const onednn_flow *flow, int set)
{
    double start = clock_seconds();

    if (failed(onednn_flow_run(flow, s->stream, s->user[set]),
               "dnnl_primitive_execute") ||
        failed(dnnl_stream_wait(s->stream), "dnnl_stream_wait"))
        return -1;
    return clock_seconds() - start;
}

/* Runs each way once, on sets of their own; the quickest run of each counts.
 * False: a run failed. */
static bool run_in_turn(const state *s, const onednn_flow *flows, int count,
                        int turn, double seconds[MAX_WAYS], int *best)
{
    for (int i = 0; i < count; ++i) {
        double t;

        if (turn >= MIN_TURNS && seconds[i] > HOPELESS * seconds[*best])
            continue;
        t = time_flow(s, &flows[i], (turn * count + i) % s->sets);
        if (t < 0)
            return false;
        if (turn == 0 || t < seconds[i])
            seconds[i] = t;
        if (seconds[i] < seconds[*best])
            *best = i;
    }
    return true;
}

/* The index of the fastest; -1 on failure. */
static int find_fastest(const state *s, const onednn_flow *flows, int count)
{
    double seconds[MAX_WAYS] = {0};
    double start = clock_seconds();
    int best = 0;

    if (count == 1)
        return 0;
    for (int turn = 0;
         turn < MIN_TURNS ||
         (turn < MAX_TURNS && clock_seconds() - start < SEARCH_SECONDS);
         ++turn) {
        if (!run_in_turn(s, flows, count, turn, seconds, &best))
            return -1;
    }
    return best;
}

/* Is bf16 multiplied by instructions, or emulated? */
static bool has_bf16(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
           dnnl_cpu_isa_avx512_core_bf16;
}

static void name_variant(const contender_setup *setup, const onednn_way *way,
                         char text[64])
{
    const char *plain = setup->desc->layout == CLCONV_NCHW ? "nchw" : "nhwc";
    const char *dw = way->plain_dw ? plain : "reorder";
    const char *dx = way->plain_dx ? plain : "reorder";
    const char *how =
        way->type == dnnl_bf16 && !has_bf16() ? ", bf16 emulated" : "";

    if (!(setup->ops & CLCONV_OP_DX))
        snprintf(text, 64, "%s%s", dw, how);
    else if (!(setup->ops & CLCONV_OP_DW) || way->plain_dw == way->plain_dx)
        snprintf(text, 64, "%s%s", dx, how);
    else
        snprintf(text, 64, "dw %s, dx %s%s", dw, dx, how);
}

/* A gradient that is not asked for has one way only. */
static int list_ways(unsigned ops, dnnl_data_type_t type,
                     onednn_way ways[MAX_WAYS])
{
    int count = 0;

    for (int dw = 0; dw < (ops & CLCONV_OP_DW ? 2 : 1); ++dw) {
        for (int dx = 0; dx < (ops & CLCONV_OP_DX ? 2 : 1); ++dx)
            ways[count++] = (onednn_way){type, dw == 1, dx == 1};
    }
    return count;
}

/* Opens those of the ways that oneDNN has; ways and flows then lie side by
 * side. dnnl_unimplemented: none. */
static dnnl_status_t open_flows(const state *s, onednn_way ways[MAX_WAYS],
                                int *count, onednn_flow flows[MAX_WAYS])
{
    int opened = 0;

    for (int i = 0; i < *count; ++i) {
        dnnl_status_t status =
            onednn_flow_open(s->engine, &s->problem, &ways[i], &flows[opened]);

        if (status == dnnl_success)
            ways[opened++] = ways[i];
        else if (status != dnnl_unimplemented) {
            while (opened > 0)
                onednn_flow_close(&flows[--opened]);
            *count = 0;
            return status;
        }
    }
    *count = opened;
    return opened ? dnnl_success : dnnl_unimplemented;
}

static contender_status choose_way(const contender_setup *setup,
                                   dnnl_data_type_t type, state *s,
                                   char why[256])
{
    onednn_way ways[MAX_WAYS];
    onednn_flow flows[MAX_WAYS];
    int best, count = list_ways(setup->ops, type, ways);
    dnnl_status_t status = open_flows(s, ways, &count, flows);

    if (status == dnnl_unimplemented) {
        snprintf(why, 256, "oneDNN has no %s convolution for this on this CPU",
                 type == dnnl_bf16 ? "bf16" : "fp32");
        return CONTENDER_UNSUPPORTED;
    }
    if (status) {
        snprintf(why, 256, "oneDNN: primitives failed with status %d",
                 (int)status);
        return CONTENDER_FAILED;
    }
    best = find_fastest(s, flows, count);
    for (int i = 0; i < count; ++i) {
        if (i == best)
            s->flow = flows[i];
        else
            onednn_flow_close(&flows[i]);
    }
    if (best < 0) {
        snprintf(why, 256, "oneDNN could not run its primitives");
        return CONTENDER_FAILED;
    }
    name_variant(setup, &ways[best], s->variant);
    return CONTENDER_OK;
}

/* ---- Opening -------------------------------------------------------------- */

static contender_status refuse(const contender_setup *setup, char why[256])
{
    const char *reason = NULL;

    if (!setup->host->is_cpu)
        reason = "oneDNN is compared on CPUs only";
    else if (setup->ops & CLCONV_OP_DB && !(setup->ops & CLCONV_OP_DW))
        reason = "oneDNN computes db together with dw only";
    if (!reason)
        return CONTENDER_OK;
    snprintf(why, 256, "%s", reason);
    return CONTENDER_UNSUPPORTED;
}

static contender_status open_into(const contender_setup *setup,
                                  dnnl_data_type_t type, state *s, char why[256])
{
    contender_elements(setup->desc, s->elements);
    if (!onednn_problem_init(setup->desc, setup->ops, &s->problem) ||
        failed(dnnl_engine_create(&s->engine, dnnl_cpu, 0),
               "dnnl_engine_create") ||
        failed(dnnl_stream_create(&s->stream, s->engine,
                                  dnnl_stream_default_flags),
               "dnnl_stream_create") ||
        !open_tensors(setup, s)) {
        snprintf(why, 256, "oneDNN's tensors cannot be made");
        return CONTENDER_FAILED;
    }
    return choose_way(setup, type, s, why);
}

static contender_status open_state(const contender_setup *setup,
                                   dnnl_data_type_t type, void **out,
                                   char why[256])
{
    contender_status status = refuse(setup, why);
    state *s;

    if (status)
        return status;
    s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(why, 256, "out of memory");
        return CONTENDER_FAILED;
    }
    status = open_into(setup, type, s, why);
    if (status == CONTENDER_OK)
        *out = s;
    else
        close_state(s);
    return status;
}

static contender_status open_fp32(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, dnnl_f32, out, why);
}

static contender_status open_bf16(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, dnnl_bf16, out, why);
}

/* ---- Running -------------------------------------------------------------- */

static bool enqueue(void *opened, int set)
{
    state *s = opened;

    return !failed(onednn_flow_run(&s->flow, s->stream, s->user[set]),
                   "dnnl_primitive_execute");
}

static bool wait_all(void *opened)
{
    state *s = opened;

    return !failed(dnnl_stream_wait(s->stream), "dnnl_stream_wait");
}

static bool read_results(void *opened, int set, const contender_results *out)
{
    const state *s = opened;
    float *const to[CONTENDER_TENSORS] = {
        [CONTENDER_DW] = out->dw, [CONTENDER_DB] = out->db, [CONTENDER_DX] = out->dx};

    for (int i = 0; i < CONTENDER_TENSORS; ++i) {
        void *from;

        if (!to[i])
            continue;
        if (failed(dnnl_memory_get_data_handle(s->user[set][i], &from),
                   "dnnl_memory_get_data_handle"))
            return false;
        memcpy(to[i], from, s->elements[i] * sizeof(float));
    }
    return true;
}

static const char *variant(const void *opened)
{
    const state *s = opened;

    return s->variant;
}

extern const contender contender_onednn, contender_onednn_bf16;

const contender contender_onednn = {
    .name = "onednn",
    .summary = "oneDNN, fp32, the fastest of its ways for plain tensors",
    .bound = 1e-4,
    .version = version,
    .open = open_fp32,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};

const contender contender_onednn_bf16 = {
    .name = "onednn-bf16",
    .summary = "oneDNN, bf16 operands and fp32 sums, casts included",
    .bound = 1e-2,
    .version = version,
    .open = open_bf16,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};
