/*
 * Contexts, plans and calls that are right. What is refused: see
 * test_runtime_arguments.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

static const char problem[] = "n3c4h7w6k6r3s2u2x1p1x0g2";

/* ---- Objects ----------------------------------------------------------- */

Test(runtime, a_plan_outlives_the_handle_of_its_context)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_context_retain(r.context);
    clconv_context_release(r.context);
    clconv_context_release(r.context);
    r.context = NULL;
    clconv_plan_retain(r.plan);
    clconv_plan_release(r.plan);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(runtime, a_context_holds_its_cl_context)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    cl_uint before = 0, after = 0;
    clGetContextInfo(r.host.context, CL_CONTEXT_REFERENCE_COUNT, sizeof before,
                     &before, NULL);
    clconv_context *second;
    cr_assert_eq(
        clconv_context_create(r.host.context, r.host.device, NULL, &second),
        CLCONV_OK);
    clGetContextInfo(r.host.context, CL_CONTEXT_REFERENCE_COUNT, sizeof after,
                     &after, NULL);
    cr_assert_gt(after, before);
    clconv_context_release(second);
    clGetContextInfo(r.host.context, CL_CONTEXT_REFERENCE_COUNT, sizeof after,
                     &after, NULL);
    cr_assert_eq(after, before);
    rig_close(&r);
}

Test(runtime, releasing_null_is_nothing)
{
    clconv_context_release(NULL);
    clconv_plan_release(NULL);
}

Test(runtime, a_context_can_come_and_go_many_times)
{
    for (int i = 0; i < 3; ++i) {
        rig r;
        rig_open(&r, HOST_IN_ORDER, problem, NULL);
        rig_run(&r);
        rig_expect(&r, CLCONV_OP_BACKWARD, 1);
        rig_close(&r);
    }
}

Test(runtime, a_forked_child_is_told_to_make_its_own_context)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    pid_t child = fork();
    if (child == 0) {
        clconv_plan *plan;
        clconv_status create = clconv_plan_create(
            r.context, &r.desc, CLCONV_OP_BACKWARD, NULL, &plan);
        clconv_status enqueue = clconv_enqueue_backward(r.plan, r.host.queue,
                                                        &r.args, 0, NULL, NULL);
        bool told = strstr(clconv_last_error(), "fork") != NULL;
        clconv_plan_release(r.plan);
        clconv_context_release(r.context);
        _exit(create == CLCONV_INVALID_ARGUMENT &&
                      enqueue == CLCONV_INVALID_ARGUMENT && told
                  ? 0
                  : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_run(&r); /* the parent goes on */
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(runtime, explain_tells_the_plan_that_makes_it_again)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    char plan_text[1024];
    snprintf(plan_text, sizeof plan_text, "%s", rig_explain(r.plan, "plan: "));
    cr_assert_eq(strncmp(plan_text, "plan: cast", 10), 0, "%s", plan_text);
    cr_assert_str_eq(rig_explain(r.plan, "problem: ") + 9, problem);

    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.plan = plan_text + 6;
    clconv_plan *again;
    cr_assert_eq(clconv_plan_create(r.context, &r.desc, CLCONV_OP_BACKWARD,
                                    &options, &again),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_str_eq(rig_explain(again, "plan: "), plan_text);
    cr_assert_not_null(strstr(rig_explain(again, "step 1"), "asked for"));
    cr_assert_not_null(strstr(rig_explain(again, "step 1"), "program memory"),
                       "%s", rig_explain(again, "step 1"));
    clconv_plan_release(again);
    rig_close(&r);
}

Test(runtime, explain_cuts_to_size_and_tells_the_whole)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    size_t needed = 0;
    cr_assert_eq(clconv_plan_explain(r.plan, NULL, 0, &needed), CLCONV_OK);
    char *whole = malloc(needed), small[10];
    cr_assert_eq(clconv_plan_explain(r.plan, whole, needed, NULL), CLCONV_OK);
    cr_assert_eq(strlen(whole), needed - 1);
    memset(small, 'x', sizeof small);
    cr_assert_eq(clconv_plan_explain(r.plan, small, 9, NULL), CLCONV_OK);
    cr_assert_eq(strncmp(small, whole, 8), 0);
    cr_assert_eq(small[8], '\0');
    cr_assert_eq(small[9], 'x');
    free(whole);
    rig_close(&r);
}

/* ---- Outputs ----------------------------------------------------------- */

Test(runtime, each_set_of_outputs_is_right_and_the_others_untouched)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (unsigned ops = 0; ops <= CLCONV_OP_BACKWARD; ++ops) {
        rig_fill_outputs(&r, NAN);
        r.args.dw.mem = ops & CLCONV_OP_DW ? r.mem[RIG_DW] : NULL;
        r.args.db.mem = ops & CLCONV_OP_DB ? r.mem[RIG_DB] : NULL;
        r.args.dx.mem = ops & CLCONV_OP_DX ? r.mem[RIG_DX] : NULL;
        r.args.x.mem = ops & CLCONV_OP_DW ? r.mem[RIG_X] : NULL;
        r.args.w.mem = ops & CLCONV_OP_DX ? r.mem[RIG_W] : NULL;
        rig_run(&r);
        rig_expect(&r, ops, 1);
    }
    rig_close(&r);
}

Test(runtime, a_plan_for_some_outputs_gives_these)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (unsigned ops = 1; ops <= CLCONV_OP_BACKWARD; ++ops) {
        clconv_plan_release(r.plan);
        cr_assert_eq(clconv_plan_create(r.context, &r.desc, ops, NULL, &r.plan),
                     CLCONV_OK, "ops %u: %s", ops, clconv_last_error());
        rig_fill_outputs(&r, NAN);
        r.args.dw.mem = ops & CLCONV_OP_DW ? r.mem[RIG_DW] : NULL;
        r.args.db.mem = ops & CLCONV_OP_DB ? r.mem[RIG_DB] : NULL;
        r.args.dx.mem = ops & CLCONV_OP_DX ? r.mem[RIG_DX] : NULL;
        rig_run(&r);
        rig_expect(&r, ops, 1);
    }
    rig_close(&r);
}

Test(runtime, beta_scales_what_was_there_and_zero_does_not_read)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    rig_run(&r); /* over NaN */
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    r.args.beta_w = r.args.beta_b = r.args.beta_x = 1.0f;
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 2);
    r.args.beta_w = r.args.beta_b = r.args.beta_x = -0.5f;
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 0);
    rig_close(&r);
}

Test(runtime, a_smaller_batch_reads_and_writes_its_images_alone)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (int64_t batch = r.desc.n; batch > 0; --batch) {
        rig_fill_outputs(&r, NAN);
        r.args.batch = batch;
        rig_run(&r);
        rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    }
    rig_close(&r);
}

/* What both kinds of "no images" promise. */
static void expect_without_images(rig *r)
{
    const unsigned weights = CLCONV_OP_DW | CLCONV_OP_DB;
    cl_event event;
    r->args.x.mem = r->args.dy.mem = r->args.w.mem = NULL;
    cr_assert_eq(clconv_enqueue_backward(r->plan, r->host.queue, &r->args, 0,
                                         NULL, &event),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    rig_expect(r, weights, 0); /* over NaN: all dW and db become 0 */

    float old[4] = {1, 2, 3, 4}, got[4] = {0};
    host_write(&r->host, r->mem[RIG_DW], 0, sizeof old, old);
    r->args.beta_w = -2;
    rig_run(r);
    host_read(&r->host, r->mem[RIG_DW], 0, sizeof got, got);
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(got[i], -2 * old[i]);
}

Test(runtime, a_batch_of_0_scales_the_weights_gradients_and_signals)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    r.args.batch = 0;
    expect_without_images(&r);
    rig_close(&r);
}

Test(runtime, a_problem_of_0_images_scales_the_weights_gradients_and_signals)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, "n0c4h7w6k6r3s2", NULL);
    expect_without_images(&r);
    rig_close(&r);
}

Test(runtime, tensors_may_lie_anywhere_that_the_alignment_allows)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, "n3c4h7w6k6r3s2u2x1p1x0g2_align4", NULL);
    clconv_buffer *const buffers[RIG_TENSORS] = {
        &r.args.dy, &r.args.x, &r.args.w, &r.args.dw, &r.args.db, &r.args.dx,
    };
    cl_mem moved[RIG_TENSORS];
    for (unsigned t = 0; t < RIG_TENSORS; ++t) {
        size_t bytes = r.elements[t] * 4;
        size_t offset = 4 * (t + 1);
        moved[t] = host_buffer(&r.host, bytes + offset, NULL);
        if (t < RIG_DW)
            host_write(&r.host, moved[t], offset, bytes, r.input[t]);
        *buffers[t] = (clconv_buffer){moved[t], offset};
    }
    rig_run(&r);
    for (unsigned t = 0; t < RIG_TENSORS; ++t) {
        size_t bytes = r.elements[t] * 4;
        unsigned char *data = malloc(bytes + 28);
        host_read(&r.host, moved[t], 0, bytes + 4 * (t + 1), data);
        for (size_t i = 0; i < 4 * (t + 1); ++i)
            cr_assert_eq(data[i], 0xFF, "tensor %u, byte %zu", t, i);
        host_write(&r.host, r.mem[t], 0, bytes, data + 4 * (t + 1));
        free(data);
        clReleaseMemObject(moved[t]);
    }
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(runtime, the_same_call_gives_the_same_bits)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (int t = 0; t < RIG_DW; ++t) {
        for (size_t i = 0; i < r.elements[t]; ++i)
            r.input[t][i] = 0.37f * r.input[t][i] + 0.01f * (float)(i % 13);
        host_write(&r.host, r.mem[t], 0, r.elements[t] * 4, r.input[t]);
    }
    size_t bytes = r.elements[RIG_DW] * 4;
    float *first = malloc(bytes), *next = malloc(bytes);
    for (int i = 0; i < 10; ++i) {
        rig_run(&r);
        host_read(&r.host, r.mem[RIG_DW], 0, bytes, i ? next : first);
        if (i)
            cr_assert_eq(memcmp(first, next, bytes), 0, "run %d", i);
    }
    free(first);
    free(next);
    rig_close(&r);
}

/* ---- Workspace and report ---------------------------------------------- */

/* Copies of x and dy, at 128 MiB an image each, would not fit. */
Test(runtime, a_plan_keeps_within_the_largest_allocation)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    cl_ulong largest = 0;
    clGetDeviceInfo(r.host.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest,
                    &largest, NULL);
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse("n1c64h1024w1024k64r1s1", &desc), CLCONV_OK);
    desc.n = (int64_t)(largest >> 27) + 1;
    clconv_plan *plan;
    cr_assert_eq(
        clconv_plan_create(r.context, &desc, CLCONV_OP_BACKWARD, NULL, &plan),
        CLCONV_OK, "%s", clconv_last_error());
    size_t bytes = 0;
    clconv_plan_workspace_size(plan, &bytes);
    cr_assert_leq(bytes, largest);
    clconv_plan_release(plan);
    rig_close(&r);
}

Test(runtime, no_byte_outside_the_workspace_is_written)
{
    enum { GUARD = 512 };
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    size_t bytes = 0;
    cr_assert_eq(clconv_plan_workspace_size(r.plan, &bytes), CLCONV_OK);
    cr_assert_gt(bytes, 0);
    unsigned char *canary = malloc(bytes + 2 * GUARD);
    memset(canary, 0xA5, bytes + 2 * GUARD);
    cl_mem mem = host_buffer(&r.host, bytes + 2 * GUARD, canary);
    r.args.workspace = (clconv_buffer){mem, GUARD};
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    host_read(&r.host, mem, 0, bytes + 2 * GUARD, canary);
    for (size_t i = 0; i < GUARD; ++i) {
        cr_assert_eq(canary[i], 0xA5, "%zu bytes before", GUARD - i);
        cr_assert_eq(canary[GUARD + bytes + i], 0xA5, "%zu bytes behind", i);
    }
    free(canary);
    clReleaseMemObject(mem);
    rig_close(&r);
}

Test(runtime, a_workspace_of_exactly_its_size_is_enough)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    size_t bytes = 0;
    clconv_plan_workspace_size(r.plan, &bytes);
    r.args.workspace.mem = host_buffer(&r.host, bytes, NULL);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    clReleaseMemObject(r.args.workspace.mem);
    rig_close(&r);
}

static uint64_t count_nonzero(const rig *r, int tensor, size_t elements)
{
    uint64_t count = 0;
    for (size_t i = 0; i < elements; ++i)
        count += r->input[tensor][i] != 0;
    return count;
}

Test(runtime, counts_are_added_to_the_report_at_its_offset)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_report report[3];
    memset(report, 0, sizeof report);
    report[1].dy.nonzero = 1000;
    cl_mem mem = host_buffer(&r.host, sizeof report, report);
    r.args.report = (clconv_buffer){mem, sizeof *report};
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    host_read(&r.host, mem, 0, sizeof report, report);
    const clconv_report none = {0}, *got = &report[1];
    cr_assert_eq(memcmp(&report[0], &none, sizeof none), 0);
    cr_assert_eq(memcmp(&report[2], &none, sizeof none), 0);
    cr_assert_eq(got->dy.nonzero,
                 1000 + count_nonzero(&r, RIG_DY, r.elements[RIG_DY]));
    cr_assert_eq(got->x.nonzero, count_nonzero(&r, RIG_X, r.elements[RIG_X]));
    cr_assert_eq(got->w.nonzero, count_nonzero(&r, RIG_W, r.elements[RIG_W]));
    cr_assert_eq(got->dx.nonzero, 0); /* fp32 outputs are not counted */
    clReleaseMemObject(mem);
    rig_close(&r);
}

/* The device adds to two 32-bit words, low first. */
Test(runtime, a_count_goes_on_past_32_bits)
{
    const uint64_t before = UINT32_MAX;
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_report report = {.dy.nonzero = before, .w.nonzero = before << 4};
    r.args.report.mem = host_buffer(&r.host, sizeof report, &report);
    rig_run(&r);
    host_read(&r.host, r.args.report.mem, 0, sizeof report, &report);
    cr_assert_eq(report.dy.nonzero,
                 before + count_nonzero(&r, RIG_DY, r.elements[RIG_DY]));
    cr_assert_eq(report.w.nonzero,
                 (before << 4) + count_nonzero(&r, RIG_W, r.elements[RIG_W]));
    clReleaseMemObject(r.args.report.mem);
    rig_close(&r);
}

static void expect_counts_of_what_is_given(const clconv_context_options *options)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, options);
    clconv_report report = {0};
    r.args.report.mem = host_buffer(&r.host, sizeof report, &report);
    r.args.dw.mem = r.args.db.mem = r.args.dx.mem = NULL;
    r.args.x.mem = NULL;
    r.args.batch = 1;
    rig_run(&r);
    rig_expect_untouched(&r);
    host_read(&r.host, r.args.report.mem, 0, sizeof report, &report);
    cr_assert_eq(
        report.dy.nonzero,
        count_nonzero(&r, RIG_DY, r.elements[RIG_DY] / (size_t)r.desc.n));
    cr_assert_eq(report.x.nonzero, 0);
    cr_assert_eq(report.w.nonzero, count_nonzero(&r, RIG_W, r.elements[RIG_W]));
    clReleaseMemObject(r.args.report.mem);
    rig_close(&r);
}

Test(runtime, a_report_alone_counts_what_is_given)
{
    expect_counts_of_what_is_given(NULL);
}

/* In emulation of wgmma one pass reads all three. */
Test(runtime, a_report_alone_counts_what_is_given_where_one_pass_reads_all)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.emulate_unit = "wgmma";
    expect_counts_of_what_is_given(&options);
}

/* ---- Threads ----------------------------------------------------------- */

enum { THREADS = 8, CALLS = 10 };

typedef struct worker {
    const rig *shared;
    pthread_t thread;
    int faults;
} worker;

/* Reads one at a time: not every driver survives them all at once. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static bool same_output(const rig *r, cl_mem mine, int tensor)
{
    size_t bytes = r->elements[tensor] * 4;
    float *want = malloc(bytes), *got = malloc(bytes);
    pthread_mutex_lock(&reading);
    bool same = want && got &&
                host_read(&r->host, r->mem[tensor], 0, bytes, want) &&
                host_read(&r->host, mine, 0, bytes, got) &&
                memcmp(want, got, bytes) == 0;
    pthread_mutex_unlock(&reading);
    free(want);
    free(got);
    return same;
}

/* Calls with outputs of its own; every other one for dW alone. */
static void *call_often(void *argument)
{
    worker *w = argument;
    const rig *r = w->shared;
    clconv_backward_args args = r->args;
    args.dw.mem = host_buffer(&r->host, r->elements[RIG_DW] * 4, NULL);
    cl_mem dx = host_buffer(&r->host, r->elements[RIG_DX] * 4, NULL);
    args.db.mem = NULL;
    for (int i = 0; i < CALLS; ++i) {
        cl_event event;
        args.dx.mem = i % 2 == 0 ? dx : NULL;
        if (clconv_enqueue_backward(r->plan, r->host.queue, &args, 0, NULL,
                                    &event) != CLCONV_OK) {
            w->faults++;
            continue;
        }
        clWaitForEvents(1, &event);
        clReleaseEvent(event);
        w->faults += !same_output(r, args.dw.mem, RIG_DW);
        w->faults += !same_output(r, dx, RIG_DX);
    }
    clReleaseMemObject(args.dw.mem);
    clReleaseMemObject(dx);
    return NULL;
}

Test(runtime, eight_threads_share_a_plan)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    worker workers[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (worker){.shared = &r};
        cr_assert_eq(
            pthread_create(&workers[i].thread, NULL, call_often, &workers[i]),
            0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        cr_assert_eq(workers[i].faults, 0, "thread %d", i);
    }
    rig_close(&r);
}
