/*
 * Plans and calls: how the layers meet.
 *
 *     description -> problem -> choose: steps -> kernelgen: sources
 *         -> cl_cache: programs -> cl_launch: kernels
 *     arguments -> cl_call: checked -> cl_launch: enqueued
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "choose.h"
#include "find.h"
#include "os.h"

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch)                                      \
    TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *clconv_version(void)
{
    return VERSION_TEXT(CLCONV_VERSION_MAJOR, CLCONV_VERSION_MINOR,
                        CLCONV_VERSION_PATCH);
}

/* ---- Options ----------------------------------------------------------- */

void clconv_plan_options_init(clconv_plan_options *options)
{
    if (options)
        *options = (clconv_plan_options){
            .struct_size = sizeof *options,
            .max_workspace = SIZE_MAX,
            .find_seconds = CLCONV_FIND_SECONDS_DEFAULT,
        };
}

void clconv_backward_args_init(clconv_backward_args *args)
{
    if (args)
        *args = (clconv_backward_args){
            .struct_size = sizeof *args,
            .batch = -1,
        };
}

void clconv_forward_args_init(clconv_forward_args *args)
{
    if (args)
        *args = (clconv_forward_args){
            .struct_size = sizeof *args,
            .batch = -1,
        };
}

static clconv_status check_find(const clconv_plan_options *o)
{
    if (o->plan)
        return clconv_fail(CLCONV_INVALID_ARGUMENT,
                           "options.plan is \"%s\"; it must be NULL with "
                           "CLCONV_PLAN_FIND, which looks for all kernels",
                           o->plan);
    if (o->find_seconds > 0 && o->find_seconds <= CLCONV_FIND_SECONDS_MAX)
        return CLCONV_OK;
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "options.find_seconds is %g; it must be in (0, %g]",
                       o->find_seconds, CLCONV_FIND_SECONDS_MAX);
}

static clconv_status check_mode(const clconv_plan_options *o)
{
    switch (o->mode) {
    case CLCONV_PLAN_DEFAULT:
    case CLCONV_PLAN_TUNED:
    case CLCONV_PLAN_INSTANT: return CLCONV_OK;
    case CLCONV_PLAN_FIND: return check_find(o);
    }
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "options.mode is %d; it must be a clconv_plan_mode",
                       (int)o->mode);
}

static clconv_status read_options(const clconv_plan_options *options,
                                  clconv_plan_options *out)
{
    clconv_plan_options_init(out);
    clconv_status status = CLCONV_OK;
    if (options)
        status = clconv_struct_read("options", "clconv_plan_options_init",
                                    options, out, sizeof *out);
    if (status != CLCONV_OK)
        return status;
    return check_mode(out);
}

static clconv_status check_ops(unsigned ops)
{
    if (ops == CLCONV_OP_FORWARD)
        return CLCONV_OK;
    if (ops == 0 || (ops & ~(unsigned)CLCONV_OP_BACKWARD))
        return clconv_fail(CLCONV_INVALID_ARGUMENT,
                           "ops is 0x%x; it must be a mask of CLCONV_OP_DW, "
                           "CLCONV_OP_DB and CLCONV_OP_DX, not 0, or "
                           "CLCONV_OP_FORWARD alone",
                           ops);
    return CLCONV_OK;
}

/* What only the forward convolution asks of a problem and its options. */
static clconv_status check_forward(unsigned ops,
                                   const clconv_plan_options *options,
                                   const clconv_problem *problem)
{
    if (!(ops & CLCONV_OP_FORWARD))
        return CLCONV_OK;
    if (options->mode == CLCONV_PLAN_FIND || options->mode == CLCONV_PLAN_TUNED)
        return clconv_fail(CLCONV_UNSUPPORTED,
                           "options.mode: CLCONV_OP_FORWARD is not tuned yet; "
                           "use CLCONV_PLAN_DEFAULT");
    return clconv_problem_check_forward(problem);
}

/* ---- Making a plan ----------------------------------------------------- */

static clconv_status make_source(const clconv_plan *plan, int step, char **out)
{
    clconv_task task = clconv_step_task(&plan->steps, step, &plan->device);
    const clconv_kernel *kernel = plan->steps.step[step].kernel;
    clconv_text why = CLCONV_TEXT_EMPTY;
    char *source = clconv_kernel_source(kernel, &task, &why);
    if (!source)
        clconv_fail(CLCONV_INTERNAL, "kernel %s was not generated: %s",
                    kernel->name, why.data ? why.data : "no memory");
    clconv_text_free(&why);
    if (!source)
        return CLCONV_INTERNAL;
    *out = source;
    return CLCONV_OK;
}

static clconv_status get_program(clconv_plan *plan, int step, const char *text,
                                 cl_program *out)
{
    clconv_text problem = CLCONV_TEXT_EMPTY;
    clconv_problem_format(&plan->steps.problem, &problem);
    clconv_source source = {
        .kernel = plan->steps.step[step].kernel->name,
        .problem = problem.data ? problem.data : "",
        .text = text,
    };
    clconv_built *built = &plan->built[step];
    double start = clconv_os_milliseconds();
    clconv_status status = clconv_cache_program(plan->context->cache, &source,
                                                &built->origin, out);
    built->milliseconds = clconv_os_milliseconds() - start;
    clconv_text_free(&problem);
    return status;
}

static clconv_status compile_step(clconv_plan *plan, int step)
{
    const char *name = plan->steps.step[step].kernel->name;
    const clconv_built *built = &plan->built[step];
    char *source;
    clconv_status status = make_source(plan, step, &source);
    if (status != CLCONV_OK)
        return status;
    cl_program program;
    status = get_program(plan, step, source, &program);
    free(source);
    if (status != CLCONV_OK)
        return status;
    clconv_log_info(&plan->context->log, "kernel %s: program %s, %.1f ms", name,
                    clconv_origin_name(built->origin), built->milliseconds);
    return clconv_launch_add(plan->launch, step, program);
}

/* Steps, programs and kernels for the plan's device. */
static clconv_status compile(clconv_plan *plan, const clconv_problem *problem,
                             unsigned ops, const clconv_plan_options *options,
                             int *skip)
{
    clconv_status status =
        clconv_choose_steps(plan->context, &plan->device, problem, ops, options,
                            skip, &plan->steps, &plan->match);
    if (status == CLCONV_OK)
        status =
            clconv_launch_new(plan->context->cl_ctx, plan->context->cl_device,
                              &plan->steps, &plan->device, &plan->launch);
    for (int i = 0; status == CLCONV_OK && i < plan->steps.count; ++i)
        status = compile_step(plan, i);
    if (status != CLCONV_OK) {
        clconv_launch_free(plan->launch);
        plan->launch = NULL;
    }
    return status;
}

/*
 * With the best record whose plan builds, where a record may serve at all: one
 * of another device or driver may not, and offline its programs may be missing.
 */
static clconv_status compile_known(clconv_plan *plan,
                                   const clconv_problem *problem, unsigned ops,
                                   const clconv_plan_options *options)
{
    int skip = 0;
    clconv_status status = compile(plan, problem, ops, options, &skip);
    while (status == CLCONV_BUILD_FAILED && plan->match.record &&
           options->mode == CLCONV_PLAN_DEFAULT) {
        clconv_log_warn(&plan->context->log,
                        "a plan that was %s is not used: %s", plan->match.why,
                        clconv_last_error());
        status = compile(plan, problem, ops, options, &skip);
    }
    return status;
}

/* Tensor maps go first, then wgmma, then all: what is left is what more drivers
 * take. */
static void drop_units(clconv_device *device)
{
    if (device->tensor_maps) {
        device->tensor_maps = false;
        return;
    }
    bool has_wgmma = clconv_device_has_unit(device, CLCONV_UNIT_WGMMA);
    device->units &= has_wgmma ? ~CLCONV_BIT(CLCONV_UNIT_WGMMA) : 0;
}

static void warn_of_dropped(const clconv_plan *plan, const char *why)
{
    clconv_text names = CLCONV_TEXT_EMPTY;
    clconv_units_format(plan->context->device.units & ~plan->device.units,
                        &names);
    bool units = plan->context->device.units != plan->device.units;
    clconv_log_warn(&plan->context->log, "the plan does without %s%s: %s",
                    units ? "the matrix unit " : "tensor maps",
                    units && names.data ? names.data : "", why);
    clconv_text_free(&names);
}

/*
 * Once more without matrix units of the device, after a build has failed: a
 * driver may be too old for them. If nothing else builds either, the first
 * failure is the one to tell. Where the plan string asks for a kernel on a
 * unit, there is no plan without it.
 */
static clconv_status compile_without_units(clconv_plan *plan,
                                           const clconv_problem *problem,
                                           unsigned ops,
                                           const clconv_plan_options *options)
{
    clconv_text first = CLCONV_TEXT_EMPTY;
    clconv_text_puts(&first, clconv_last_error());
    const char *why = first.data ? first.data : "a kernel did not build";
    clconv_status status = CLCONV_BUILD_FAILED;
    while (status == CLCONV_BUILD_FAILED && plan->device.units) {
        drop_units(&plan->device);
        status = compile_known(plan, problem, ops, options);
    }
    if (status == CLCONV_OK)
        warn_of_dropped(plan, why);
    else
        status = clconv_fail(CLCONV_BUILD_FAILED, "%s", why);
    clconv_text_free(&first);
    return status;
}

static void log_programs(const clconv_plan *plan)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_plan_describe_programs(plan, &t);
    if (t.data)
        clconv_log_info(&plan->context->log, "%s", t.data);
    clconv_text_free(&t);
}

static clconv_status make_plan(clconv_context *context,
                               const clconv_problem *problem, unsigned ops,
                               const clconv_plan_options *options,
                               clconv_plan **out)
{
    clconv_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a plan");
    atomic_init(&plan->references, 1);
    plan->context = context;
    plan->device = context->device;
    clconv_status status = compile_known(plan, problem, ops, options);
    if (status == CLCONV_BUILD_FAILED && plan->device.units &&
        !plan->device.unit_emulated) /* which was asked for */
        status = compile_without_units(plan, problem, ops, options);
    if (status != CLCONV_OK) {
        free(plan);
        return status;
    }
    log_programs(plan);
    clconv_context_retain(context);
    *out = plan;
    return CLCONV_OK;
}

/* The plan of a record, which is measured now if there is none or its plan does
 * not fit. */
static clconv_status find_plan(clconv_context *context, const clconv_desc *desc,
                               const clconv_problem *problem, unsigned ops,
                               const clconv_plan_options *options,
                               clconv_plan **out)
{
    clconv_plan_options tuned = *options;
    tuned.mode = CLCONV_PLAN_TUNED;
    clconv_status status = make_plan(context, problem, ops, &tuned, out);
    if (status != CLCONV_UNSUPPORTED)
        return status;
    clconv_record record;
    status = clconv_find(context, desc, ops, options, &record);
    if (status == CLCONV_OK)
        status = make_plan(context, problem, ops, &tuned, out);
    return status;
}

clconv_status clconv_plan_create(clconv_context *context,
                                 const clconv_desc *desc, unsigned ops,
                                 const clconv_plan_options *options,
                                 clconv_plan **out)
{
    if (!context || !out)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s is NULL",
                           context ? "out" : "context");
    clconv_plan_options o;
    clconv_problem problem;
    clconv_status status = clconv_context_check(context);
    if (status == CLCONV_OK)
        status = check_ops(ops);
    if (status == CLCONV_OK)
        status = read_options(options, &o);
    if (status == CLCONV_OK)
        status = clconv_problem_init(desc, &problem);
    if (status == CLCONV_OK)
        status = check_forward(ops, &o, &problem);
    if (status != CLCONV_OK)
        return status;
    if (o.mode == CLCONV_PLAN_FIND)
        return find_plan(context, desc, &problem, ops, &o, out);
    return make_plan(context, &problem, ops, &o, out);
}

void clconv_plan_retain(clconv_plan *plan)
{
    if (plan)
        atomic_fetch_add(&plan->references, 1);
}

void clconv_plan_release(clconv_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->references, 1) != 1)
        return;
    /* A forked child must not touch OpenCL: leave it to the process's end. */
    if (plan->context->process != clconv_os_process())
        return;
    clconv_launch_refresh(plan->launch, plan->context->cache);
    clconv_launch_free(plan->launch);
    clconv_context_release(plan->context);
    free(plan);
}

/* ---- Using it ---------------------------------------------------------- */

clconv_status clconv_plan_workspace_size(const clconv_plan *plan, size_t *bytes)
{
    if (!plan || !bytes)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s is NULL",
                           plan ? "bytes" : "plan");
    *bytes = plan->steps.workspace;
    return CLCONV_OK;
}

/* Reads a call's arguments of either kind, checked against the plan. */
typedef clconv_status read_args_fn(const clconv_plan *plan, const void *args,
                                   clconv_call *out);

static clconv_status read_backward(const clconv_plan *plan, const void *args,
                                   clconv_call *out)
{
    clconv_backward_args a;
    clconv_backward_args_init(&a);
    clconv_status status = clconv_struct_read(
        "args", "clconv_backward_args_init", args, &a, sizeof a);
    if (status != CLCONV_OK)
        return status;
    return clconv_call_read(plan->context->cl_ctx, &plan->steps, &a, out);
}

static clconv_status read_forward(const clconv_plan *plan, const void *args,
                                  clconv_call *out)
{
    clconv_forward_args a;
    clconv_forward_args_init(&a);
    clconv_status status = clconv_struct_read(
        "args", "clconv_forward_args_init", args, &a, sizeof a);
    if (status != CLCONV_OK)
        return status;
    return clconv_call_read_forward(plan->context->cl_ctx, &plan->steps, &a,
                                    out);
}

static clconv_status enqueue(clconv_plan *plan, cl_command_queue queue,
                             const void *args, read_args_fn *read,
                             cl_uint wait_count, const cl_event *wait_list,
                             cl_event *event)
{
    if (!plan || !args)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s is NULL",
                           plan ? "args" : "plan");
    const clconv_context *context = plan->context;
    clconv_call call;
    clconv_status status = clconv_context_check(context);
    if (status == CLCONV_OK)
        status =
            clconv_call_check_queue(context->cl_ctx, context->cl_device, queue);
    if (status == CLCONV_OK)
        status =
            clconv_call_check_wait_list(context->cl_ctx, wait_count, wait_list);
    if (status == CLCONV_OK)
        status = read(plan, args, &call);
    if (status != CLCONV_OK)
        return status;
    return clconv_launch_run(plan->launch, queue, &call, wait_count, wait_list,
                             event);
}

clconv_status clconv_enqueue_backward(clconv_plan *plan, cl_command_queue queue,
                                      const clconv_backward_args *args,
                                      cl_uint num_events_in_wait_list,
                                      const cl_event *event_wait_list,
                                      cl_event *event)
{
    return enqueue(plan, queue, args, read_backward, num_events_in_wait_list,
                   event_wait_list, event);
}

clconv_status clconv_enqueue_forward(clconv_plan *plan, cl_command_queue queue,
                                     const clconv_forward_args *args,
                                     cl_uint num_events_in_wait_list,
                                     const cl_event *event_wait_list,
                                     cl_event *event)
{
    return enqueue(plan, queue, args, read_forward, num_events_in_wait_list,
                   event_wait_list, event);
}
