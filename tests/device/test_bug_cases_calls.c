/*
 * Calls and surroundings that broke other convolution libraries; the known
 * list is in test_bug_cases.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "program.h"
#include "rig.h"

/* Sizes that vectors fit. */
static const char whole[] = "n4c16h8w16k16r3s3p1";

/* ---- Memory ------------------------------------------------------------- */

/* New buffers with each tensor at this offset; release the old ones. */
static void move_tensors(rig *r, size_t offset)
{
    clconv_buffer *const buffers[RIG_TENSORS] = {
        &r->args.dy, &r->args.x,  &r->args.w,
        &r->args.dw, &r->args.db, &r->args.dx,
    };
    for (int t = 0; t < RIG_TENSORS; ++t) {
        size_t bytes = r->elements[t] * sizeof(float);
        cl_mem mem = host_buffer(&r->host, offset + bytes, NULL);
        cr_assert_not_null(mem);
        if (t < RIG_DW)
            cr_assert(host_write(&r->host, mem, offset, bytes, r->input[t]));
        *buffers[t] = (clconv_buffer){mem, offset};
    }
}

/* The outputs at their offset must be right. */
static void expect_moved(rig *r)
{
    const clconv_buffer moved[RIG_TENSORS] = {
        [RIG_DW] = r->args.dw, [RIG_DB] = r->args.db, [RIG_DX] = r->args.dx};
    for (int t = RIG_DW; t < RIG_TENSORS; ++t) {
        size_t bytes = r->elements[t] * sizeof(float);
        float *data = malloc(bytes);
        cr_assert_not_null(data);
        cr_assert(
            host_read(&r->host, moved[t].mem, moved[t].offset, bytes, data));
        cr_assert(host_write(&r->host, r->mem[t], 0, bytes, data));
        free(data);
    }
    rig_expect(r, CLCONV_OP_BACKWARD, 1);
}

static void release_moved(rig *r)
{
    const cl_mem moved[RIG_TENSORS] = {r->args.dy.mem, r->args.x.mem,
                                       r->args.w.mem,  r->args.dw.mem,
                                       r->args.db.mem, r->args.dx.mem};
    for (int t = 0; t < RIG_TENSORS; ++t)
        clReleaseMemObject(moved[t]);
}

/* A program for wide loads must not serve the plan of a smaller alignment,
 * nor the other way round. */
Test(bug_cases, l15_alignments_in_one_context)
{
    static const size_t alignments[] = {64, 4, 16, 8};
    rig r;
    rig_open(&r, HOST_IN_ORDER, whole, NULL);
    for (int i = 0; i < 4; ++i) {
        clconv_desc desc = r.desc;
        desc.alignment = alignments[i];
        clconv_plan_release(r.plan);
        cr_assert_eq(clconv_plan_create(r.context, &desc, CLCONV_OP_BACKWARD,
                                        NULL, &r.plan),
                     CLCONV_OK, "%s", clconv_last_error());
        move_tensors(&r, alignments[i]);
        rig_run(&r);
        expect_moved(&r);
        release_moved(&r);
    }
    rig_close(&r);
}

/* dW of all images is that of one half plus that of the other, at an offset;
 * also in parts of one and three images. */
static void expect_sum_of_parts(int64_t first)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, whole, NULL);
    size_t images = (size_t)r.desc.n;
    r.args.batch = first;
    rig_run(&r);
    r.args.x.offset = r.elements[RIG_X] / images * sizeof(float) * (size_t)first;
    r.args.dy.offset =
        r.elements[RIG_DY] / images * sizeof(float) * (size_t)first;
    r.args.dx.offset = r.args.x.offset;
    r.args.batch = r.desc.n - first;
    r.args.beta_w = r.args.beta_b = 1;
    rig_run(&r);
    r.args.batch = -1;
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(bug_cases, l20_parts_of_a_batch_add_up)
{
    expect_sum_of_parts(2);
    expect_sum_of_parts(1);
    expect_sum_of_parts(3);
}

/* ---- Threads and processes ---------------------------------------------- */

enum { THREADS = 8 };

typedef struct worker {
    pthread_t thread;
    const rig *shared;
    pthread_barrier_t *start;
    cl_mem mem[RIG_TENSORS]; /* outputs of its own */
    clconv_status status;
} worker;

static void *launch_first(void *argument)
{
    worker *w = argument;
    clconv_backward_args args = w->shared->args;
    cl_event done = NULL;
    args.dw.mem = w->mem[RIG_DW];
    args.db.mem = w->mem[RIG_DB];
    args.dx.mem = w->mem[RIG_DX];
    pthread_barrier_wait(w->start);
    w->status = clconv_enqueue_backward(w->shared->plan, w->shared->host.queue,
                                        &args, 0, NULL, &done);
    if (done) {
        clWaitForEvents(1, &done);
        clReleaseEvent(done);
    }
    return NULL;
}

static void start_worker(worker *w, const rig *r, pthread_barrier_t *start)
{
    *w = (worker){.shared = r, .start = start};
    for (int t = RIG_DW; t < RIG_TENSORS; ++t) {
        w->mem[t] = host_buffer(&r->host, r->elements[t] * sizeof(float), NULL);
        cr_assert_not_null(w->mem[t]);
    }
    cr_assert_eq(pthread_create(&w->thread, NULL, launch_first, w), 0);
}

static void expect_worker(const worker *w, const rig *r)
{
    rig view = *r;
    cr_assert_eq(w->status, CLCONV_OK);
    for (int t = RIG_DW; t < RIG_TENSORS; ++t)
        view.mem[t] = w->mem[t];
    rig_expect(&view, CLCONV_OP_BACKWARD, 1);
    for (int t = RIG_DW; t < RIG_TENSORS; ++t)
        clReleaseMemObject(w->mem[t]);
}

/* Nothing of the plan has run before; each call allocates its workspace. */
static void expect_first_use(host_order order, const char *problem)
{
    rig r;
    worker workers[THREADS];
    pthread_barrier_t start;
    rig_open(&r, order, problem, NULL);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i)
        start_worker(&workers[i], &r, &start);
    for (int i = 0; i < THREADS; ++i)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; ++i)
        expect_worker(&workers[i], &r);
    pthread_barrier_destroy(&start);
    rig_close(&r);
}

Test(bug_cases, l34_first_use_from_eight_threads)
{
    expect_first_use(HOST_IN_ORDER, whole);
    expect_first_use(HOST_IN_ORDER, "n3c6h7w6k6r3s2u2x1p1x0g2_nhwc");
}

static bool has_out_of_order_queues(void)
{
    host h;
    cl_command_queue_properties has = 0;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &h), HOST_OK);
    clGetDeviceInfo(h.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof has, &has,
                    NULL);
    host_close(&h);
    return has & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
}

Test(bug_cases, l34_first_use_from_eight_threads_out_of_order)
{
    if (!has_out_of_order_queues())
        cr_skip_test("this device has no out-of-order queue");
    expect_first_use(HOST_OUT_OF_ORDER, whole);
    expect_first_use(HOST_OUT_OF_ORDER, "n3c6h7w6k6r3s2u2x1p1x0g2_nhwc");
}

/* In the child of a process that has used OpenCL. */
static int told_of_the_fork(rig *r)
{
    clconv_status status = clconv_enqueue_backward(r->plan, r->host.queue,
                                                   &r->args, 0, NULL, NULL);
    return status == CLCONV_INVALID_ARGUMENT &&
                   strstr(clconv_last_error(), "fork")
               ? 0
               : 1;
}

Test(bug_cases, l34_fork_after_use, .timeout = 60)
{
    rig r;
    int status = -1;
    rig_open(&r, HOST_IN_ORDER, whole, NULL);
    rig_run(&r);
    pid_t child = fork();
    if (child == 0)
        _exit(told_of_the_fork(&r));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_fill_outputs(&r, 7);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

/* ---- Devices ------------------------------------------------------------ */

/* Where the loader finds no driver, and nothing of the test's own process. */
static void expect_skip(const char *program, const char *option,
                        const char *value)
{
    static program_result result;
    const char *argv[] = {
        "/usr/bin/env", "-i", "OCL_ICD_VENDORS=/nonexistent", program, option,
        value,          NULL};
    program_run(argv, &result);
    cr_assert_eq(result.status, 77, "%s: %d: %s%s", program, result.status,
                 result.out, result.err);
    const char *end = strchr(result.err, '\n');
    cr_assert(end && end[1] == '\0', "%s says: %s", program, result.err);
    cr_assert_not_null(strstr(result.err, "no OpenCL device"), "%s says: %s",
                       program, result.err);
}

Test(bug_cases, l35_no_device)
{
    char self[1024] = "";
    cr_assert_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    expect_skip(self, NULL, NULL);
    expect_skip(CLCONV_CHECK, "--problem", whole);
}

/* PoCL reads this limit; on another device the problem is just computed. */
Test(bug_cases, l36_work_groups_of_one)
{
    setenv("POCL_MAX_WORK_GROUP_SIZE", "1", 1);
    family_exact(&(family){0}, whole);
    family_exact(&(family){0}, "n2c6h7w9k9r3s3u2p1g3");
    family_exact(&(family){0}, "n2c6h7w9k5r3s3p1_nhwc");
    family_exact(&(family){.plan = "bwd_data_generic;bwd_weight_generic"},
                 "n2c6h7w9k5r3s3p1_fp32");
}
