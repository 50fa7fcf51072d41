/*
 * The forward convolution through the public header: values by hand, what the
 * report counts, and arguments that are refused. clconv-check --forward holds
 * lists of problems against fp64.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "rig.h"

#define EXPECT(call, status, words)                                            \
    do {                                                                       \
        cr_assert_eq(call, status, "%s: %s", words, clconv_last_error());      \
        cr_assert(strstr(clconv_last_error(), words), "%s: %s", words,         \
                  clconv_last_error());                                        \
    } while (0)

static clconv_plan *new_plan(const rig *r, unsigned ops,
                             const clconv_plan_options *options)
{
    clconv_plan *plan = NULL;
    cr_assert_eq(clconv_plan_create(r->context, &r->desc, ops, options, &plan),
                 CLCONV_OK, "%s", clconv_last_error());
    return plan;
}

/* y may lie where dy does, b where db does: they have the same sizes. */
static clconv_forward_args args_of(const rig *r)
{
    clconv_forward_args args;
    clconv_forward_args_init(&args);
    args.x.mem = r->mem[RIG_X];
    args.w.mem = r->mem[RIG_W];
    args.b.mem = r->mem[RIG_DB];
    args.y.mem = r->mem[RIG_DY];
    return args;
}

static clconv_status enqueue(const rig *r, clconv_plan *plan,
                             const clconv_forward_args *args)
{
    return clconv_enqueue_forward(plan, r->host.queue, args, 0, NULL, NULL);
}

/* ---- Values ------------------------------------------------------------ */

/* Of a 1 x 1 convolution with one channel, a weight of 1 and a bias of 1. */
static void run_values(const char *problem, const clconv_plan_options *options,
                       const float x[4], float y[4], clconv_report *report)
{
    const float one = 1;
    const clconv_report zeros = {0};
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan *plan = new_plan(&r, CLCONV_OP_FORWARD, options);
    clconv_forward_args args = args_of(&r);
    cl_mem mems[] = {host_buffer(&r.host, 4 * sizeof *x, x),
                     host_buffer(&r.host, sizeof one, &one),
                     host_buffer(&r.host, sizeof one, &one),
                     host_buffer(&r.host, sizeof zeros, &zeros)};
    args.x.mem = mems[0], args.w.mem = mems[1];
    args.b.mem = mems[2], args.report.mem = mems[3];
    cr_assert_eq(enqueue(&r, plan, &args), CLCONV_OK, "%s", clconv_last_error());
    cr_assert(host_read(&r.host, args.y.mem, 0, 4 * sizeof *y, y));
    cr_assert(host_read(&r.host, mems[3], 0, sizeof *report, report));
    for (int i = 0; i < 4; ++i)
        clReleaseMemObject(mems[i]);
    clconv_plan_release(plan);
    rig_close(&r);
}

static const float special[4] = {1e6f, -3, NAN, 1e-8f};

Test(forward, saturates_x_and_keeps_a_nan_through_relu)
{
    float y[4];
    clconv_report report;
    run_values("n1c1h2w2k1r1s1_relu", NULL, special, y, &report);
    cr_assert_eq(y[0], 65505.0f, "%g", (double)y[0]);
    cr_assert_eq(y[1], 0.0f, "%g", (double)y[1]);
    cr_assert(isnan(y[2]), "%g", (double)y[2]);
    cr_assert_eq(y[3], 1.0f, "%g", (double)y[3]);
}

Test(forward, overflows_to_inf_where_the_description_says_so)
{
    float y[4];
    clconv_report report;
    run_values("n1c1h2w2k1r1s1_inf", NULL, special, y, &report);
    cr_assert(isinf(y[0]), "%g", (double)y[0]);
    cr_assert_eq(y[1], -2.0f, "%g", (double)y[1]);
}

Test(forward, takes_x_as_it_is_in_fp32)
{
    float y[4];
    clconv_report report;
    run_values("n1c1h2w2k1r1s1_fp32", NULL, special, y, &report);
    cr_assert_eq(y[0], 1000001.0f, "%g", (double)y[0]);
    cr_assert_eq(report.x.saturated, 0);
}

Test(forward, counts_what_the_casts_did)
{
    static const char *const plans[] = {"forward_generic:cast=fused",
                                        "forward_generic:cast=separate",
                                        "forward_generic:vec=1,cast=separate"};
    for (int i = 0; i < 3; ++i) {
        clconv_plan_options options;
        clconv_plan_options_init(&options);
        options.plan = plans[i];
        float y[4];
        clconv_report got;
        run_values("n1c1h2w2k1r1s1", &options, special, y, &got);
        cr_assert_eq(got.x.nonzero, 3, "%s", plans[i]);
        cr_assert_eq(got.x.zeroed, 1, "%s", plans[i]);
        cr_assert_eq(got.x.saturated, 1, "%s", plans[i]);
        cr_assert_eq(got.x.nan, 1, "%s", plans[i]);
        cr_assert_eq(got.w.nonzero, 1, "%s", plans[i]);
        cr_assert_eq(got.dy.nonzero + got.y.nonzero, 0, "%s", plans[i]);
    }
}

/* ---- Calls ------------------------------------------------------------- */

static const char problem[] = "n2c3h6w5k4r3s2p1";

Test(forward, explains_itself_in_every_mode_that_there_is)
{
    static const clconv_plan_mode modes[] = {CLCONV_PLAN_DEFAULT,
                                             CLCONV_PLAN_INSTANT};
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    for (int i = 0; i < 2; ++i) {
        clconv_plan_options options;
        clconv_plan_options_init(&options);
        options.mode = modes[i];
        clconv_plan *plan = new_plan(&r, CLCONV_OP_FORWARD, &options);
        cr_assert(strstr(rig_explain(plan, "computes: "), "y ("));
        cr_assert(strstr(rig_explain(plan, "plan: "), "forward_generic"));
        cr_assert(strstr(rig_explain(plan, "replay: "), "--forward"));
        clconv_plan_release(plan);
    }
    rig_close(&r);
}

Test(forward, without_images_writes_nothing_and_completes)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan *plan = new_plan(&r, CLCONV_OP_FORWARD, NULL);
    clconv_forward_args args = args_of(&r);
    size_t bytes = r.elements[RIG_DY] * sizeof(float);
    float before[512], after[512];
    cl_event event = NULL;
    cr_assert_leq(bytes, sizeof before);
    cr_assert(host_read(&r.host, args.y.mem, 0, bytes, before));
    args.batch = 0;
    args.x.mem = args.w.mem = NULL;
    cr_assert_eq(
        clconv_enqueue_forward(plan, r.host.queue, &args, 0, NULL, &event),
        CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    cr_assert(host_read(&r.host, args.y.mem, 0, bytes, after));
    cr_assert_eq(memcmp(before, after, bytes), 0);
    clReleaseEvent(event);
    clconv_plan_release(plan);
    rig_close(&r);
}

/* ---- What is refused --------------------------------------------------- */

static clconv_status create(const rig *r, unsigned ops,
                            const clconv_plan_options *options)
{
    clconv_plan *plan = NULL;
    clconv_status status =
        clconv_plan_create(r->context, &r->desc, ops, options, &plan);
    cr_assert_null(plan);
    return status;
}

Test(forward, a_plan_refuses_what_it_cannot_do)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    EXPECT(create(&r, CLCONV_OP_FORWARD | CLCONV_OP_DW, NULL),
           CLCONV_INVALID_ARGUMENT, "CLCONV_OP_FORWARD alone");
    options.mode = CLCONV_PLAN_FIND;
    EXPECT(create(&r, CLCONV_OP_FORWARD, &options), CLCONV_UNSUPPORTED,
           "not tuned yet");
    options.mode = CLCONV_PLAN_TUNED;
    EXPECT(create(&r, CLCONV_OP_FORWARD, &options), CLCONV_UNSUPPORTED,
           "not tuned yet");
    options.mode = CLCONV_PLAN_DEFAULT;
    options.max_workspace = 0;
    options.plan = "forward_generic:vec=16";
    EXPECT(create(&r, CLCONV_OP_FORWARD, &options), CLCONV_UNSUPPORTED,
           "max_workspace is 0");
    rig_close(&r);
}

Test(forward, a_small_alignment_needs_fp16_everywhere)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    r.desc.alignment = 2;
    r.desc.x_type = r.desc.w_type = r.desc.dy_type = CLCONV_F16;
    r.desc.dw_type = r.desc.db_type = r.desc.dx_type = CLCONV_F16;
    r.desc.y_type = CLCONV_F16;
    EXPECT(create(&r, CLCONV_OP_FORWARD, NULL), CLCONV_INVALID_ARGUMENT,
           "where y or b is fp32");
    r.desc.b_type = CLCONV_F16;
    clconv_plan_release(new_plan(&r, CLCONV_OP_FORWARD, NULL));
    rig_close(&r);
}

typedef void spoil(const rig *r, clconv_forward_args *args);

static void size_zero(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->struct_size = 0;
}

static void batch_large(const rig *r, clconv_forward_args *args)
{
    args->batch = r->desc.n + 1;
}

static void beta_nan(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->beta_y = NAN;
}

static void no_x(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->x.mem = NULL;
}

static void no_w(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->w.mem = NULL;
}

static void no_y(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->y.mem = NULL;
}

static void small_b(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->b.offset = 16;
}

static void odd_y(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->y.offset = 4;
}

static void y_on_x(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->x = args->y;
}

static void y_on_b(const rig *r, clconv_forward_args *args)
{
    (void)r;
    args->b = args->y;
}

Test(forward, a_call_refuses_each_wrong_argument)
{
    static const struct {
        spoil *spoil;
        const char *words;
    } cases[] = {
        {size_zero, "args.struct_size is 0"},
        {batch_large, "args.batch is 3"},
        {beta_nan, "args.beta_y must be finite"},
        {no_x, "args.x.mem is NULL, but y needs it"},
        {no_w, "args.w.mem is NULL, but y needs it"},
        {no_y, "args.y.mem is NULL"},
        {small_b, "args.b.mem has 16 bytes"},
        {odd_y, "args.y.offset is 4"},
        {y_on_x, "args.x and args.y overlap"},
        {y_on_b, "args.y and args.b overlap"},
    };
    /* X is no larger than Y, so that y may stand in for it. */
    rig r;
    rig_open(&r, HOST_IN_ORDER, "n2c3h6w5k4r3s2p1", NULL);
    clconv_plan *plan = new_plan(&r, CLCONV_OP_FORWARD, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_forward_args args = args_of(&r);
        cases[i].spoil(&r, &args);
        EXPECT(enqueue(&r, plan, &args), CLCONV_INVALID_ARGUMENT,
               cases[i].words);
    }
    clconv_forward_args args = args_of(&r);
    EXPECT(enqueue(&r, NULL, &args), CLCONV_INVALID_ARGUMENT, "plan is NULL");
    EXPECT(enqueue(&r, plan, NULL), CLCONV_INVALID_ARGUMENT, "args is NULL");
    EXPECT(clconv_enqueue_forward(plan, NULL, &args, 0, NULL, NULL),
           CLCONV_INVALID_ARGUMENT, "queue is NULL");
    EXPECT(clconv_enqueue_forward(plan, r.host.queue, &args, 1, NULL, NULL),
           CLCONV_INVALID_ARGUMENT, "event_wait_list is NULL");
    clconv_plan_release(plan);
    rig_close(&r);
}

Test(forward, plans_and_calls_of_different_kinds_do_not_mix)
{
    rig r;
    rig_open(&r, HOST_IN_ORDER, problem, NULL);
    clconv_plan *plan = new_plan(&r, CLCONV_OP_FORWARD, NULL);
    clconv_forward_args args = args_of(&r);
    EXPECT(enqueue(&r, r.plan, &args), CLCONV_INVALID_ARGUMENT,
           "without CLCONV_OP_FORWARD");
    EXPECT(clconv_enqueue_backward(plan, r.host.queue, &r.args, 0, NULL, NULL),
           CLCONV_INVALID_ARGUMENT, "without CLCONV_OP_DW");
    clconv_plan_release(plan);
    rig_close(&r);
}

Test(forward, init_accepts_null)
{
    clconv_forward_args_init(NULL);
}
