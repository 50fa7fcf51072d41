/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backward.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "naive.h"

/* The tensors in the order of clconv_report. */
enum { DY, X, W, DW, DB, DX, TENSORS };

typedef struct run {
    const backward_case *c;
    clconv_desc desc;
    int64_t batch;
    unsigned ops;
    host host;
    clconv_context *context;
    clconv_plan *plan;
    cl_mem mem[TENSORS], report;
    int64_t elements[TENSORS];
    clconv_type type[TENSORS];
} run;

static char error_text[512];

const char *backward_error(void)
{
    return error_text;
}

static bool fail(const run *r, const char *what, const char *why)
{
    snprintf(error_text, sizeof error_text, "%s (plan %s): %s: %s",
             r->c->problem, r->c->plan ? r->c->plan : "default", what, why);
    return false;
}

static bool check(const run *r, const char *what, clconv_status status)
{
    return status == CLCONV_OK || fail(r, what, clconv_last_error());
}

static bool parse(run *r)
{
    if (!check(r, "parse", clconv_desc_parse(r->c->problem, &r->desc)))
        return false;
    const clconv_desc *d = &r->desc;
    r->ops = r->c->ops ? r->c->ops : CLCONV_OP_BACKWARD;
    r->batch = r->c->batch ? r->c->batch : d->n;
    if (r->c->batch_none)
        r->batch = 0;
    const clconv_type types[TENSORS] = {d->dy_type, d->x_type,  d->w_type,
                                        d->dw_type, d->db_type, d->dx_type};
    const int64_t elements[TENSORS] = {naive_dy_elements(d, r->batch),
                                       naive_x_elements(d, r->batch),
                                       naive_w_elements(d),
                                       naive_w_elements(d),
                                       d->k,
                                       naive_x_elements(d, r->batch)};
    memcpy(r->type, types, sizeof types);
    memcpy(r->elements, elements, sizeof elements);
    return true;
}

static bool open_device(run *r)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.emulate_unit = r->c->emulate;
    if (host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &r->host) != HOST_OK)
        return fail(r, "device", "cannot be opened");
    return check(r, "context",
                 clconv_context_create(r->host.context, r->host.device,
                                       &options, &r->context));
}

static bool make_plan(run *r)
{
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.plan = r->c->plan;
    return check(
        r, "plan",
        clconv_plan_create(r->context, &r->desc, r->ops, &options, &r->plan));
}

/* A buffer of the tensor's type with these values, or all NaN. */
static bool make_buffer(run *r, int tensor, const float *values)
{
    size_t count = (size_t)r->elements[tensor];
    size_t size = r->type[tensor] == CLCONV_F16 ? 2 : 4;
    uint16_t *halves = NULL;
    if (values && size == 2) {
        halves = malloc((count + 1) * size);
        if (!halves)
            return fail(r, "host", "out of memory");
        for (size_t i = 0; i < count; ++i)
            halves[i] = host_half_from_float(values[i]);
    }
    r->mem[tensor] = host_buffer(&r->host, count * size,
                                 halves ? (const void *)halves : values);
    free(halves);
    return r->mem[tensor] || fail(r, "buffer", "cannot be made");
}

static bool make_buffers(run *r)
{
    const backward_case *c = r->c;
    const float *values[TENSORS] = {c->dy, c->x, c->w, c->dw, c->db, c->dx};
    const unsigned ops[TENSORS] = {CLCONV_OP_BACKWARD, CLCONV_OP_DW,
                                   CLCONV_OP_DX,       CLCONV_OP_DW,
                                   CLCONV_OP_DB,       CLCONV_OP_DX};
    static const clconv_report none = {0};
    for (int t = 0; t < TENSORS; ++t)
        if ((r->ops & ops[t]) && !make_buffer(r, t, values[t]))
            return false;
    if (c->no_report)
        return true;
    r->report = host_buffer(&r->host, sizeof none, &none);
    return r->report || fail(r, "report", "cannot be made");
}

static bool enqueue(run *r)
{
    clconv_backward_args args;
    clconv_backward_args_init(&args);
    args.batch = r->batch;
    args.dy.mem = r->mem[DY];
    args.x.mem = r->mem[X];
    args.w.mem = r->mem[W];
    args.dw.mem = r->mem[DW];
    args.db.mem = r->mem[DB];
    args.dx.mem = r->mem[DX];
    args.beta_w = r->c->beta_w;
    args.beta_b = r->c->beta_b;
    args.beta_x = r->c->beta_x;
    args.report.mem = r->report;
    return check(r, "enqueue",
                 clconv_enqueue_backward(r->plan, r->host.queue, &args, 0, NULL,
                                         NULL)) &&
           (host_finish(&r->host) || fail(r, "finish", "failed"));
}

static bool read_floats(run *r, int tensor, float **out)
{
    size_t count = (size_t)r->elements[tensor];
    bool half_type = r->type[tensor] == CLCONV_F16;
    if (!r->mem[tensor])
        return true;
    float *values = malloc((count + 1) * sizeof *values);
    uint16_t *halves = malloc((count + 1) * sizeof *halves);
    bool ok = values && halves &&
              host_read(&r->host, r->mem[tensor], 0, count * (half_type ? 2 : 4),
                        half_type ? (void *)halves : values);
    for (size_t i = 0; ok && half_type && i < count; ++i)
        values[i] = host_float_from_half(halves[i]);
    free(halves);
    *out = values;
    return ok || fail(r, "read", "failed");
}

static bool read_results(run *r, backward_result *out)
{
    return read_floats(r, DW, &out->dw) && read_floats(r, DB, &out->db) &&
           read_floats(r, DX, &out->dx) &&
           (!r->report || host_read(&r->host, r->report, 0, sizeof out->report,
                                    &out->report));
}

static void release(run *r)
{
    for (int t = 0; t < TENSORS; ++t)
        if (r->mem[t])
            clReleaseMemObject(r->mem[t]);
    if (r->report)
        clReleaseMemObject(r->report);
    clconv_plan_release(r->plan);
    clconv_context_release(r->context);
    if (r->host.context)
        host_close(&r->host);
}

bool backward_run(const backward_case *c, backward_result *out)
{
    run r = {.c = c};
    backward_result result = {0};
    bool ok = parse(&r) && open_device(&r) && make_plan(&r) &&
              make_buffers(&r) && enqueue(&r) && read_results(&r, &result);
    result.desc = r.desc;
    release(&r);
    if (ok)
        *out = result;
    else
        backward_free(&result);
    return ok;
}

void backward_free(backward_result *r)
{
    free(r->dw);
    free(r->db);
    free(r->dx);
    *r = (backward_result){0};
}
