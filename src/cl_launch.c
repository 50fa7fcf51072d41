/*
 * A call becomes a list of jobs, one a pass that has something to do. On an
 * in-order queue the first job waits for the caller's events and the last one
 * makes his. On an out-of-order queue each job waits for the one before.
 *
 * A cl_kernel keeps its arguments until it is enqueued, so a lock is held
 * from the first argument to the last job.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_launch.h"

#include <stdlib.h>

#include "cl_error.h"
#include "cuda_maps.h"
#include "os.h"
#include "sizes.h"

typedef struct step_kernels {
    cl_program program;
    cl_kernel pass[CLCONV_MAX_PASSES];
    /* Of the passes' tensor maps, by operand; not used in emulation. */
    clconv_map_template map[CLCONV_MAX_PASSES][CLCONV_OPERANDS];
} step_kernels;

struct clconv_launch {
    cl_context context;
    cl_device_id device;
    const clconv_steps *steps;
    const clconv_device *facts;
    clconv_mutex *mutex; /* guards the kernels' arguments, and launched */
    bool launched;
    step_kernels step[CLCONV_MAX_STEPS];
};

/* ---- Tensor maps ------------------------------------------------------- */

/* Of a pass that has something to do: others may have sizes of 0. */
static clconv_status make_pass_maps(clconv_cuda_maps *cuda,
                                    const clconv_pass *pass,
                                    clconv_map_template *out)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_status status = CLCONV_OK;
    for (int i = 0; pass->groups > 0 && i < pass->arg_count; ++i) {
        clconv_tensor t = pass->args[i].tensor;
        if (status == CLCONV_OK && pass->args[i].kind == CLCONV_ARG_MAP &&
            !clconv_cuda_maps_encode(cuda, &pass->map[t], &out[t], &why))
            status = clconv_fail(CLCONV_BUILD_FAILED,
                                 "kernel %s: no tensor map of %s: %s",
                                 pass->entry, clconv_tensor_name(t),
                                 why.data ? why.data : "no memory");
    }
    clconv_text_free(&why);
    return status;
}

static clconv_status make_step_maps(clconv_launch *l, int step,
                                    clconv_cuda_maps *cuda)
{
    clconv_task task = clconv_step_task(l->steps, step, l->facts);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count =
        l->steps->step[step].kernel->passes(&task, l->steps->problem.n, pass);
    clconv_status status = CLCONV_OK;
    for (int i = 0; status == CLCONV_OK && i < count; ++i)
        status = make_pass_maps(cuda, &pass[i], l->step[step].map[i]);
    return status;
}

static clconv_status make_maps(clconv_launch *l)
{
    clconv_cuda_maps cuda = {0};
    clconv_status status = CLCONV_OK;
    if (l->facts->unit_emulated)
        return CLCONV_OK;
    for (int i = 0; status == CLCONV_OK && i < l->steps->count; ++i)
        status = make_step_maps(l, i, &cuda);
    clconv_cuda_maps_leave(&cuda);
    return status;
}

/* ---- Making ------------------------------------------------------------ */

clconv_status clconv_launch_new(cl_context context, cl_device_id device,
                                const clconv_steps *steps,
                                const clconv_device *facts, clconv_launch **out)
{
    clconv_launch *l = calloc(1, sizeof *l);
    clconv_mutex *mutex = clconv_mutex_new();
    if (!l || !mutex) {
        free(l);
        clconv_mutex_free(mutex);
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a plan");
    }
    l->context = context;
    l->device = device;
    l->steps = steps;
    l->facts = facts;
    l->mutex = mutex;
    clconv_status status = make_maps(l);
    if (status == CLCONV_OK)
        *out = l;
    else
        clconv_launch_free(l);
    return status;
}

void clconv_launch_free(clconv_launch *l)
{
    if (!l)
        return;
    for (int i = 0; i < CLCONV_MAX_STEPS; ++i) {
        for (int j = 0; j < CLCONV_MAX_PASSES; ++j)
            if (l->step[i].pass[j])
                clReleaseKernel(l->step[i].pass[j]);
        if (l->step[i].program)
            clReleaseProgram(l->step[i].program);
    }
    clconv_mutex_free(l->mutex);
    free(l);
}

/* Compiled for this work-group, by an attribute in its text? Then it fits,
 * whatever the driver says of its limit (Mesa 22.3: always 32). */
static bool is_compiled_for(cl_kernel kernel, cl_device_id device, size_t local)
{
    size_t size[3] = {0};
    cl_int error = clGetKernelWorkGroupInfo(kernel, device,
                                            CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                            sizeof size, size, NULL);
    return error == CL_SUCCESS && size[0] == local;
}

/* Registers may leave a kernel fewer work-items than its device has. */
static clconv_status check_local(const clconv_launch *l, cl_kernel kernel,
                                 const clconv_pass *pass)
{
    if (is_compiled_for(kernel, l->device, pass->local))
        return CLCONV_OK;
    size_t most = SIZE_MAX;
    cl_int error = clGetKernelWorkGroupInfo(
        kernel, l->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    if (error != CL_SUCCESS || pass->local <= most)
        return CLCONV_OK;
    return clconv_fail(CLCONV_BUILD_FAILED,
                       "kernel %s has work-groups of %zu, the device runs it "
                       "with at most %zu",
                       pass->entry, pass->local, most);
}

clconv_status clconv_launch_add(clconv_launch *l, int step, cl_program program)
{
    step_kernels *made = &l->step[step];
    made->program = program;
    clconv_task task = clconv_step_task(l->steps, step, l->facts);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count =
        l->steps->step[step].kernel->passes(&task, l->steps->problem.n, pass);
    for (int i = 0; i < count; ++i) {
        cl_int error;
        made->pass[i] = clCreateKernel(program, pass[i].entry, &error);
        if (!made->pass[i]) {
            clconv_status status = clconv_cl_fail("clCreateKernel", error);
            clconv_fail_prefix("kernel %s: ", pass[i].entry);
            return status;
        }
        clconv_status status = check_local(l, made->pass[i], &pass[i]);
        if (status != CLCONV_OK)
            return status;
    }
    return CLCONV_OK;
}

void clconv_launch_refresh(clconv_launch *l, clconv_cache *cache)
{
    if (!l->launched)
        return;
    for (int i = 0; i < l->steps->count; ++i)
        clconv_cache_refresh(cache, l->step[i].program);
}

/* ---- Which passes run -------------------------------------------------- */

typedef struct job {
    int step;
    cl_kernel kernel;
    const clconv_map_template *map; /* by operand; NULL: emulated */
    clconv_pass pass;
} job;

typedef struct jobs {
    int count;
    job job[CLCONV_MAX_STEPS * CLCONV_MAX_PASSES];
} jobs;

/* Is there an operand that the pass reads, if it reads any? For counting alone,
 * the caller may leave out those that no wanted output needs; a pass that counts
 * several reads those that are given. */
static bool has_operand(const clconv_pass *pass, const clconv_call *call)
{
    bool reads_any = false;
    for (int i = 0; i < pass->arg_count; ++i) {
        const clconv_arg *arg = &pass->args[i];
        bool reads =
            arg->kind == CLCONV_ARG_TENSOR || arg->kind == CLCONV_ARG_OPERAND;
        if (!reads || arg->tensor > CLCONV_W)
            continue;
        if (call->tensor[arg->tensor].mem)
            return true;
        reads_any = true;
    }
    return !reads_any;
}

static bool runs(const clconv_pass *pass, const clconv_call *call)
{
    if (pass->groups == 0)
        return false;
    if (pass->serves & call->wanted)
        return true;
    return pass->counts && !(pass->unless & call->wanted) && call->report.mem &&
           has_operand(pass, call);
}

static void collect_jobs(const clconv_launch *l, const clconv_call *call,
                         jobs *out)
{
    out->count = 0;
    for (int i = 0; i < l->steps->count; ++i) {
        clconv_task task = clconv_step_task(l->steps, i, l->facts);
        clconv_pass pass[CLCONV_MAX_PASSES];
        int count = l->steps->step[i].kernel->passes(&task, call->batch, pass);
        for (int j = 0; j < count; ++j)
            if (runs(&pass[j], call))
                out->job[out->count++] = (job){
                    .step = i,
                    .kernel = l->step[i].pass[j],
                    .map = l->facts->unit_emulated ? NULL : l->step[i].map[j],
                    .pass = pass[j],
                };
    }
}

/* ---- Arguments --------------------------------------------------------- */

/* Binds one argument after the other; the first error stays. */
typedef struct binder {
    const clconv_steps *steps;
    const clconv_step *step;
    const clconv_call *call;
    const clconv_pass *pass;
    const clconv_map_template *map; /* the job's */
    const clconv_device *facts;
    clconv_problem problem; /* of this call */
    cl_kernel kernel;
    cl_uint next;
    cl_int error;
} binder;

static void bind_value(binder *b, size_t size, const void *value)
{
    if (b->error == CL_SUCCESS)
        b->error = clSetKernelArg(b->kernel, b->next++, size, value);
}

/* Pointer, then offset in units of so many bytes. */
static void bind_buffer(binder *b, clconv_buffer buffer, size_t extra,
                        size_t unit)
{
    cl_long offset = 0;
    if (buffer.mem)
        offset = (cl_long)((buffer.offset + extra) / unit);
    bind_value(b, sizeof buffer.mem, buffer.mem ? &buffer.mem : NULL);
    bind_value(b, sizeof offset, &offset);
}

static void bind_tensor(binder *b, clconv_tensor t)
{
    size_t unit = b->problem.type[t] == CLCONV_F16 ? 2 : 4;
    bind_buffer(b, b->call->tensor[t], 0, unit);
}

static void bind_copy(binder *b, clconv_tensor t)
{
    bind_buffer(b, b->call->workspace, b->steps->copy_offset[t], 2);
}

static void bind_packed(binder *b, clconv_tensor t)
{
    bind_buffer(b, b->call->workspace, b->steps->packed_offset[t], 2);
}

static void bind_operand(binder *b, clconv_tensor t)
{
    if (b->step->copies & CLCONV_PACKED(t))
        bind_packed(b, t);
    else if (b->step->copies & CLCONV_BIT(t))
        bind_copy(b, t);
    else
        bind_tensor(b, t);
}

/* Pointer, offset, then how they lie. */
static void bind_bias_sums(binder *b)
{
    size_t offset;
    clconv_bias_sums sums =
        clconv_steps_bias_sums(b->steps, b->facts, b->call->batch, &offset);
    cl_int count = (cl_int)sums.count, run = (cl_int)sums.run;
    bind_buffer(b, b->call->workspace, offset, 4);
    bind_value(b, sizeof count, &count);
    bind_value(b, sizeof run, &run);
}

static void bind_batch(binder *b)
{
    cl_int batch = (cl_int)b->call->batch;
    bind_value(b, sizeof batch, &batch);
}

static void bind_elements(binder *b, clconv_tensor t)
{
    cl_long elements = clconv_problem_elements(&b->problem, t);
    bind_value(b, sizeof elements, &elements);
}

/* Baked, all but the batch stand in the text. */
static void bind_sizes(binder *b)
{
    clconv_sizes sizes;
    if (clconv_kernel_bakes(b->step->kernel, b->step->values)) {
        bind_batch(b);
        return;
    }
    clconv_problem p = b->problem;
    if (b->pass->merge)
        p = clconv_problem_merge_groups(&p, b->pass->merge);
    clconv_sizes_fill(&p, b->call->batch, &sizes);
    bind_value(b, sizeof sizes, &sizes);
}

static void bind_map(binder *b, clconv_tensor t)
{
    const clconv_tensor_map *map = &b->pass->map[t];
    uint64_t word[CLCONV_TENSOR_MAP_WORDS];
    if (b->map)
        clconv_map_template_fill(&b->map[t], clconv_map_images(map), word);
    else
        clconv_tensor_map_describe(map, word);
    bind_value(b, sizeof word, word);
}

static void bind_arg(binder *b, const clconv_arg *arg)
{
    clconv_tensor t = arg->tensor;
    switch (arg->kind) {
    case CLCONV_ARG_TENSOR: bind_tensor(b, t); break;
    case CLCONV_ARG_COPY: bind_copy(b, t); break;
    case CLCONV_ARG_PACKED: bind_packed(b, t); break;
    case CLCONV_ARG_OPERAND: bind_operand(b, t); break;
    case CLCONV_ARG_SCRATCH:
        bind_buffer(b, b->call->workspace, b->step->scratch_offset, 4);
        break;
    case CLCONV_ARG_BIAS_SUMS: bind_bias_sums(b); break;
    case CLCONV_ARG_COUNTS: /* in the order of clconv_report */
        bind_buffer(b, b->call->report, t * sizeof(clconv_counts), 4);
        break;
    case CLCONV_ARG_BETA:
        bind_value(b, sizeof b->call->beta[t], &b->call->beta[t]);
        break;
    case CLCONV_ARG_BATCH: bind_batch(b); break;
    case CLCONV_ARG_ELEMENTS: bind_elements(b, t); break;
    case CLCONV_ARG_SIZES: bind_sizes(b); break;
    case CLCONV_ARG_SHAPE:
    case CLCONV_ARG_CALL:
        bind_value(b, (size_t)b->pass->shape_count * sizeof *b->pass->shape,
                   b->pass->shape);
        break;
    case CLCONV_ARG_MAP: bind_map(b, t); break;
    }
}

static clconv_status bind_job(const clconv_launch *l, const clconv_call *call,
                              const job *j)
{
    binder b = {
        .steps = l->steps,
        .step = &l->steps->step[j->step],
        .call = call,
        .pass = &j->pass,
        .map = j->map,
        .facts = l->facts,
        .problem = clconv_call_problem(l->steps, call->batch),
        .kernel = j->kernel,
    };
    for (int i = 0; i < j->pass.arg_count; ++i)
        bind_arg(&b, &j->pass.args[i]);
    if (b.error == CL_SUCCESS)
        return CLCONV_OK;
    return clconv_cl_fail("clSetKernelArg", b.error);
}

/* ---- Enqueue ----------------------------------------------------------- */

/* Where a call goes, and what it waits for and signals. */
typedef struct target {
    cl_command_queue queue;
    bool out_of_order;
    cl_uint wait_count;
    const cl_event *wait_list;
    cl_event *event; /* NULL: not wanted */
} target;

static clconv_status query_order(target *to)
{
    cl_command_queue_properties properties = 0;
    cl_int error = clGetCommandQueueInfo(to->queue, CL_QUEUE_PROPERTIES,
                                         sizeof properties, &properties, NULL);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetCommandQueueInfo", error);
    to->out_of_order =
        (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
    return CLCONV_OK;
}

/* The first job waits for the caller's events, a later one for before, if
 * there is that. */
static clconv_status enqueue_job(const target *to, const job *j, bool first,
                                 cl_event before, cl_event *event)
{
    size_t global = j->pass.groups * j->pass.local;
    cl_uint count = before ? 1 : 0;
    const cl_event *list = before ? &before : NULL;
    if (first) {
        count = to->wait_count;
        list = to->wait_list;
    }
    cl_int error = clEnqueueNDRangeKernel(to->queue, j->kernel, 1, NULL, &global,
                                          &j->pass.local, count, list, event);
    if (error == CL_SUCCESS)
        return CLCONV_OK;
    return clconv_cl_fail("clEnqueueNDRangeKernel", error);
}

static clconv_status run_jobs(const clconv_launch *l, const clconv_call *call,
                              const jobs *list, const target *to)
{
    cl_event before = NULL;
    clconv_status status = CLCONV_OK;
    for (int i = 0; i < list->count && status == CLCONV_OK; ++i) {
        const job *j = &list->job[i];
        bool last = i == list->count - 1;
        bool signals = last ? to->event != NULL : to->out_of_order;
        cl_event event = NULL;
        status = bind_job(l, call, j);
        if (status == CLCONV_OK)
            status = enqueue_job(to, j, i == 0, before, signals ? &event : NULL);
        if (status != CLCONV_OK)
            clconv_fail_prefix("kernel %s: ", j->pass.entry);
        if (before)
            clReleaseEvent(before);
        before = event;
    }
    if (status == CLCONV_OK && to->event)
        *to->event = before;
    else if (before)
        clReleaseEvent(before);
    return status;
}

/* No output is wanted, or none has an element. */
static clconv_status run_nothing(const target *to)
{
    if (to->wait_count == 0 && !to->event)
        return CLCONV_OK;
    cl_int error = clEnqueueMarkerWithWaitList(to->queue, to->wait_count,
                                               to->wait_list, to->event);
    if (error == CL_SUCCESS)
        return CLCONV_OK;
    return clconv_cl_fail("clEnqueueMarkerWithWaitList", error);
}

static clconv_status own_workspace(const clconv_launch *l, cl_mem *out)
{
    cl_int error;
    cl_mem mem =
        clCreateBuffer(l->context, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS,
                       l->steps->workspace, NULL, &error);
    if (!mem) {
        clconv_status status = clconv_cl_fail("clCreateBuffer", error);
        clconv_fail_prefix("workspace of %zu bytes: ", l->steps->workspace);
        return status;
    }
    *out = mem;
    return CLCONV_OK;
}

/* OpenCL keeps a released buffer until the commands that use it are done. */
static clconv_status run_with_workspace(clconv_launch *l, clconv_call call,
                                        const jobs *list, const target *to)
{
    cl_mem own = NULL;
    if (!call.workspace.mem && l->steps->workspace > 0) {
        clconv_status status = own_workspace(l, &own);
        if (status != CLCONV_OK)
            return status;
        call.workspace = (clconv_buffer){own, 0};
    }
    clconv_mutex_lock(l->mutex);
    l->launched = true;
    clconv_status status = run_jobs(l, &call, list, to);
    clconv_mutex_unlock(l->mutex);
    if (own)
        clReleaseMemObject(own);
    return status;
}

clconv_status clconv_launch_run(clconv_launch *l, cl_command_queue queue,
                                const clconv_call *call, cl_uint wait_count,
                                const cl_event *wait_list, cl_event *event)
{
    target to = {
        .queue = queue,
        .wait_count = wait_count,
        .wait_list = wait_list,
        .event = event,
    };
    jobs list;
    collect_jobs(l, call, &list);
    if (list.count == 0)
        return run_nothing(&to);
    clconv_status status = query_order(&to);
    if (status == CLCONV_OK)
        status = run_with_workspace(l, *call, &list, &to);
    if (status != CLCONV_OK)
        clconv_fail_prefix("the outputs are undefined: ");
    return status;
}
