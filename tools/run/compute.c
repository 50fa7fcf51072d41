/*
 * A job holds every object of one run; whatever fails, job_close() releases
 * what there is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compute.h"

#include <string.h>
#include <time.h>

#include "message.h"
#include "plan_string.h"

typedef struct job {
    host host;
    clconv_context *context;
    clconv_plan *plan;
    cl_mem dy, x, w, dw, db, dx, workspace, report;
} job;

static bool succeeded(clconv_status status)
{
    if (status)
        message_error("%s (%s)", clconv_last_error(),
                      clconv_status_name(status));
    return status == CLCONV_OK;
}

/* ---- Opening and closing ----------------------------------------------- */

static void log_warning(clconv_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == CLCONV_LOG_WARNING)
        message_warning("%s", text);
}

static bool make_plan(job *s, const run_options *options,
                      const clconv_desc *desc)
{
    clconv_context_options context_options;
    clconv_plan_options plan_options;

    clconv_context_options_init(&context_options);
    context_options.log = log_warning;
    clconv_plan_options_init(&plan_options);
    plan_options.plan = options->plan;
    return succeeded(clconv_context_create(s->host.context, s->host.device,
                                           &context_options, &s->context)) &&
           succeeded(clconv_plan_create(s->context, desc, CLCONV_OP_BACKWARD,
                                        &plan_options, &s->plan));
}

static bool make_buffer(job *s, const npy_array *array, bool filled, cl_mem *out)
{
    *out =
        host_buffer(&s->host, array->header.bytes, filled ? array->data : NULL);
    return *out != NULL;
}

static bool make_workspace(job *s)
{
    size_t bytes;

    if (!succeeded(clconv_plan_workspace_size(s->plan, &bytes)))
        return false;
    s->workspace = host_buffer(&s->host, bytes, NULL);
    return s->workspace != NULL;
}

static bool make_buffers(job *s, const run_inputs *in, const run_outputs *out)
{
    static const clconv_report zero;

    s->report = host_buffer(&s->host, sizeof(zero), &zero);
    return s->report && make_buffer(s, &in->dy, true, &s->dy) &&
           make_buffer(s, &in->x, true, &s->x) &&
           make_buffer(s, &in->w, true, &s->w) &&
           make_buffer(s, &out->dw, false, &s->dw) &&
           make_buffer(s, &out->db, false, &s->db) &&
           make_buffer(s, &out->dx, false, &s->dx) && make_workspace(s);
}

static void job_close(job *s)
{
    const cl_mem buffers[] = {s->dy, s->x,  s->w,         s->dw,
                              s->db, s->dx, s->workspace, s->report};

    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); ++i) {
        if (buffers[i])
            clReleaseMemObject(buffers[i]);
    }
    clconv_plan_release(s->plan);
    clconv_context_release(s->context);
    host_close(&s->host);
}

/* ---- Running ----------------------------------------------------------- */

static double milliseconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static bool call_once(job *s)
{
    clconv_backward_args args;

    clconv_backward_args_init(&args);
    args.dy.mem = s->dy, args.x.mem = s->x, args.w.mem = s->w;
    args.dw.mem = s->dw, args.db.mem = s->db, args.dx.mem = s->dx;
    args.workspace.mem = s->workspace;
    args.report.mem = s->report;
    return succeeded(clconv_enqueue_backward(s->plan, s->host.queue, &args, 0,
                                             NULL, NULL)) &&
           host_finish(&s->host);
}

/* Counts are added, so the warm-up's are cleared in between. */
static bool call_twice(job *s, double *milliseconds)
{
    static const clconv_report zero;
    double start;

    if (!call_once(s) ||
        !host_write(&s->host, s->report, 0, sizeof(zero), &zero))
        return false;
    start = milliseconds_now();
    if (!call_once(s))
        return false;
    *milliseconds = milliseconds_now() - start;
    return true;
}

static bool read_back(job *s, run_outputs *out, clconv_report *report)
{
    return host_read(&s->host, s->dw, 0, out->dw.header.bytes, out->dw.data) &&
           host_read(&s->host, s->db, 0, out->db.header.bytes, out->db.data) &&
           host_read(&s->host, s->dx, 0, out->dx.header.bytes, out->dx.data) &&
           host_read(&s->host, s->report, 0, sizeof(*report), report);
}

/* ---- Facts ------------------------------------------------------------- */

static bool collect_facts(const job *s, const clconv_desc *desc,
                          run_facts *facts)
{
    clconv_desc_format(desc, facts->problem, sizeof(facts->problem));
    memcpy(facts->platform, s->host.platform_name, sizeof(facts->platform));
    memcpy(facts->device, s->host.device_name, sizeof(facts->device));
    return plan_string(s->plan, facts->plan, sizeof(facts->plan));
}

host_result compute_gradients(const run_options *options,
                              const clconv_desc *desc, const run_inputs *inputs,
                              run_outputs *outputs, run_facts *facts)
{
    job s = {.context = NULL};
    host_result result = host_open(options->device, HOST_IN_ORDER, &s.host);
    bool ok;

    if (result != HOST_OK)
        return result;
    ok = make_plan(&s, options, desc) && make_buffers(&s, inputs, outputs) &&
         call_twice(&s, &facts->milliseconds) &&
         read_back(&s, outputs, &facts->report) &&
         collect_facts(&s, desc, facts);
    job_close(&s);
    return ok ? HOST_OK : HOST_FAILED;
}
