/*
 * The library itself, through its public header: one plan, one workspace for
 * all sets (the queue is in order), and a report where its cost is measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "contender_buffers.h"
#include "message.h"
#include "plan_string.h"

/* What distinguishes the library's contenders. */
typedef struct variety {
    clconv_math math;
    bool halves;  /* X, W, dY and dX are fp16, the last two scaled */
    bool reports; /* every call counts into a report buffer */
} variety;

typedef struct state {
    host *host;
    contender_buffers buffers;
    clconv_context *context;
    clconv_plan *plan;
    cl_mem workspace; /* NULL: the plan needs none */
    cl_mem report;    /* NULL: off */
    char plan_text[2048];
} state;

static const char *version(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "libclconv %s", clconv_version());
    return text;
}

static void close_state(void *opened)
{
    state *s = opened;

    if (!s)
        return;
    if (s->workspace)
        clReleaseMemObject(s->workspace);
    if (s->report)
        clReleaseMemObject(s->report);
    clconv_plan_release(s->plan);
    clconv_context_release(s->context);
    contender_buffers_close(&s->buffers);
    free(s);
}

/* ---- Opening ------------------------------------------------------------- */

/* As clconv.h has it: dY arrives scaled, and dX is to leave so. */
static void use_halves(clconv_desc *desc)
{
    desc->x_type = desc->w_type = CLCONV_F16;
    desc->dy_type = desc->dx_type = CLCONV_F16;
    desc->dy_log2 = desc->dx_log2 = CLCONV_SCALE_LOG2_DEFAULT;
}

static clconv_status create_plan(const contender_setup *setup,
                                 const variety *kind, state *s)
{
    clconv_desc desc = *setup->desc;
    clconv_plan_options options;
    clconv_status status = clconv_context_create(
        setup->host->context, setup->host->device, NULL, &s->context);

    if (status)
        return status;
    desc.math = kind->math;
    if (kind->halves)
        use_halves(&desc);
    clconv_plan_options_init(&options);
    options.plan = setup->plan;
    return clconv_plan_create(s->context, &desc, setup->ops, &options, &s->plan);
}

static bool open_buffers(const contender_setup *setup, const variety *kind,
                         state *s)
{
    static const contender_format plain = {true, 0};
    static const contender_format scaled = {true, CLCONV_SCALE_LOG2_DEFAULT};
    contender_format *formats = s->buffers.formats;

    if (kind->halves) {
        formats[CONTENDER_X] = formats[CONTENDER_W] = plain;
        formats[CONTENDER_DY] = formats[CONTENDER_DX] = scaled;
    }
    return contender_buffers_open(setup, &s->buffers);
}

static bool open_workspace(state *s)
{
    size_t bytes = 0;

    if (clconv_plan_workspace_size(s->plan, &bytes)) {
        message_error("%s", clconv_last_error());
        return false;
    }
    if (bytes == 0)
        return true;
    s->workspace = host_buffer(s->host, bytes, NULL);
    return s->workspace != NULL;
}

static bool open_report(state *s)
{
    static const clconv_report zeros;

    s->report = host_buffer(s->host, sizeof(zeros), &zeros);
    return s->report != NULL;
}

static contender_status open_into(const contender_setup *setup,
                                  const variety *kind, state *s, char why[256])
{
    clconv_status status = create_plan(setup, kind, s);

    if (status) {
        snprintf(why, 256, "%s", clconv_last_error());
        return status == CLCONV_UNSUPPORTED ? CONTENDER_UNSUPPORTED
                                            : CONTENDER_FAILED;
    }
    if (!plan_string(s->plan, s->plan_text, sizeof(s->plan_text)) ||
        !open_buffers(setup, kind, s) || !open_workspace(s) ||
        (kind->reports && !open_report(s))) {
        snprintf(why, 256, "its buffers cannot be made");
        return CONTENDER_FAILED;
    }
    return CONTENDER_OK;
}

static contender_status open_state(const contender_setup *setup,
                                   const variety *kind, void **out,
                                   char why[256])
{
    contender_status status;
    state *s = calloc(1, sizeof(*s));

    if (!s) {
        snprintf(why, 256, "out of memory");
        return CONTENDER_FAILED;
    }
    s->host = setup->host;
    status = open_into(setup, kind, s, why);
    if (status == CONTENDER_OK)
        *out = s;
    else
        close_state(s);
    return status;
}

static contender_status open_mixed(const contender_setup *setup, void **out,
                                   char why[256])
{
    return open_state(setup, &(variety){.math = CLCONV_MIXED}, out, why);
}

static contender_status open_fp16(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, &(variety){.math = CLCONV_MIXED, .halves = true},
                      out, why);
}

static contender_status open_report_on(const contender_setup *setup, void **out,
                                       char why[256])
{
    return open_state(setup, &(variety){.math = CLCONV_MIXED, .reports = true},
                      out, why);
}

static contender_status open_fp32(const contender_setup *setup, void **out,
                                  char why[256])
{
    return open_state(setup, &(variety){.math = CLCONV_FP32}, out, why);
}

/* ---- Running ------------------------------------------------------------- */

static bool enqueue(void *opened, int set)
{
    state *s = opened;
    const cl_mem *mem = s->buffers.mem[set];
    clconv_backward_args args;

    clconv_backward_args_init(&args);
    args.x.mem = mem[CONTENDER_X];
    args.w.mem = mem[CONTENDER_W];
    args.dy.mem = mem[CONTENDER_DY];
    args.dw.mem = mem[CONTENDER_DW];
    args.db.mem = mem[CONTENDER_DB];
    args.dx.mem = mem[CONTENDER_DX];
    args.workspace.mem = s->workspace;
    args.report.mem = s->report;
    if (clconv_enqueue_backward(s->plan, s->host->queue, &args, 0, NULL, NULL)) {
        message_error("%s", clconv_last_error());
        return false;
    }
    return true;
}

static bool wait_all(void *opened)
{
    state *s = opened;

    return host_finish(s->host);
}

static bool read_results(void *opened, int set, const contender_results *out)
{
    state *s = opened;

    return contender_buffers_read(&s->buffers, set, out);
}

static const char *variant(const void *opened)
{
    const state *s = opened;

    return s->plan_text;
}

extern const contender contender_mixed, contender_fp16;
extern const contender contender_fp32, contender_report;

const contender contender_mixed = {
    .name = "mixed",
    .summary = "libclconv, fp16 operands and fp32 sums",
    .bound = 5e-3,
    .version = version,
    .open = open_mixed,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};

const contender contender_fp16 = {
    .name = "fp16",
    .summary = "mixed with the caller's X, W, dY and dX in fp16, dY and dX "
               "times 2^10",
    .half_tensors = true,
    .by_request = true,
    .bound = 5e-3,
    .version = version,
    .open = open_fp16,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};

const contender contender_fp32 = {
    .name = "fp32",
    .summary = "libclconv, fp32 throughout",
    .bound = 1e-4,
    .version = version,
    .open = open_fp32,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};

const contender contender_report = {
    .name = "report",
    .summary = "mixed with the report on: every element is counted",
    .by_request = true,
    .bound = 5e-3,
    .version = version,
    .open = open_report_on,
    .enqueue = enqueue,
    .wait = wait_all,
    .read = read_results,
    .close = close_state,
    .variant = variant,
};
