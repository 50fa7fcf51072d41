/*
 * Every tensor lies in its buffer between two guards:
 *
 *     | GUARD bytes 0xA5 | offset bytes 0xA5 | tensor | GUARD bytes 0xA5 |
 *
 * Guards are compared after the call. GUARD is a multiple of the default
 * alignment, so that offset alone decides how aligned the tensor is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "tensor.h"

enum { GUARD = 256, GUARD_BYTE = 0xA5, POISON_BYTE = 0xFF };

/* ---- The runner --------------------------------------------------------- */

bool runner_open(const host *h, const char *emulate_unit, const char *plan_text,
                 runner *out)
{
    runner r = {.h = h, .plan_text = plan_text};
    clconv_context_options options;
    cl_int error;

    clconv_context_options_init(&options);
    options.emulate_unit = emulate_unit;
    if (clconv_context_create(h->context, h->device, &options, &r.context)) {
        message_error("%s", clconv_last_error());
        return false;
    }
    /* Not every device has one; calls then use the other queue. */
    r.unordered = clCreateCommandQueue(
        h->context, h->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    if (error)
        r.unordered = NULL;
    *out = r;
    return true;
}

void runner_close(runner *r)
{
    if (r->unordered)
        clReleaseCommandQueue(r->unordered);
    clconv_context_release(r->context);
}

static run_result fail(runner *r, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(r->error, sizeof(r->error), format, values);
    va_end(values);
    return RUN_FAILED;
}

static run_result fail_status(runner *r, const char *call, clconv_status status)
{
    fail(r, "%s: %s: %s", call, clconv_status_name(status), clconv_last_error());
    return status == CLCONV_UNSUPPORTED ? RUN_UNSUPPORTED : RUN_FAILED;
}

/* ---- Plans -------------------------------------------------------------- */

/* The library's idea of the output size must be ours. */
static run_result compare_shape(runner *r, const run_setup *setup)
{
    int64_t p, q;
    clconv_status status = clconv_desc_output_shape(&setup->desc, &p, &q);

    if (status)
        return fail_status(r, "clconv_desc_output_shape", status);
    if (p != setup->z.p || q != setup->z.q)
        return fail(r,
                    "clconv_desc_output_shape gives %lld x %lld, "
                    "expected %lld x %lld",
                    (long long)p, (long long)q, (long long)setup->z.p,
                    (long long)setup->z.q);
    return RUN_OK;
}

run_result runner_plan(runner *r, const run_setup *setup, clconv_plan **out)
{
    run_result result = compare_shape(r, setup);
    clconv_plan_options options;
    clconv_status status;

    if (result)
        return result;
    clconv_plan_options_init(&options);
    options.plan = r->plan_text;
    status = clconv_plan_create(r->context, &setup->desc, setup->plan_ops,
                                &options, out);
    return status ? fail_status(r, "clconv_plan_create", status) : RUN_OK;
}

/* ---- Tensors in buffers ------------------------------------------------- */

typedef struct device_tensor {
    clconv_buffer buffer;
    tensor_form form;
} device_tensor;

static size_t whole_bytes(const device_tensor *t)
{
    return t->buffer.offset + tensor_bytes(&t->form) + GUARD;
}

/* values NULL: poison. */
static bool make_tensor(const runner *r, size_t offset, const float *values,
                        device_tensor *t)
{
    unsigned char *bytes;

    t->buffer.offset = GUARD + offset;
    bytes = malloc(whole_bytes(t));
    if (!bytes)
        return false;
    memset(bytes, GUARD_BYTE, whole_bytes(t));
    memset(bytes + t->buffer.offset, POISON_BYTE, tensor_bytes(&t->form));
    if (values)
        tensor_encode(&t->form, values, bytes + t->buffer.offset);
    t->buffer.mem = host_buffer(r->h, whole_bytes(t), bytes);
    free(bytes);
    return t->buffer.mem != NULL;
}

static bool all_guard(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (bytes[i] != GUARD_BYTE)
            return false;
    }
    return true;
}

static run_result read_bytes(runner *r, const char *name,
                             const device_tensor *t, unsigned char *bytes)
{
    size_t end = t->buffer.offset + tensor_bytes(&t->form);

    if (!host_read(r->h, t->buffer.mem, 0, whole_bytes(t), bytes))
        return fail(r, "%s cannot be read", name);
    if (!all_guard(bytes, t->buffer.offset))
        return fail(r, "the call wrote before the start of %s", name);
    if (!all_guard(bytes + end, GUARD))
        return fail(r, "the call wrote beyond the end of %s", name);
    return RUN_OK;
}

/* *out is new, or NULL if the tensor was not wanted. */
static run_result read_tensor(runner *r, const char *name,
                              const device_tensor *t, float **out)
{
    size_t size = whole_bytes(t);
    unsigned char *bytes;
    float *values;
    run_result result;

    if (!t->buffer.mem)
        return RUN_OK;
    bytes = malloc(size);
    values = malloc(tensor_count(&t->form) * sizeof(*values) + 1);
    result = bytes && values ? read_bytes(r, name, t, bytes)
                             : fail(r, "out of memory");
    if (result == RUN_OK) {
        tensor_decode(&t->form, bytes + t->buffer.offset, values);
        *out = values;
        values = NULL;
    }
    free(bytes);
    free(values);
    return result;
}

/* ---- One call ----------------------------------------------------------- */

typedef struct call {
    device_tensor x, w, dy, dw, db, dx, y, b;
    cl_mem report;
    cl_mem workspace;
} call;

static void free_call(call *c)
{
    cl_mem mems[] = {c->x.buffer.mem,  c->w.buffer.mem,  c->dy.buffer.mem,
                     c->dw.buffer.mem, c->db.buffer.mem, c->dx.buffer.mem,
                     c->y.buffer.mem,  c->b.buffer.mem,  c->report,
                     c->workspace};

    for (size_t i = 0; i < sizeof(mems) / sizeof(mems[0]); ++i) {
        if (mems[i])
            clReleaseMemObject(mems[i]);
    }
}

static void set_forms(const run_setup *setup, call *c)
{
    const clconv_desc *d = &setup->desc;
    const shape *z = &setup->z;

    c->x.form = tensor_x(z, d->layout, d->x_type);
    c->w.form = tensor_w(z, d->layout, d->w_type);
    c->dy.form = tensor_dy(z, d->layout, d->dy_type);
    c->dw.form = tensor_w(z, d->layout, d->dw_type);
    c->db.form = tensor_db(z, d->db_type);
    c->dx.form = tensor_x(z, d->layout, d->dx_type);
    c->y.form = tensor_dy(z, d->layout, d->y_type);
    c->b.form = tensor_db(z, d->b_type);
}

static bool is_forward(const run_setup *setup)
{
    return (setup->plan_ops & CLCONV_OP_FORWARD) != 0;
}

static bool make_output(const runner *r, const run_setup *setup, unsigned op,
                        const float *old, device_tensor *t)
{
    if (!(setup->wanted & op))
        return true;
    return make_tensor(r, setup->offset, old, t);
}

/* readers: the outputs (clconv_op) that need it. */
static bool make_input(const runner *r, const run_setup *setup,
                       unsigned readers, const float *values, device_tensor *t)
{
    if (!(setup->wanted & readers))
        return true;
    return make_tensor(r, setup->offset, values, t);
}

/* An input that no wanted output reads is left out. */
static bool make_tensors(const runner *r, const run_setup *setup,
                         const run_inputs *in, call *c)
{
    set_forms(setup, c);
    return make_input(r, setup, CLCONV_OP_DW | CLCONV_OP_FORWARD, in->x, &c->x) &&
           make_input(r, setup, CLCONV_OP_DX | CLCONV_OP_FORWARD, in->w, &c->w) &&
           (is_forward(setup) || make_tensor(r, setup->offset, in->dy, &c->dy)) &&
           (!in->b || make_input(r, setup, CLCONV_OP_FORWARD, in->b, &c->b)) &&
           make_output(r, setup, CLCONV_OP_DW, in->old_dw, &c->dw) &&
           make_output(r, setup, CLCONV_OP_DB, in->old_db, &c->db) &&
           make_output(r, setup, CLCONV_OP_DX, in->old_dx, &c->dx) &&
           make_output(r, setup, CLCONV_OP_FORWARD, in->old_y, &c->y);
}

static bool make_workspace(const runner *r, const clconv_plan *plan, call *c)
{
    const clconv_report zeros = {{0}, {0}, {0}, {0}, {0}, {0}, {0}};
    size_t bytes = 0;

    if (clconv_plan_workspace_size(plan, &bytes))
        return false;
    c->report = host_buffer(r->h, sizeof(zeros), &zeros);
    if (bytes > 0) {
        c->workspace = host_buffer(r->h, bytes, NULL);
        return c->report && c->workspace;
    }
    return c->report != NULL;
}

static clconv_backward_args arguments(const run_setup *setup, const call *c)
{
    clconv_backward_args args;

    clconv_backward_args_init(&args);
    args.batch = setup->z.n;
    args.x = c->x.buffer;
    args.w = c->w.buffer;
    args.dy = c->dy.buffer;
    if (c->dw.buffer.mem)
        args.dw = c->dw.buffer;
    if (c->db.buffer.mem)
        args.db = c->db.buffer;
    if (c->dx.buffer.mem)
        args.dx = c->dx.buffer;
    args.beta_w = setup->beta_w;
    args.beta_b = setup->beta_b;
    args.beta_x = setup->beta_x;
    args.workspace.mem = c->workspace;
    args.report.mem = c->report;
    return args;
}

static clconv_forward_args forward_arguments(const run_setup *setup,
                                             const call *c)
{
    clconv_forward_args args;

    clconv_forward_args_init(&args);
    args.batch = setup->z.n;
    args.x = c->x.buffer;
    args.w = c->w.buffer;
    args.y = c->y.buffer;
    if (c->b.buffer.mem)
        args.b = c->b.buffer;
    args.beta_y = setup->beta_y;
    args.workspace.mem = c->workspace;
    args.report.mem = c->report;
    return args;
}

static run_result enqueue_forward(runner *r, clconv_plan *plan,
                                  const run_setup *setup,
                                  cl_command_queue queue, const call *c,
                                  const cl_event *wait, cl_event *done)
{
    clconv_forward_args args = forward_arguments(setup, c);
    clconv_status status =
        clconv_enqueue_forward(plan, queue, &args, wait ? 1 : 0, wait, done);

    return status ? fail_status(r, "clconv_enqueue_forward", status) : RUN_OK;
}

static run_result enqueue_backward(runner *r, clconv_plan *plan,
                                   const run_setup *setup,
                                   cl_command_queue queue, const call *c,
                                   const cl_event *wait, cl_event *done)
{
    clconv_backward_args args = arguments(setup, c);
    clconv_status status =
        clconv_enqueue_backward(plan, queue, &args, wait ? 1 : 0, wait, done);

    return status ? fail_status(r, "clconv_enqueue_backward", status) : RUN_OK;
}

static run_result enqueue(runner *r, clconv_plan *plan, const run_setup *setup,
                          cl_command_queue queue, const call *c,
                          const cl_event *wait, cl_event *done)
{
    return is_forward(setup)
               ? enqueue_forward(r, plan, setup, queue, c, wait, done)
               : enqueue_backward(r, plan, setup, queue, c, wait, done);
}

/* Takes the event of the call, which covers all outputs. */
static run_result finish(runner *r, cl_command_queue queue, cl_event done)
{
    cl_int error = clFlush(queue);

    if (!error)
        error = clWaitForEvents(1, &done);
    clReleaseEvent(done);
    if (error)
        return fail(r, "the call's event ended with OpenCL error %d",
                    (int)error);
    return RUN_OK;
}

static run_result enqueue_in_order(runner *r, clconv_plan *plan,
                                   const run_setup *setup, const call *c)
{
    cl_event done = NULL;
    run_result result = enqueue(r, plan, setup, r->h->queue, c, NULL, &done);

    return result ? result : finish(r, r->h->queue, done);
}

/* ---- Out of order ------------------------------------------------------- */

/* dy, or x of a forward convolution, is written by a command that cannot start
 * before the call has returned: the call must not block, must wait for that
 * command's event, and must cover all outputs with the event that it returns. */
typedef struct late_input {
    void *bytes;
    cl_event gate;    /* opened after the call */
    cl_event written; /* what the call waits for */
} late_input;

static bool late_begin(const runner *r, const device_tensor *t,
                       const float *values, late_input *late)
{
    size_t size = tensor_bytes(&t->form);
    cl_int error;

    late->bytes = malloc(size + 1);
    late->gate = clCreateUserEvent(r->h->context, &error);
    if (!late->bytes || error)
        return false;
    tensor_encode(&t->form, values, late->bytes);
    /* A write of no bytes is an error: with no images, wait for the gate. */
    if (size == 0)
        return !clEnqueueMarkerWithWaitList(r->unordered, 1, &late->gate,
                                            &late->written);
    return !clEnqueueWriteBuffer(r->unordered, t->buffer.mem, CL_FALSE,
                                 t->buffer.offset, size, late->bytes, 1,
                                 &late->gate, &late->written);
}

static void late_end(const runner *r, late_input *late)
{
    clFinish(r->unordered);
    if (late->written)
        clReleaseEvent(late->written);
    if (late->gate)
        clReleaseEvent(late->gate);
    free(late->bytes);
}

static run_result enqueue_out_of_order(runner *r, clconv_plan *plan,
                                       const run_setup *setup, const call *c,
                                       const run_inputs *in)
{
    bool forward = is_forward(setup);
    late_input late = {NULL, NULL, NULL};
    cl_event done = NULL;
    run_result result;

    if (late_begin(r, forward ? &c->x : &c->dy, forward ? in->x : in->dy, &late))
        result = enqueue(r, plan, setup, r->unordered, c, &late.written, &done);
    else
        result = fail(r, "%s cannot be written", forward ? "x" : "dy");
    if (late.gate)
        clSetUserEventStatus(late.gate, CL_COMPLETE);
    if (!result)
        result = finish(r, r->unordered, done);
    late_end(r, &late);
    return result;
}

static run_result read_outputs(runner *r, const call *c, outputs *out)
{
    run_result result = read_tensor(r, "dw", &c->dw, &out->dw);

    if (!result)
        result = read_tensor(r, "db", &c->db, &out->db);
    if (!result)
        result = read_tensor(r, "dx", &c->dx, &out->dx);
    if (!result)
        result = read_tensor(r, "y", &c->y, &out->y);
    if (!result &&
        !host_read(r->h, c->report, 0, sizeof(out->report), &out->report))
        result = fail(r, "the report cannot be read");
    return result;
}

run_result runner_call(runner *r, clconv_plan *plan, const run_setup *setup,
                       const run_inputs *in, outputs *out)
{
    bool unordered = setup->out_of_order && r->unordered;
    run_inputs given = *in;
    outputs got = {.dw = NULL};
    call c = {.report = NULL};
    run_result result;

    /* Poison first: the true values are written by a command of the queue. */
    if (unordered && is_forward(setup))
        given.x = NULL;
    else if (unordered)
        given.dy = NULL;
    if (!make_tensors(r, setup, &given, &c) || !make_workspace(r, plan, &c))
        result = fail(r, "no memory for the tensors");
    else if (unordered)
        result = enqueue_out_of_order(r, plan, setup, &c, in);
    else
        result = enqueue_in_order(r, plan, setup, &c);
    if (!result)
        result = read_outputs(r, &c, &got);
    free_call(&c);
    if (result)
        outputs_free(&got);
    else
        *out = got;
    return result;
}

void outputs_free(outputs *out)
{
    free(out->dw);
    free(out->db);
    free(out->dx);
    free(out->y);
    *out = (outputs){.dw = NULL};
}
