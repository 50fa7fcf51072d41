/*
 * A place is a range of bytes in a memory object that is no sub-buffer: ours
 * are resolved to their parent, so that two sub-buffers of one parent, or one
 * and its parent, are seen to overlap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_call.h"

#include <inttypes.h>
#include <math.h>

#include "cl_error.h"

#define INVALID(...) clconv_fail(CLCONV_INVALID_ARGUMENT, __VA_ARGS__)

/* The tensors, then workspace and report. */
enum { WORKSPACE = CLCONV_TENSORS, REPORT, PLACES };

typedef struct place {
    const char *name;
    cl_mem root;       /* NULL: nothing is there */
    size_t begin, end; /* bytes of root */
    bool written;
} place;

clconv_problem clconv_call_problem(const clconv_steps *steps, int64_t batch)
{
    clconv_problem p = steps->problem;
    p.n = batch;
    return p;
}

/* ---- Numbers and presence ---------------------------------------------- */

static const struct {
    clconv_op op;
    clconv_tensor tensor;
    const char *name, *beta;
} outputs[] = {
    {CLCONV_OP_DW, CLCONV_DW, "CLCONV_OP_DW", "beta_w"},
    {CLCONV_OP_DB, CLCONV_DB, "CLCONV_OP_DB", "beta_b"},
    {CLCONV_OP_DX, CLCONV_DX, "CLCONV_OP_DX", "beta_x"},
    {CLCONV_OP_FORWARD, CLCONV_Y, "CLCONV_OP_FORWARD", "beta_y"},
};

enum { OUTPUTS = sizeof outputs / sizeof *outputs };

static int64_t batch_of(const clconv_steps *steps, int64_t batch)
{
    return batch == -1 ? steps->problem.n : batch;
}

static void copy_args(const clconv_steps *steps,
                      const clconv_backward_args *args, clconv_call *out)
{
    *out = (clconv_call){
        .batch = batch_of(steps, args->batch),
        .tensor =
            {
                [CLCONV_DY] = args->dy,
                [CLCONV_X] = args->x,
                [CLCONV_W] = args->w,
                [CLCONV_DW] = args->dw,
                [CLCONV_DB] = args->db,
                [CLCONV_DX] = args->dx,
            },
        .beta =
            {
                [CLCONV_DW] = args->beta_w,
                [CLCONV_DB] = args->beta_b,
                [CLCONV_DX] = args->beta_x,
            },
        .workspace = args->workspace,
        .report = args->report,
    };
}

static void copy_forward_args(const clconv_steps *steps,
                              const clconv_forward_args *args, clconv_call *out)
{
    *out = (clconv_call){
        .batch = batch_of(steps, args->batch),
        .tensor =
            {
                [CLCONV_X] = args->x,
                [CLCONV_W] = args->w,
                [CLCONV_B] = args->b,
                [CLCONV_Y] = args->y,
            },
        .beta = {[CLCONV_Y] = args->beta_y},
        .workspace = args->workspace,
        .report = args->report,
    };
}

static unsigned wanted_outputs(const clconv_call *call)
{
    unsigned wanted = 0;
    for (int i = 0; i < OUTPUTS; ++i)
        if (call->tensor[outputs[i].tensor].mem)
            wanted |= (unsigned)outputs[i].op;
    return wanted;
}

static clconv_status check_numbers(const clconv_steps *steps,
                                   const clconv_call *call)
{
    if (call->batch < 0 || call->batch > steps->problem.n)
        return INVALID("args.batch is %" PRId64 "; it must be in [0, %" PRId64
                       "] (the description's n), or -1 for all of it",
                       call->batch, steps->problem.n);
    for (int i = 0; i < OUTPUTS; ++i)
        if (!isfinite(call->beta[outputs[i].tensor]))
            return INVALID("args.%s must be finite", outputs[i].beta);
    return CLCONV_OK;
}

/* Without images no input is read, so none is asked for. */
static clconv_status check_presence(const clconv_steps *steps,
                                    const clconv_call *call)
{
    for (int i = 0; i < OUTPUTS; ++i)
        if (call->wanted & ~steps->ops & (unsigned)outputs[i].op)
            return INVALID("args.%s is given, but the plan was created "
                           "without %s",
                           clconv_tensor_name(outputs[i].tensor),
                           outputs[i].name);
    if (call->batch == 0)
        return CLCONV_OK;
    const unsigned readers[] = {
        [CLCONV_DY] = CLCONV_OP_BACKWARD,
        [CLCONV_X] = CLCONV_OP_DW | CLCONV_OP_FORWARD,
        [CLCONV_W] = CLCONV_OP_DX | CLCONV_OP_FORWARD,
    };
    bool forward = (call->wanted & CLCONV_OP_FORWARD) != 0;
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t)
        if ((call->wanted & readers[t]) && !call->tensor[t].mem)
            return INVALID("args.%s.mem is NULL, but %s needs it",
                           clconv_tensor_name(t),
                           t == CLCONV_DY  ? "every output"
                           : forward       ? "y"
                           : t == CLCONV_X ? "dw"
                                           : "dx");
    return CLCONV_OK;
}

/* ---- One buffer -------------------------------------------------------- */

#define MEM_INFO(mem, name, out)                                               \
    clGetMemObjectInfo(mem, name, sizeof *(out), out, NULL)

static clconv_status check_object(cl_context context, const char *name,
                                  cl_mem mem)
{
    cl_mem_object_type type;
    cl_context owner;
    cl_int error = MEM_INFO(mem, CL_MEM_TYPE, &type);
    if (error == CL_SUCCESS)
        error = MEM_INFO(mem, CL_MEM_CONTEXT, &owner);
    if (error == CL_INVALID_MEM_OBJECT)
        return INVALID("args.%s.mem is not a memory object", name);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetMemObjectInfo", error);
    if (type != CL_MEM_OBJECT_BUFFER)
        return INVALID("args.%s.mem must be a buffer, not an image or pipe",
                       name);
    if (owner != context)
        return INVALID("args.%s.mem belongs to another cl_context than the "
                       "plan",
                       name);
    return CLCONV_OK;
}

static clconv_status check_access(const char *name, cl_mem mem, bool read,
                                  bool written)
{
    cl_mem_flags flags = 0;
    cl_int error = MEM_INFO(mem, CL_MEM_FLAGS, &flags);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetMemObjectInfo", error);
    if (written && (flags & CL_MEM_READ_ONLY))
        return INVALID("args.%s.mem is written, but CL_MEM_READ_ONLY", name);
    if (read && (flags & CL_MEM_WRITE_ONLY))
        return INVALID("args.%s.mem is read, but CL_MEM_WRITE_ONLY", name);
    return CLCONV_OK;
}

static clconv_status check_size(const char *name, clconv_buffer buffer,
                                size_t bytes, size_t alignment)
{
    if (buffer.offset % alignment != 0)
        return INVALID("args.%s.offset is %zu; it must be a multiple of %zu "
                       "bytes",
                       name, buffer.offset, alignment);
    size_t size = 0;
    cl_int error = MEM_INFO(buffer.mem, CL_MEM_SIZE, &size);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetMemObjectInfo", error);
    if (buffer.offset > size || bytes > size - buffer.offset)
        return INVALID("args.%s.mem has %zu bytes; from offset %zu on, %zu "
                       "are needed",
                       name, size, buffer.offset, bytes);
    return CLCONV_OK;
}

static clconv_status find_place(clconv_buffer buffer, size_t bytes, place *out)
{
    cl_mem parent = NULL;
    size_t origin = 0;
    cl_int error = MEM_INFO(buffer.mem, CL_MEM_ASSOCIATED_MEMOBJECT, &parent);
    if (error == CL_SUCCESS && parent)
        error = MEM_INFO(buffer.mem, CL_MEM_OFFSET, &origin);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetMemObjectInfo", error);
    out->root = parent ? parent : buffer.mem;
    out->begin = origin + buffer.offset;
    out->end = out->begin + bytes;
    return CLCONV_OK;
}

/* bytes and alignment that the buffer must have; out names it. */
static clconv_status check_buffer(cl_context context, clconv_buffer buffer,
                                  size_t bytes, size_t alignment, bool read,
                                  place *out)
{
    if (!buffer.mem)
        return CLCONV_OK;
    clconv_status status = check_object(context, out->name, buffer.mem);
    if (status == CLCONV_OK)
        status = check_size(out->name, buffer, bytes, alignment);
    if (status == CLCONV_OK)
        status = check_access(out->name, buffer.mem, read, out->written);
    if (status == CLCONV_OK)
        status = find_place(buffer, bytes, out);
    return status;
}

/* ---- All buffers ------------------------------------------------------- */

static bool overlap(const place *a, const place *b)
{
    return a->root && a->root == b->root && a->begin < b->end &&
           b->begin < a->end;
}

static clconv_status check_overlaps(const place places[PLACES])
{
    for (int i = 0; i < PLACES; ++i)
        for (int j = i + 1; j < PLACES; ++j) {
            const place *a = &places[i], *b = &places[j];
            if ((a->written || b->written) && overlap(a, b))
                return INVALID("args.%s and args.%s overlap; what is written "
                               "must not overlap another buffer",
                               a->name, b->name);
        }
    return CLCONV_OK;
}

static clconv_status check_tensors(cl_context context, const clconv_steps *steps,
                                   const clconv_call *call, place places[PLACES])
{
    clconv_problem p = clconv_call_problem(steps, call->batch);
    clconv_status status = CLCONV_OK;
    for (clconv_tensor t = 0; t < CLCONV_TENSORS && status == CLCONV_OK; ++t) {
        bool written = !clconv_tensor_is_input(t);
        bool read = !written || call->beta[t] != 0.0f;
        places[t] = (place){
            .name = clconv_tensor_name(t),
            .written = written,
        };
        status =
            check_buffer(context, call->tensor[t], clconv_problem_bytes(&p, t),
                         p.alignment, read, &places[t]);
    }
    return status;
}

static clconv_status check_buffers(cl_context context, const clconv_steps *steps,
                                   const clconv_call *call)
{
    place places[PLACES] = {
        [WORKSPACE] = {.name = "workspace", .written = true},
        [REPORT] = {.name = "report", .written = true},
    };
    clconv_status status = check_tensors(context, steps, call, places);
    if (status == CLCONV_OK)
        status = check_buffer(context, call->workspace, steps->workspace,
                              CLCONV_WORKSPACE_ALIGN, true, &places[WORKSPACE]);
    if (status == CLCONV_OK)
        status = check_buffer(context, call->report, sizeof(clconv_report), 8,
                              true, &places[REPORT]);
    if (status == CLCONV_OK)
        status = check_overlaps(places);
    return status;
}

/* What is left once the arguments stand in the call. */
static clconv_status check_call(cl_context context, const clconv_steps *steps,
                                clconv_call *call)
{
    call->wanted = wanted_outputs(call);
    clconv_status status = check_numbers(steps, call);
    if (status == CLCONV_OK)
        status = check_presence(steps, call);
    if (status == CLCONV_OK)
        status = check_buffers(context, steps, call);
    if (call->batch == 0) /* they have no element */
        call->wanted &= ~(unsigned)(CLCONV_OP_DX | CLCONV_OP_FORWARD);
    return status;
}

clconv_status clconv_call_read(cl_context context, const clconv_steps *steps,
                               const clconv_backward_args *args,
                               clconv_call *out)
{
    clconv_call call;
    copy_args(steps, args, &call);
    clconv_status status = check_call(context, steps, &call);
    if (status == CLCONV_OK)
        *out = call;
    return status;
}

clconv_status clconv_call_read_forward(cl_context context,
                                       const clconv_steps *steps,
                                       const clconv_forward_args *args,
                                       clconv_call *out)
{
    clconv_call call;
    if (!args->y.mem)
        return INVALID("args.y.mem is NULL");
    copy_forward_args(steps, args, &call);
    clconv_status status = check_call(context, steps, &call);
    if (status == CLCONV_OK)
        *out = call;
    return status;
}

/* ---- Queue and events -------------------------------------------------- */

clconv_status clconv_call_check_queue(cl_context context, cl_device_id device,
                                      cl_command_queue queue)
{
    if (!queue)
        return INVALID("queue is NULL");
    cl_context owner = NULL;
    cl_device_id at = NULL;
    cl_int error = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof owner,
                                         &owner, NULL);
    if (error == CL_SUCCESS)
        error =
            clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof at, &at, NULL);
    if (error == CL_INVALID_COMMAND_QUEUE)
        return INVALID("queue is not a command queue");
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetCommandQueueInfo", error);
    if (owner != context)
        return INVALID("queue belongs to another cl_context than the plan");
    if (at != device)
        return INVALID("queue belongs to another device than the plan");
    return CLCONV_OK;
}

static clconv_status check_event(cl_context context, cl_uint index,
                                 cl_event event)
{
    cl_context owner = NULL;
    cl_int error = event ? clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof owner,
                                          &owner, NULL)
                         : CL_INVALID_EVENT;
    if (error == CL_INVALID_EVENT)
        return INVALID("event_wait_list[%u] is not an event", (unsigned)index);
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetEventInfo", error);
    if (owner != context)
        return INVALID("event_wait_list[%u] belongs to another cl_context "
                       "than the plan",
                       (unsigned)index);
    return CLCONV_OK;
}

clconv_status clconv_call_check_wait_list(cl_context context, cl_uint count,
                                          const cl_event *list)
{
    if ((count == 0) != (list == NULL))
        return INVALID("num_events_in_wait_list is %u, but event_wait_list is "
                       "%sNULL",
                       (unsigned)count, list ? "not " : "");
    for (cl_uint i = 0; i < count; ++i) {
        clconv_status status = check_event(context, i, list[i]);
        if (status != CLCONV_OK)
            return status;
    }
    return CLCONV_OK;
}
