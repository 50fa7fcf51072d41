/*
 * Arguments that are refused, each by a sentence that names it, before
 * anything is enqueued: outputs and *event stay as they were.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"

static const char problem[] = "n2c3h6w5k4r3s2p1";

/* A call that can be spoiled, and what spoilers need beside the rig's. */
typedef struct call {
    rig rig;
    clconv_plan *plan;
    cl_command_queue queue;
    cl_uint wait_count;
    const cl_event *wait_list;
    size_t workspace; /* bytes */
    cl_context foreign;
    cl_mem scratch[4]; /* released afterwards */
    cl_event event;    /* likewise */
} call;

static cl_mem keep(call *c, cl_mem mem)
{
    cr_assert_not_null(mem);
    for (int i = 0; i < 4; ++i)
        if (!c->scratch[i])
            return c->scratch[i] = mem;
    cr_assert_fail("too many buffers");
    return NULL;
}

static cl_mem new_mem(call *c, cl_context context, cl_mem_flags flags,
                      size_t bytes)
{
    return keep(c, clCreateBuffer(context, flags, bytes, NULL, NULL));
}

static cl_mem new_buffer(call *c, size_t bytes)
{
    return new_mem(c, c->rig.host.context, CL_MEM_READ_WRITE, bytes);
}

static cl_context foreign_context(call *c)
{
    if (!c->foreign)
        c->foreign =
            clCreateContext(NULL, 1, &c->rig.host.device, NULL, NULL, NULL);
    cr_assert_not_null(c->foreign);
    return c->foreign;
}

/* ---- Spoilers ---------------------------------------------------------- */

static void no_plan(call *c)
{
    c->plan = NULL;
}

static void no_queue(call *c)
{
    c->queue = NULL;
}

static void foreign_queue(call *c)
{
    c->queue =
        clCreateCommandQueue(foreign_context(c), c->rig.host.device, 0, NULL);
}

static void size_of_args_zero(call *c)
{
    c->rig.args.struct_size = 0;
}

static void size_of_args_large(call *c)
{
    c->rig.args.struct_size++;
}

static void batch_negative(call *c)
{
    c->rig.args.batch = -2;
}

static void batch_large(call *c)
{
    c->rig.args.batch = c->rig.desc.n + 1;
}

static void beta_w_nan(call *c)
{
    c->rig.args.beta_w = NAN;
}

static void beta_b_inf(call *c)
{
    c->rig.args.beta_b = INFINITY;
}

static void beta_x_inf(call *c)
{
    c->rig.args.beta_x = -INFINITY;
}

static void no_dy(call *c)
{
    c->rig.args.dy.mem = NULL;
}

static void no_x(call *c)
{
    c->rig.args.x.mem = NULL;
}

static void no_w(call *c)
{
    c->rig.args.w.mem = NULL;
}

static void plan_without_dx(call *c)
{
    cr_assert_eq(clconv_plan_create(c->rig.context, &c->rig.desc,
                                    CLCONV_OP_DW | CLCONV_OP_DB, NULL, &c->plan),
                 CLCONV_OK, "%s", clconv_last_error());
}

static void plan_without_db(call *c)
{
    cr_assert_eq(clconv_plan_create(c->rig.context, &c->rig.desc,
                                    CLCONV_OP_DW | CLCONV_OP_DX, NULL, &c->plan),
                 CLCONV_OK, "%s", clconv_last_error());
}

static void dy_short(call *c)
{
    c->rig.args.dy.mem = new_buffer(c, c->rig.elements[RIG_DY] * 4 - 1);
}

static void dx_short_from_offset(call *c)
{
    c->rig.args.dx =
        (clconv_buffer){new_buffer(c, c->rig.elements[RIG_DX] * 4), 16};
}

static void offset_past_the_end(call *c)
{
    c->rig.args.x.offset = (size_t)-16;
}

static void offset_unaligned(call *c)
{
    c->rig.args.w.offset = 8;
}

static void foreign_buffer(call *c)
{
    c->rig.args.w.mem = new_mem(c, foreign_context(c), CL_MEM_READ_WRITE,
                                c->rig.elements[RIG_W] * 4);
}

static void output_read_only(call *c)
{
    c->rig.args.db.mem = new_mem(c, c->rig.host.context, CL_MEM_READ_ONLY, 64);
}

static void input_write_only(call *c)
{
    c->rig.args.x.mem = new_mem(c, c->rig.host.context, CL_MEM_WRITE_ONLY,
                                c->rig.elements[RIG_X] * 4);
}

static void beta_of_write_only(call *c)
{
    c->rig.args.db.mem = new_mem(c, c->rig.host.context, CL_MEM_WRITE_ONLY, 64);
    c->rig.args.beta_b = 1;
}

static void image_as_buffer(call *c)
{
    cl_image_format format = {CL_RGBA, CL_FLOAT};
    cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D,
        .image_width = 64,
        .image_height = 64,
    };
    cl_mem image = clCreateImage(c->rig.host.context, CL_MEM_READ_WRITE,
                                 &format, &desc, NULL, NULL);
    if (!image) /* a device without images: any other fault will do */
        no_x(c);
    else
        c->rig.args.x.mem = keep(c, image);
}

static void dx_is_x(call *c)
{
    c->rig.args.dx.mem = c->rig.args.x.mem;
}

static void dw_meets_db(call *c)
{
    cl_mem both = new_buffer(c, 4096);
    size_t bytes = c->rig.elements[RIG_DW] * 4;
    c->rig.args.dw = (clconv_buffer){both, 0};
    c->rig.args.db = (clconv_buffer){both, (bytes - 1) / 16 * 16};
}

static cl_mem part_of(call *c, cl_mem parent, size_t origin, size_t size)
{
    cl_buffer_region region = {origin, size};
    return keep(c,
                clCreateSubBuffer(parent, CL_MEM_READ_WRITE,
                                  CL_BUFFER_CREATE_TYPE_REGION, &region, NULL));
}

static void parts_of_one_parent_meet(call *c)
{
    cl_mem parent = new_buffer(c, 16384);
    c->rig.args.dx.mem = part_of(c, parent, 0, 8192);
    c->rig.args.dw.mem = part_of(c, parent, 4096, 8192);
    c->rig.args.dx.offset = 4096;
    c->rig.args.dw.offset = 0;
}

static void part_meets_its_parent(call *c)
{
    cl_mem parent = new_buffer(c, 16384);
    c->rig.args.dw.mem = part_of(c, parent, 4096, 4096);
    c->rig.args.dy = (clconv_buffer){parent, 4096 + 64};
}

static void workspace_short(call *c)
{
    c->rig.args.workspace.mem = new_buffer(c, c->workspace - 1);
}

static void workspace_unaligned(call *c)
{
    c->rig.args.workspace =
        (clconv_buffer){new_buffer(c, c->workspace + 256), 128};
}

static void workspace_is_dy(call *c)
{
    c->rig.args.workspace.mem = c->rig.args.dy.mem =
        new_buffer(c, c->workspace + c->rig.elements[RIG_DY] * 4);
}

static void report_short(call *c)
{
    c->rig.args.report.mem = new_buffer(c, sizeof(clconv_report) - 1);
}

static void report_unaligned(call *c)
{
    c->rig.args.report =
        (clconv_buffer){new_buffer(c, 2 * sizeof(clconv_report)), 4};
}

static void report_in_the_workspace(call *c)
{
    c->rig.args.workspace.mem = c->rig.args.report.mem =
        new_buffer(c, c->workspace + sizeof(clconv_report));
}

static void count_without_list(call *c)
{
    c->wait_count = 1;
}

static void list_without_count(call *c)
{
    c->wait_list = &c->event;
}

static void null_in_the_list(call *c)
{
    c->wait_list = &c->event;
    c->wait_count = 1;
}

static void foreign_event(call *c)
{
    c->event = clCreateUserEvent(foreign_context(c), NULL);
    c->wait_list = &c->event;
    c->wait_count = 1;
}

static const struct {
    void (*spoil)(call *c);
    const char *said; /* a part of the sentence */
} faults[] = {
    {no_plan, "plan is NULL"},
    {no_queue, "queue is NULL"},
    {foreign_queue, "queue belongs to another cl_context"},
    {size_of_args_zero, "args.struct_size is 0"},
    {size_of_args_large, "args.struct_size"},
    {batch_negative, "args.batch is -2; it must be in [0, 2]"},
    {batch_large, "args.batch is 3; it must be in [0, 2]"},
    {beta_w_nan, "args.beta_w must be finite"},
    {beta_b_inf, "args.beta_b must be finite"},
    {beta_x_inf, "args.beta_x must be finite"},
    {no_dy, "args.dy.mem is NULL"},
    {no_x, "args.x.mem is NULL"},
    {no_w, "args.w.mem is NULL"},
    {plan_without_dx, "args.dx is given, but the plan was created without "
                      "CLCONV_OP_DX"},
    {plan_without_db, "args.db is given"},
    {dy_short, "args.dy.mem has"},
    {dx_short_from_offset, "args.dx.mem has"},
    {offset_past_the_end, "args.x.mem has"},
    {offset_unaligned, "args.w.offset is 8; it must be a multiple of 16"},
    {foreign_buffer, "args.w.mem belongs to another cl_context"},
    {output_read_only, "args.db.mem is written, but CL_MEM_READ_ONLY"},
    {input_write_only, "args.x.mem is read, but CL_MEM_WRITE_ONLY"},
    {beta_of_write_only, "args.db.mem is read, but CL_MEM_WRITE_ONLY"},
    {image_as_buffer, "args.x.mem"},
    {dx_is_x, "args.x and args.dx overlap"},
    {dw_meets_db, "args.dw and args.db overlap"},
    {parts_of_one_parent_meet, "args.dw and args.dx overlap"},
    {part_meets_its_parent, "args.dy and args.dw overlap"},
    {workspace_short, "args.workspace.mem has"},
    {workspace_unaligned, "args.workspace.offset is 128; it must be a multiple "
                          "of 256"},
    {workspace_is_dy, "args.dy and args.workspace overlap"},
    {report_short, "args.report.mem has"},
    {report_unaligned, "args.report.offset is 4; it must be a multiple of 8"},
    {report_in_the_workspace, "args.workspace and args.report overlap"},
    {count_without_list, "num_events_in_wait_list is 1, but event_wait_list "
                         "is NULL"},
    {list_without_count, "num_events_in_wait_list is 0, but event_wait_list "
                         "is not NULL"},
    {null_in_the_list, "event_wait_list[0] is not an event"},
    {foreign_event, "event_wait_list[0] belongs to another cl_context"},
};

static void clean_up(call *c)
{
    for (int i = 3; i >= 0; --i) /* parts before their parents */
        if (c->scratch[i])
            clReleaseMemObject(c->scratch[i]);
    if (c->queue && c->queue != c->rig.host.queue)
        clReleaseCommandQueue(c->queue);
    if (c->plan != c->rig.plan)
        clconv_plan_release(c->plan);
    if (c->event) { /* a driver may wait for it when its context goes */
        clSetUserEventStatus(c->event, CL_COMPLETE);
        clReleaseEvent(c->event);
    }
    if (c->foreign)
        clReleaseContext(c->foreign);
}

Test(arguments, each_fault_is_named_and_nothing_runs)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
        const char *said = faults[i].said;
        call c = {.rig = r, .plan = r.plan, .queue = r.host.queue};
        clconv_plan_workspace_size(r.plan, &c.workspace);
        cl_event event = NULL;
        faults[i].spoil(&c);
        cr_assert_eq(clconv_enqueue_backward(c.plan, c.queue, &c.rig.args,
                                             c.wait_count, c.wait_list, &event),
                     CLCONV_INVALID_ARGUMENT, "%s", said);
        cr_assert_not_null(strstr(clconv_last_error(), said),
                           "\"%s\" is not in: %s", said, clconv_last_error());
        cr_assert_null(event, "%s", said);
        host_finish(&r.host);
        rig_expect_untouched(&r);
        clean_up(&c);
    }
    rig_run(&r); /* and the call itself is right */
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(arguments, null_args_are_refused)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    cr_assert_eq(
        clconv_enqueue_backward(r.plan, r.host.queue, NULL, 0, NULL, NULL),
        CLCONV_INVALID_ARGUMENT);
    cr_assert_str_eq(clconv_last_error(), "args is NULL");
    rig_close(&r);
}

Test(arguments, neighbours_in_one_buffer_do_not_overlap)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    size_t dw = (r.elements[RIG_DW] * 4 + 15) / 16 * 16;
    cl_mem both = host_buffer(&r.host, dw + r.elements[RIG_DB] * 4, NULL);
    r.args.dw = (clconv_buffer){both, 0};
    r.args.db = (clconv_buffer){both, dw};
    rig_run(&r);
    clReleaseMemObject(both);
    rig_close(&r);
}

Test(arguments, a_shorter_struct_of_an_older_caller_gets_defaults)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    r.args.struct_size = offsetof(clconv_backward_args, workspace);
    r.args.workspace.mem = (cl_mem)&r; /* past the end: must not be seen */
    r.args.report.mem = (cl_mem)&r;
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

/* ---- Context and plan -------------------------------------------------- */

#define EXPECT(call, status, said)                                             \
    do {                                                                       \
        cr_assert_eq(call, status, "%s", said);                                \
        cr_assert_not_null(strstr(clconv_last_error(), said),                  \
                           "\"%s\" is not in: %s", said, clconv_last_error()); \
    } while (0)

Test(arguments, a_context_refuses_what_is_not_there)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_context *c = NULL;
    EXPECT(clconv_context_create(NULL, r.host.device, NULL, &c),
           CLCONV_INVALID_ARGUMENT, "cl_ctx must not be NULL");
    EXPECT(clconv_context_create(r.host.context, NULL, NULL, &c),
           CLCONV_INVALID_ARGUMENT, "device must not be NULL");
    EXPECT(clconv_context_create(r.host.context, r.host.device, NULL, NULL),
           CLCONV_INVALID_ARGUMENT, "out is NULL");
    EXPECT(clconv_context_create(r.host.context, (cl_device_id)r.host.context,
                                 NULL, &c),
           CLCONV_INVALID_ARGUMENT, "one of the devices of cl_ctx");
    clconv_context_options options = {0};
    EXPECT(clconv_context_create(r.host.context, r.host.device, &options, &c),
           CLCONV_INVALID_ARGUMENT, "options.struct_size is 0");
    clconv_context_options_init(&options);
    options.emulate_unit = "mma_m1n1k1";
    EXPECT(clconv_context_create(r.host.context, r.host.device, &options, &c),
           CLCONV_INVALID_ARGUMENT, "mma_m16n8k16");
    cr_assert_null(c);
    rig_close(&r);
}

static clconv_status create(const rig *r, unsigned ops,
                            const clconv_plan_options *options)
{
    clconv_plan *plan = NULL;
    clconv_status status =
        clconv_plan_create(r->context, &r->desc, ops, options, &plan);
    cr_assert_null(plan);
    return status;
}

Test(arguments, a_plan_refuses_what_is_not_there)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan *plan = NULL;
    EXPECT(clconv_plan_create(NULL, &r.desc, 7, NULL, &plan),
           CLCONV_INVALID_ARGUMENT, "context is NULL");
    EXPECT(clconv_plan_create(r.context, NULL, 7, NULL, &plan),
           CLCONV_INVALID_ARGUMENT, "desc is NULL");
    EXPECT(clconv_plan_create(r.context, &r.desc, 7, NULL, NULL),
           CLCONV_INVALID_ARGUMENT, "out is NULL");
    EXPECT(create(&r, 0, NULL), CLCONV_INVALID_ARGUMENT, "ops is 0x0");
    EXPECT(create(&r, 16, NULL), CLCONV_INVALID_ARGUMENT, "ops is 0x10");
    EXPECT(create(&r, CLCONV_OP_FORWARD | 7, NULL), CLCONV_INVALID_ARGUMENT,
           "CLCONV_OP_FORWARD alone");
    r.desc.groups = 2;
    EXPECT(create(&r, 7, NULL), CLCONV_INVALID_ARGUMENT, "desc.groups is 2");
    r.desc.groups = 1;
    r.desc.scale = CLCONV_SCALE_DYNAMIC;
    EXPECT(create(&r, 7, NULL), CLCONV_UNSUPPORTED, "desc.scale");
    rig_close(&r);
}

Test(arguments, plan_options_are_checked)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan_options options = {0};
    EXPECT(create(&r, 7, &options), CLCONV_INVALID_ARGUMENT,
           "options.struct_size is 0");
    clconv_plan_options_init(&options);
    options.mode = CLCONV_PLAN_TUNED;
    EXPECT(create(&r, 7, &options), CLCONV_UNSUPPORTED, "options.mode");
    options.mode = CLCONV_PLAN_FIND;
    options.find_seconds = 0;
    EXPECT(create(&r, 7, &options), CLCONV_INVALID_ARGUMENT,
           "options.find_seconds is 0");
    options.mode = (clconv_plan_mode)7;
    EXPECT(create(&r, 7, &options), CLCONV_INVALID_ARGUMENT,
           "options.mode is 7");
    options.mode = CLCONV_PLAN_DEFAULT;
    options.plan = "no_such_kernel";
    EXPECT(create(&r, 7, &options), CLCONV_INVALID_ARGUMENT, "no_such_kernel");
    options.plan = NULL;
    options.max_workspace = 0;
    EXPECT(create(&r, 7, &options), CLCONV_UNSUPPORTED,
           "max_workspace is 0 bytes");
    rig_close(&r);
}

Test(arguments, asking_a_null_plan_is_refused)
{
    rig r;
    size_t bytes = 42;
    char text[8] = "same";
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    EXPECT(clconv_plan_workspace_size(NULL, &bytes), CLCONV_INVALID_ARGUMENT,
           "plan is NULL");
    EXPECT(clconv_plan_workspace_size(r.plan, NULL), CLCONV_INVALID_ARGUMENT,
           "bytes is NULL");
    EXPECT(clconv_plan_explain(NULL, text, sizeof text, &bytes),
           CLCONV_INVALID_ARGUMENT, "plan is NULL");
    EXPECT(clconv_plan_explain(r.plan, NULL, 1, &bytes),
           CLCONV_INVALID_ARGUMENT, "text is NULL");
    cr_assert_eq(bytes, 42);
    cr_assert_str_eq(text, "same");
    rig_close(&r);
}
