/*
 * Wait lists and events, on an in-order and an out-of-order queue. A gate is
 * a user event: while it is closed, nothing that waits for it may run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>

#include "rig.h"

static const char problem[] = "n2c3h6w5k4r3s2p1";

ParameterizedTestParameters(events, waits_and_signals)
{
    static host_order orders[] = {HOST_IN_ORDER, HOST_OUT_OF_ORDER};
    return cr_make_param_array(host_order, orders, 2);
}

/* Not every device has out-of-order queues: skips the test where not. */
static void open_or_skip(rig *r, host_order order)
{
    rig_open(r, HOST_IN_ORDER, problem, NULL);
    cl_command_queue_properties has = 0;
    clGetDeviceInfo(r->host.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof has,
                    &has, NULL);
    if (order == HOST_IN_ORDER)
        return;
    rig_close(r);
    if (!(has & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
        cr_skip_test("this device has no out-of-order queue");
    rig_open(r, order, problem, NULL);
}

static cl_event make_gate(const rig *r)
{
    cl_int error;
    cl_event gate = clCreateUserEvent(r->host.context, &error);
    cr_assert_eq(error, CL_SUCCESS);
    return gate;
}

static cl_int state_of(cl_event event)
{
    cl_int state = CL_COMPLETE - 1;
    cr_assert_eq(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                sizeof state, &state, NULL),
                 CL_SUCCESS);
    return state;
}

/* Enqueues behind a gate, sees that nothing has run, opens it, and waits for
 * the returned event alone. */
static void call_through_gate(rig *r)
{
    cl_event gate = make_gate(r), done = NULL;
    cr_assert_eq(clconv_enqueue_backward(r->plan, r->host.queue, &r->args, 1,
                                         &gate, &done),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_not_null(done);
    cr_assert_eq(clFlush(r->host.queue), CL_SUCCESS);
    cr_assert_neq(state_of(done), CL_COMPLETE);
    cr_assert_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    cr_assert_eq(clWaitForEvents(1, &done), CL_SUCCESS);
    cr_assert_eq(state_of(done), CL_COMPLETE);
    clReleaseEvent(done);
    clReleaseEvent(gate);
}

ParameterizedTest(host_order *order, events, waits_and_signals)
{
    rig r;
    open_or_skip(&r, *order);
    call_through_gate(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

ParameterizedTestParameters(events, without_outputs_waits_and_signals)
{
    static host_order orders[] = {HOST_IN_ORDER, HOST_OUT_OF_ORDER};
    return cr_make_param_array(host_order, orders, 2);
}

ParameterizedTest(host_order *order, events, without_outputs_waits_and_signals)
{
    rig r;
    open_or_skip(&r, *order);
    r.args.dw.mem = r.args.db.mem = r.args.dx.mem = NULL;
    call_through_gate(&r);
    rig_expect_untouched(&r);
    rig_close(&r);
}

ParameterizedTestParameters(events, a_chain_of_calls_adds_up)
{
    static host_order orders[] = {HOST_IN_ORDER, HOST_OUT_OF_ORDER};
    return cr_make_param_array(host_order, orders, 2);
}

/* Each call adds to what the one before wrote, and shares its workspace. */
ParameterizedTest(host_order *order, events, a_chain_of_calls_adds_up)
{
    enum { CALLS = 6 };
    rig r;
    open_or_skip(&r, *order);
    size_t bytes = 0;
    clconv_plan_workspace_size(r.plan, &bytes);
    r.args.workspace.mem = host_buffer(&r.host, bytes, NULL);
    cl_event gate = make_gate(&r), before = gate;
    for (int i = 0; i < CALLS; ++i) {
        cl_event done = NULL;
        cr_assert_eq(clconv_enqueue_backward(r.plan, r.host.queue, &r.args, 1,
                                             &before, &done),
                     CLCONV_OK, "%s", clconv_last_error());
        if (i > 0)
            clReleaseEvent(before);
        before = done;
        r.args.beta_w = r.args.beta_b = r.args.beta_x = 1;
    }
    cr_assert_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    cr_assert_eq(clWaitForEvents(1, &before), CL_SUCCESS);
    clReleaseEvent(before);
    clReleaseEvent(gate);
    rig_expect(&r, CLCONV_OP_BACKWARD, CALLS);
    clReleaseMemObject(r.args.workspace.mem);
    rig_close(&r);
}

Test(events, a_call_waits_for_every_event_of_its_list)
{
    rig r;
    open_or_skip(&r, HOST_OUT_OF_ORDER);
    cl_event gates[3], done;
    for (int i = 0; i < 3; ++i)
        gates[i] = make_gate(&r);
    cr_assert_eq(
        clconv_enqueue_backward(r.plan, r.host.queue, &r.args, 3, gates, &done),
        CLCONV_OK, "%s", clconv_last_error());
    clFlush(r.host.queue);
    for (int i = 0; i < 3; ++i) {
        cr_assert_neq(state_of(done), CL_COMPLETE, "gate %d is closed", i);
        clSetUserEventStatus(gates[i], CL_COMPLETE);
    }
    cr_assert_eq(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(done);
    for (int i = 0; i < 3; ++i)
        clReleaseEvent(gates[i]);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(events, nobody_has_to_ask_for_an_event)
{
    rig r;
    open_or_skip(&r, HOST_OUT_OF_ORDER);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}
