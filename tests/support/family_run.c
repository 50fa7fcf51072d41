/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "family_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of 0xFF on either side of a tensor or the workspace. FRONT is a
 * multiple of every alignment that a description may have, GUARD of 256 but
 * not of 512: no workspace need be aligned to more. */
#define FRONT 4096
#define GUARD 4352

/* That one test emulates, none being one of them. */
#define MOST_UNITS 4

const char *family_run_name(const family_run *run)
{
    static char name[1024];
    snprintf(name, sizeof name, "%s, plan %s%s%s", run->problem,
             run->f->plan ? run->f->plan : "default",
             run->f->emulate ? ", emulating " : "",
             run->f->emulate ? run->f->emulate : "");
    return name;
}

/* ---- Opening ------------------------------------------------------------ */

static void check(const family_run *run, const char *what, clconv_status status)
{
    cr_assert_eq(status, CLCONV_OK, "%s: %s: %s", family_run_name(run), what,
                 clconv_last_error());
}

/* A device and a context for each unit to emulate: kept until the process
 * ends, so that a test builds each program once. */
typedef struct opened {
    host host;
    const char *emulate;
    clconv_context *context;
} opened;

static bool same_unit(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void open_device(const family_run *run, opened *s)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    s->emulate = options.emulate_unit = run->f->emulate;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &s->host),
                 HOST_OK);
    check(run, "context",
          clconv_context_create(s->host.context, s->host.device, &options,
                                &s->context));
}

static const opened *get_device(const family_run *run)
{
    static opened opened_devices[MOST_UNITS];
    for (int i = 0; i < MOST_UNITS; ++i) {
        if (!opened_devices[i].context)
            open_device(run, &opened_devices[i]);
        if (same_unit(opened_devices[i].emulate, run->f->emulate))
            return &opened_devices[i];
    }
    cr_assert_fail("%s: one unit more than expected", family_run_name(run));
    return NULL;
}

static void make_plan(family_run *run, const clconv_desc *desc)
{
    const opened *s = get_device(run);
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.plan = run->f->plan;
    run->host = s->host;
    check(run, "plan",
          clconv_plan_create(s->context, desc, run->ops, &options, &run->plan));
    check(run, "workspace",
          clconv_plan_workspace_size(run->plan, &run->workspace_size));
}

static cl_mem new_poisoned(const family_run *run, size_t bytes)
{
    cl_mem mem = host_buffer(&run->host, bytes, NULL);
    cr_assert_not_null(mem, "%s: %zu bytes", family_run_name(run), bytes);
    return mem;
}

static void make_buffers(family_run *run, const clconv_desc *desc)
{
    family_data data = {.desc = *desc};
    const clconv_type types[FAMILY_TENSORS] = {desc->dy_type, desc->x_type,
                                               desc->w_type,  desc->dw_type,
                                               desc->db_type, desc->dx_type};
    run->offset = FRONT + desc->alignment;
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        run->type[t] = types[t];
        run->bytes[t] = (size_t)family_data_elements(&data, t, desc->n) *
                        (types[t] == CLCONV_F16 ? 2 : 4);
        if (run->ops & family_ops[t])
            run->mem[t] = new_poisoned(run, run->offset + run->bytes[t] + GUARD);
    }
    run->workspace = new_poisoned(run, run->workspace_size + 2 * GUARD);
    run->report_mem = new_poisoned(run, sizeof run->report);
}

void family_run_open(const family *f, const clconv_desc *desc, family_run *out)
{
    *out = (family_run){.f = f, .ops = f->ops ? f->ops : CLCONV_OP_BACKWARD};
    out->wanted = out->ops;
    clconv_desc_format(desc, out->problem, sizeof out->problem);
    make_plan(out, desc);
    make_buffers(out, desc);
}

void family_run_close(family_run *run)
{
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        if (run->mem[t])
            clReleaseMemObject(run->mem[t]);
        free(run->got[t]);
    }
    clReleaseMemObject(run->workspace);
    clReleaseMemObject(run->report_mem);
    clconv_plan_release(run->plan);
}

/* ---- One call ----------------------------------------------------------- */

static void poison(const family_run *run, cl_mem mem, size_t bytes)
{
    const cl_uchar pattern = 0xFF;
    cr_assert_eq(clEnqueueFillBuffer(run->host.queue, mem, &pattern, 1, 0,
                                     bytes, 0, NULL, NULL),
                 CL_SUCCESS);
}

static void write_values(const family_run *run, int tensor, const float *values)
{
    size_t count = run->bytes[tensor] / 4;
    uint16_t *halves = NULL;
    if (run->type[tensor] == CLCONV_F16) {
        count = run->bytes[tensor] / 2;
        halves = malloc((count + 1) * sizeof *halves);
        cr_assert_not_null(halves);
        for (size_t i = 0; i < count; ++i)
            halves[i] = host_half_from_float(values[i]);
    }
    cr_assert(host_write(&run->host, run->mem[tensor], run->offset,
                         run->bytes[tensor],
                         halves ? (const void *)halves : values));
    free(halves);
}

static void prepare(const family_run *run, const family_data *data,
                    const float beta[FAMILY_TENSORS])
{
    const clconv_report none = {0};
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        if (!run->mem[t])
            continue;
        poison(run, run->mem[t], run->offset + run->bytes[t] + GUARD);
        if (t < FAMILY_DW || beta[t] != 0.0f)
            write_values(run, t, data->value[t]);
    }
    poison(run, run->workspace, run->workspace_size + 2 * GUARD);
    cr_assert(host_write(&run->host, run->report_mem, 0, sizeof none, &none));
}

static void enqueue(const family_run *run, int64_t batch,
                    const float beta[FAMILY_TENSORS])
{
    clconv_backward_args args;
    clconv_backward_args_init(&args);
    args.batch = batch;
    clconv_buffer *const buffers[FAMILY_TENSORS] = {
        &args.dy, &args.x, &args.w, &args.dw, &args.db, &args.dx};
    for (int t = 0; t < FAMILY_TENSORS; ++t)
        if (run->mem[t] && (t < FAMILY_DW || (run->wanted & family_ops[t])))
            *buffers[t] = (clconv_buffer){run->mem[t], run->offset};
    args.beta_w = beta[FAMILY_DW];
    args.beta_b = beta[FAMILY_DB];
    args.beta_x = beta[FAMILY_DX];
    args.workspace = (clconv_buffer){run->workspace, GUARD};
    args.report.mem = run->report_mem;
    check(run, "enqueue",
          clconv_enqueue_backward(run->plan, run->host.queue, &args, 0, NULL,
                                  NULL));
    cr_assert(host_finish(&run->host), "%s", family_run_name(run));
}

/* ---- What it gave ------------------------------------------------------- */

static void expect_untouched(const family_run *run, const char *what,
                             cl_mem mem, size_t begin, size_t end)
{
    static unsigned char bytes[2 * GUARD];
    cr_assert_leq(end - begin, sizeof bytes);
    cr_assert(host_read(&run->host, mem, begin, end - begin, bytes));
    for (size_t i = 0; i < end - begin; ++i)
        cr_assert_eq(bytes[i], 0xFF,
                     "%s: byte %zu of the buffer of %s was "
                     "written",
                     family_run_name(run), begin + i, what);
}

static void expect_guards(const family_run *run, const char *what, cl_mem mem,
                          size_t offset, size_t bytes)
{
    expect_untouched(run, what, mem, 0, offset);
    expect_untouched(run, what, mem, offset + bytes, offset + bytes + GUARD);
}

static void read_output(family_run *run, int tensor)
{
    bool is_half = run->type[tensor] == CLCONV_F16;
    size_t count = run->bytes[tensor] / (is_half ? 2 : 4);
    float *values = malloc((count + 1) * sizeof *values);
    uint16_t *halves = malloc((count + 1) * sizeof *halves);
    cr_assert(values && halves);
    cr_assert(host_read(&run->host, run->mem[tensor], run->offset,
                        run->bytes[tensor], is_half ? (void *)halves : values));
    for (size_t i = 0; is_half && i < count; ++i)
        values[i] = host_float_from_half(halves[i]);
    free(halves);
    free(run->got[tensor]);
    run->got[tensor] = values;
}

void family_run_call(family_run *run, const family_data *data, int64_t batch,
                     const float beta[FAMILY_TENSORS])
{
    prepare(run, data, beta);
    enqueue(run, batch, beta);
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        if (!run->mem[t])
            continue;
        expect_guards(run, family_names[t], run->mem[t], run->offset,
                      run->bytes[t]);
        if (t >= FAMILY_DW)
            read_output(run, t);
    }
    expect_guards(run, "the workspace", run->workspace, GUARD,
                  run->workspace_size);
    cr_assert(host_read(&run->host, run->report_mem, 0, sizeof run->report,
                        &run->report));
}
