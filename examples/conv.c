/*
 * A call makes its device buffers, runs and frees them: the network holds
 * plans for all layers at once, which are small, but the buffers of one layer
 * only.
 *
 * The forward pass of a convolution whose output has the size of its input is
 * the dX of another one: with C and K exchanged, x in the place of dY, and
 * the filter turned by 180 degrees,
 *
 *   dX[n,k,p,q] = sum over c,r,s of x[n,c,p+1-r,q+1-s] * w[k,c,2-r,2-s].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conv.h"

#include <stdlib.h>
#include <time.h>

#include "message.h"

/* Timed calls of one measurement stop after this many seconds. */
#define MEASURE_SECONDS 0.3
#define MEASURE_CALLS_MAX 16

size_t conv_x_count(conv_shape shape)
{
    return shape.n * shape.c * shape.size * shape.size;
}

size_t conv_w_count(conv_shape shape)
{
    return shape.k * shape.c * CONV_TAPS;
}

size_t conv_y_count(conv_shape shape)
{
    return shape.n * shape.k * shape.size * shape.size;
}

/* ---- Engine and plans ----------------------------------------------- */

static bool succeeded(clconv_status status, const char *what)
{
    if (status)
        message_error("%s: %s", what, clconv_last_error());
    return !status;
}

static void log_warning(clconv_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == CLCONV_LOG_WARNING)
        message_warning("%s", text);
}

bool conv_engine_open(const host *h, conv_engine *out)
{
    clconv_context_options options;
    clconv_context *context;

    clconv_context_options_init(&options);
    options.log = log_warning;
    if (!succeeded(
            clconv_context_create(h->context, h->device, &options, &context),
            "clconv_context_create"))
        return false;
    *out = (conv_engine){h, context};
    return true;
}

void conv_engine_close(conv_engine *engine)
{
    clconv_context_release(engine->context);
    engine->context = NULL;
}

clconv_desc conv_backward_desc(conv_shape shape, clconv_math math,
                               int scale_log2)
{
    clconv_desc desc;

    clconv_desc_init(&desc);
    desc.n = (int64_t)shape.n;
    desc.c = (int64_t)shape.c;
    desc.h = desc.w = (int64_t)shape.size;
    desc.k = (int64_t)shape.k;
    desc.r = desc.s = 3;
    desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
    desc.math = math;
    desc.scale_log2 = scale_log2;
    return desc;
}

bool conv_call_open(const conv_engine *engine, const clconv_desc *desc,
                    unsigned ops, conv_call *out)
{
    clconv_plan *plan;

    if (!succeeded(clconv_plan_create(engine->context, desc, ops, NULL, &plan),
                   "clconv_plan_create"))
        return false;
    *out = (conv_call){engine, *desc, ops, plan};
    return true;
}

void conv_call_close(conv_call *call)
{
    clconv_plan_release(call->plan);
    call->plan = NULL;
}

static conv_shape shape_of(const clconv_desc *desc)
{
    return (conv_shape){(size_t)desc->n, (size_t)desc->c, (size_t)desc->k,
                        (size_t)desc->h};
}

/* ---- Buffers -------------------------------------------------------- */

/* An input that the call does not read has no buffer, and succeeds. */
static bool open_input(const host *h, const float *data, size_t count,
                       clconv_buffer *buffer)
{
    if (!data)
        return true;
    buffer->mem = host_buffer(h, count * sizeof(*data), data);
    return buffer->mem != NULL;
}

static bool open_output(const conv_call *call, clconv_op op, size_t count,
                        clconv_buffer *buffer)
{
    if (!(call->ops & (unsigned)op))
        return true;
    buffer->mem = host_buffer(call->engine->host, count * sizeof(float), NULL);
    return buffer->mem != NULL;
}

/* Scratch of the plan, and a report that starts with zero counts. */
static bool open_extras(const conv_call *call, clconv_backward_args *args)
{
    const host *h = call->engine->host;
    const clconv_report zero = {0};
    size_t bytes;

    if (!succeeded(clconv_plan_workspace_size(call->plan, &bytes),
                   "clconv_plan_workspace_size"))
        return false;
    args->report.mem = host_buffer(h, sizeof(zero), &zero);
    if (bytes > 0)
        args->workspace.mem = host_buffer(h, bytes, NULL);
    return args->report.mem && (bytes == 0 || args->workspace.mem);
}

static void close_buffers(clconv_backward_args *args)
{
    const clconv_buffer *buffers[] = {&args->x,         &args->w,     &args->dy,
                                      &args->dw,        &args->db,    &args->dx,
                                      &args->workspace, &args->report};

    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); ++i) {
        if (buffers[i]->mem)
            clReleaseMemObject(buffers[i]->mem);
    }
}

static bool open_buffers(const conv_call *call, conv_inputs in,
                         clconv_backward_args *out)
{
    const host *h = call->engine->host;
    conv_shape shape = shape_of(&call->desc);
    clconv_backward_args args;

    clconv_backward_args_init(&args);
    if (open_input(h, in.x, conv_x_count(shape), &args.x) &&
        open_input(h, in.w, conv_w_count(shape), &args.w) &&
        open_input(h, in.dy, conv_y_count(shape), &args.dy) &&
        open_output(call, CLCONV_OP_DW, conv_w_count(shape), &args.dw) &&
        open_output(call, CLCONV_OP_DB, shape.k, &args.db) &&
        open_output(call, CLCONV_OP_DX, conv_x_count(shape), &args.dx) &&
        open_extras(call, &args)) {
        *out = args;
        return true;
    }
    close_buffers(&args);
    return false;
}

static bool read_output(const host *h, clconv_buffer buffer, size_t count,
                        float *data)
{
    return !data || host_read(h, buffer.mem, 0, count * sizeof(*data), data);
}

static bool read_gradients(const conv_call *call,
                           const clconv_backward_args *args, conv_gradients out)
{
    const host *h = call->engine->host;
    conv_shape shape = shape_of(&call->desc);

    return read_output(h, args->dw, conv_w_count(shape), out.dw) &&
           read_output(h, args->db, shape.k, out.db) &&
           read_output(h, args->dx, conv_x_count(shape), out.dx);
}

/* ---- Running -------------------------------------------------------- */

static bool run_once(const conv_call *call, const clconv_backward_args *args)
{
    const host *h = call->engine->host;

    return succeeded(clconv_enqueue_backward(call->plan, h->queue, args, 0,
                                             NULL, NULL),
                     "clconv_enqueue_backward") &&
           host_finish(h);
}

bool conv_run(const conv_call *call, conv_inputs in, conv_gradients out)
{
    clconv_backward_args args;
    bool ok;

    if (!open_buffers(call, in, &args))
        return false;
    ok = run_once(call, &args) && read_gradients(call, &args, out);
    close_buffers(&args);
    return ok;
}

/* Activations are of ordinary size, unlike gradients: scale 1. */
bool conv_forward_open(const conv_engine *engine, conv_shape shape,
                       clconv_math math, conv_call *out)
{
    conv_shape exchanged = {shape.n, shape.k, shape.c, shape.size};
    clconv_desc desc = conv_backward_desc(exchanged, math, 0);

    return conv_call_open(engine, &desc, CLCONV_OP_DX, out);
}

/* [k][c][3][3] -> [c][k][3][3], each filter turned by 180 degrees. */
static void turn_filters(const float *w, size_t k, size_t c, float *turned)
{
    for (size_t i = 0; i < k; ++i) {
        for (size_t j = 0; j < c; ++j) {
            const float *from = w + (i * c + j) * CONV_TAPS;
            float *to = turned + (j * k + i) * CONV_TAPS;

            for (size_t tap = 0; tap < CONV_TAPS; ++tap)
                to[tap] = from[CONV_TAPS - 1 - tap];
        }
    }
}

bool conv_forward(const conv_call *call, const float *x, const float *w,
                  float *y)
{
    conv_shape exchanged = shape_of(&call->desc);
    float *turned = malloc(conv_w_count(exchanged) * sizeof(*turned));
    bool ok;

    if (!turned) {
        message_error("out of memory");
        return false;
    }
    turn_filters(w, exchanged.c, exchanged.k, turned);
    ok = conv_run(call, (conv_inputs){NULL, turned, x},
                  (conv_gradients){NULL, NULL, y});
    free(turned);
    return ok;
}

/* ---- Measuring ------------------------------------------------------ */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_seconds);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static bool time_calls(const conv_call *call, const clconv_backward_args *args,
                       size_t calls, double *microseconds)
{
    double seconds[MEASURE_CALLS_MAX];
    double start = now();
    size_t done = 0;

    do {
        double before = now();

        if (!run_once(call, args))
            return false;
        seconds[done++] = now() - before;
    } while (done < calls && done < MEASURE_CALLS_MAX &&
             now() - start < MEASURE_SECONDS);
    *microseconds = median(seconds, done) * 1e6;
    return true;
}

bool conv_measure(const conv_call *call, conv_inputs in, size_t calls,
                  conv_gradients out, conv_measurement *measurement)
{
    conv_measurement found;
    clconv_backward_args args;
    bool ok;

    if (!open_buffers(call, in, &args))
        return false;
    ok = run_once(call, &args) && read_gradients(call, &args, out) &&
         host_read(call->engine->host, args.report.mem, 0, sizeof(found.report),
                   &found.report) &&
         time_calls(call, &args, calls, &found.microseconds);
    close_buffers(&args);
    if (ok)
        *measurement = found;
    return ok;
}
