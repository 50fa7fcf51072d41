/*
 * The launcher on its own, with a kernel made for this test: what arrives as
 * an argument, which passes run, and what is said when one cannot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cl_build.h"
#include "cl_launch.h"
#include "cuda_maps.h"
#include "host.h"
#include "kernel_shape.h"
#include "sizes.h"

/* ---- A kernel that tells what it was given ----------------------------- */

/* Each work-group leaves its size at dw[8 * pass + group]. */
static const char flags_source[] =
    "void raise(__global float *dw, long dw_offset, int pass) {\n"
    "    if (get_local_id(0) == 0)\n"
    "        dw[dw_offset + 8 * pass + get_group_id(0)]\n"
    "            = (float)get_local_size(0);\n"
    "}\n"
    "__kernel void fake_0(__global float *dw, long dw_offset) {\n"
    "    raise(dw, dw_offset, 0);\n"
    "}\n"
    "__kernel void fake_1(__global float *dw, long dw_offset) {\n"
    "    raise(dw, dw_offset, 1);\n"
    "}\n"
    "__kernel void fake_2(__global float *dw, long dw_offset) {\n"
    "    raise(dw, dw_offset, 2);\n"
    "}\n";

/* For make_telling_pass(); sizes_t and shape_t come before it. */
static const char tell_source[] =
    "__kernel void fake_0(__global float *dw, long dw_offset,\n"
    "    __global float *dy, long dy_offset,\n"
    "    __global half *dy_copy, long dy_copy_offset,\n"
    "    __global half *w, long w_offset,\n"
    "    __global half *x_packed, long x_packed_offset,\n"
    "    __global half *x, long x_offset,\n"
    "    __global float *scratch, long scratch_offset,\n"
    "    __global uint *x_counts, long x_counts_offset,\n"
    "    __global uint *no_counts, long no_counts_offset,\n"
    "    float beta, int batch, long elements, sizes_t sizes,\n"
    "    shape_t shape) {\n"
    "    __global float *out = dw + dw_offset;\n"
    "    out[0] = dw_offset;\n"
    "    out[1] = dy_offset;\n"
    "    out[2] = dy_copy_offset;\n"
    "    out[3] = w_offset;\n"
    "    out[4] = scratch_offset;\n"
    "    out[5] = x_counts != 0;\n"
    "    out[6] = x_counts_offset;\n"
    "    out[7] = no_counts_offset;\n"
    "    out[8] = beta;\n"
    "    out[9] = batch;\n"
    "    out[10] = elements;\n"
    "    out[11] = sizes.dy_image;\n"
    "    out[12] = sizes.w_column;\n"
    "    out[13] = sizes.n;\n"
    "    out[14] = sizes.group_k;\n"
    "    out[15] = dy[dy_offset];\n"
    "    out[16] = shape.pitch;\n"
    "    out[17] = shape.length / 4294967296L;\n"
    "    out[18] = x_packed_offset;\n"
    "    out[19] = x_offset;\n"
    "    scratch[scratch_offset] = 1.0f;\n"
    "}\n";

enum { TOLD = 20 };

/* Halves of the map's words, low first. */
static const char map_source[] =
    "typedef struct { ulong word[16]; } map_t;\n"
    "__kernel void fake_0(__global float *dw, long dw_offset,\n"
    "    map_t x_map) {\n"
    "    for (int i = 0; i < 32; ++i)\n"
    "        dw[dw_offset + i]\n"
    "            = (float)(uint)(x_map.word[i / 2] >> (i % 2 * 32));\n"
    "}\n";

/* The passes of the next launch; fake_passes() gives them for any batch, whose
 * images X's map has, but takes local from here for the batch of the problem,
 * local_later else. */
static clconv_pass passes_now[3];
static int pass_count;
static size_t local_later;

static int fake_passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    memcpy(out, passes_now, sizeof passes_now);
    out[0].map[CLCONV_X].size[3] = batch;
    if (local_later && batch != t->problem->n)
        out[pass_count - 1].local = local_later;
    return pass_count;
}

/* Depends on the batch. */
static clconv_bias_sums fake_bias_sums(const clconv_task *t, int64_t batch)
{
    return (clconv_bias_sums){.count = 5 * batch, .run = t->problem->n};
}

/* What leaves partial sums of dbias, but launches nothing. */
static int no_passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)t;
    (void)batch;
    (void)out;
    return 0;
}

static const clconv_kernel fake_cast = {
    .name = "fake_cast",
    .role = CLCONV_ROLE_CAST,
    .bias_sums = fake_bias_sums,
    .passes = no_passes,
};

static const clconv_kernel fake = {
    .name = "fake",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .passes = fake_passes,
};

static void add_arg(clconv_pass *pass, clconv_arg_kind kind, clconv_tensor t)
{
    pass->args[pass->arg_count++] = (clconv_arg){kind, t};
}

/* Three passes, for DW, for DB, and for DX and counts. */
static void make_flag_passes(void)
{
    static const char *const entries[] = {"fake_0", "fake_1", "fake_2"};
    static const unsigned serves[] = {CLCONV_OP_DW, CLCONV_OP_DB, CLCONV_OP_DX};
    pass_count = 3;
    for (int i = 0; i < 3; ++i) {
        passes_now[i] = (clconv_pass){
            .entry = entries[i],
            .groups = (size_t)i + 1,
            .local = 1,
            .serves = serves[i],
            .counts = i == 2,
        };
        add_arg(&passes_now[i], CLCONV_ARG_TENSOR, CLCONV_DW);
    }
}

static clconv_shape telling_shape(void)
{
    clconv_shape s = {.baked = false};
    clconv_shape_add(&s, "pitch", 29);
    clconv_shape_add(&s, "length", (int64_t)3 << 32);
    return s;
}

/* One pass with every kind of argument. */
static void make_telling_pass(void)
{
    pass_count = 1;
    clconv_pass *pass = &passes_now[0];
    *pass = (clconv_pass){
        .entry = "fake_0",
        .groups = 1,
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    add_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    add_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DY);
    add_arg(pass, CLCONV_ARG_OPERAND, CLCONV_DY); /* copied */
    add_arg(pass, CLCONV_ARG_OPERAND, CLCONV_W);  /* not copied */
    add_arg(pass, CLCONV_ARG_PACKED, CLCONV_X);
    add_arg(pass, CLCONV_ARG_OPERAND, CLCONV_X); /* packed */
    add_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    add_arg(pass, CLCONV_ARG_COUNTS, CLCONV_X);
    add_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DY);
    add_arg(pass, CLCONV_ARG_BETA, CLCONV_DX);
    add_arg(pass, CLCONV_ARG_BATCH, CLCONV_DW);
    add_arg(pass, CLCONV_ARG_ELEMENTS, CLCONV_DX);
    add_arg(pass, CLCONV_ARG_SIZES, CLCONV_DW);
    clconv_shape shape = telling_shape();
    clconv_shape_arg(&shape, pass);
}

/* One pass that is given a map of X. */
static void make_map_pass(void)
{
    pass_count = 1;
    passes_now[0] = (clconv_pass){
        .entry = "fake_0",
        .groups = 1,
        .local = 1,
        .serves = CLCONV_OP_DW,
        .map[CLCONV_X] = {.size = {64, 5, 6}, .box = {64, 8, 8, 1}},
    };
    add_arg(&passes_now[0], CLCONV_ARG_TENSOR, CLCONV_DW);
    add_arg(&passes_now[0], CLCONV_ARG_MAP, CLCONV_X);
}

/* ---- A stage for it ---------------------------------------------------- */

typedef struct stage {
    host host;
    clconv_device facts;
    clconv_steps steps;
    clconv_launch *launch;
    clconv_call call;
    cl_mem dw, dy;
} stage;

enum {
    DW_BYTES = 4096,
    DW_OFFSET = 64,
    DY_OFFSET = 32,
    COPY = 256,
    PACKED = 768,
    SCRATCH = 512,
    WORKSPACE = 1024
};

static void open_stage(stage *s)
{
    *s = (stage){.steps = {.ops = CLCONV_OP_BACKWARD, .count = 1}};
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &s->host),
                 HOST_OK);
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse("n3c4h5w6k8r3s3p1g2_w16", &desc), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&desc, &s->steps.problem), CLCONV_OK);
    s->steps.step[0] = (clconv_step){
        .kernel = &fake,
        .copies = CLCONV_BIT(CLCONV_DY) | CLCONV_PACKED(CLCONV_X),
        .scratch_offset = SCRATCH,
    };
    s->steps.copy_offset[CLCONV_DY] = COPY;
    s->steps.packed_offset[CLCONV_X] = PACKED;
    s->steps.workspace = WORKSPACE;
    cr_assert_eq(clconv_launch_new(s->host.context, s->host.device, &s->steps,
                                   &s->facts, &s->launch),
                 CLCONV_OK);
    const float seven[16] = {[DY_OFFSET / 4] = 7};
    s->dw = host_buffer(&s->host, DW_BYTES, NULL);
    s->dy = host_buffer(&s->host, sizeof seven, seven);
    s->call = (clconv_call){.batch = 2, .wanted = CLCONV_OP_DW};
    s->call.tensor[CLCONV_DW] = (clconv_buffer){s->dw, DW_OFFSET};
    s->call.tensor[CLCONV_DY] = (clconv_buffer){s->dy, DY_OFFSET};
    s->call.tensor[CLCONV_W] = (clconv_buffer){s->dy, DY_OFFSET};
}

static void close_stage(stage *s)
{
    clconv_launch_free(s->launch);
    clReleaseMemObject(s->dw);
    clReleaseMemObject(s->dy);
    host_close(&s->host);
}

static clconv_status add(stage *s, const char *source)
{
    const clconv_log quiet = {NULL, NULL};
    cl_program program;
    cr_assert_eq(clconv_build_source(s->host.context, s->host.device, "fake",
                                     source, &quiet, &program),
                 CLCONV_OK, "%s", clconv_last_error());
    return clconv_launch_add(s->launch, 0, program);
}

static void clear_dw(stage *s)
{
    const float zeros[DW_BYTES / 4] = {0};
    cr_assert(host_write(&s->host, s->dw, 0, DW_BYTES, zeros));
}

/* ---- Arguments --------------------------------------------------------- */

static char *telling_source(void)
{
    clconv_emit *e = clconv_emit_new();
    clconv_text t = CLCONV_TEXT_EMPTY;
    clconv_shape shape = telling_shape();
    clconv_sizes_emit(e);
    clconv_shape_emit(e, &shape);
    char *sizes = clconv_emit_take(e);
    clconv_text_puts(&t, sizes);
    clconv_text_puts(&t, tell_source);
    free(sizes);
    clconv_emit_free(e);
    return clconv_text_take(&t);
}

static void expect_told(const stage *s, const float want[TOLD])
{
    float told[TOLD];
    host_read(&s->host, s->dw, DW_OFFSET, sizeof told, told);
    for (int i = 0; i < TOLD; ++i)
        cr_assert_eq(told[i], want[i], "%d: %g, not %g", i, (double)told[i],
                     (double)want[i]);
}

Test(launch, every_kind_of_argument_arrives)
{
    stage s;
    open_stage(&s);
    make_telling_pass();
    char *source = telling_source();
    cr_assert_eq(add(&s, source), CLCONV_OK, "%s", clconv_last_error());
    free(source);
    s.call.beta[CLCONV_DX] = -0.25f;
    s.call.workspace.mem = host_buffer(&s.host, 2 * WORKSPACE, NULL);
    s.call.workspace.offset = 256;
    s.call.report.mem = host_buffer(&s.host, sizeof(clconv_report) + 8, NULL);
    s.call.report.offset = 8;
    cr_assert_eq(
        clconv_launch_run(s.launch, s.host.queue, &s.call, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&s.host);
    const clconv_problem *p = &s.steps.problem;
    expect_told(&s, (float[TOLD]){
                        [0] = DW_OFFSET / 4,
                        [1] = DY_OFFSET / 4,
                        [2] = (256 + COPY) / 2,
                        [3] = DY_OFFSET / 2, /* w is fp16 */
                        [4] = (256 + SCRATCH) / 4,
                        [5] = 1,
                        [6] = (8 + offsetof(clconv_report, x)) / 4,
                        [7] = 8 / 4,
                        [8] = -0.25f,
                        [9] = 2,
                        [10] = 2 * 4 * 5 * 6, /* dx of this call */
                        [11] = (float)(p->k * p->p * p->q),
                        [12] = 1,
                        [13] = 2,
                        [14] = 4,
                        [15] = 7,
                        [16] = 29,
                        [17] = 3,
                        [18] = (256 + PACKED) / 2,
                        [19] = (256 + PACKED) / 2,
                    });
    clReleaseMemObject(s.call.workspace.mem);
    clReleaseMemObject(s.call.report.mem);
    close_stage(&s);
}

Test(launch, what_is_not_given_arrives_as_null_and_0)
{
    stage s;
    open_stage(&s);
    make_telling_pass();
    char *source = telling_source();
    cr_assert_eq(add(&s, source), CLCONV_OK, "%s", clconv_last_error());
    free(source);
    cr_assert_eq(
        clconv_launch_run(s.launch, s.host.queue, &s.call, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&s.host);
    float told[TOLD];
    host_read(&s.host, s.dw, DW_OFFSET, sizeof told, told);
    cr_assert_eq(told[4], SCRATCH / 4, "a workspace of its own");
    cr_assert_eq(told[5], 0, "no report");
    cr_assert_eq(told[6], 0);
    close_stage(&s);
}

/* One pass of the first step that is given the sums of the second. */
static void make_bias_pass(stage *s)
{
    pass_count = 1;
    passes_now[0] = (clconv_pass){
        .entry = "fake_0",
        .groups = 1,
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    add_arg(&passes_now[0], CLCONV_ARG_TENSOR, CLCONV_DW);
    add_arg(&passes_now[0], CLCONV_ARG_BIAS_SUMS, CLCONV_DB);
    s->steps.count = 2;
    s->steps.step[1] = (clconv_step){
        .kernel = &fake_cast,
        .finishes_bias = true,
        .scratch_offset = SCRATCH,
    };
    s->steps.step[0].finishes_bias = true;
    s->steps.step[0].scratch_offset = 0;
}

Test(launch, the_sums_that_a_cast_left_arrive_with_how_they_lie)
{
    static const char source[] =
        "__kernel void fake_0(__global float *dw, long dw_offset,\n"
        "    __global float *sums, long sums_offset, int count, int run) {\n"
        "    dw[dw_offset] = (float)sums_offset;\n"
        "    dw[dw_offset + 1] = (float)count;\n"
        "    dw[dw_offset + 2] = (float)run;\n"
        "    sums[sums_offset] = 1.0f;\n"
        "}\n";
    stage s;
    open_stage(&s);
    make_bias_pass(&s);
    cr_assert_eq(add(&s, source), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(
        clconv_launch_run(s.launch, s.host.queue, &s.call, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&s.host);
    float told[3];
    host_read(&s.host, s.dw, DW_OFFSET, sizeof told, told);
    cr_assert_eq(told[0], SCRATCH / 4);
    cr_assert_eq(told[1], 5 * 2, "of this call");
    cr_assert_eq(told[2], 3);
    close_stage(&s);
}

/* ---- Tensor maps ------------------------------------------------------- */

/* In libcuda's place: box[0] in word 1, images - 1 high in word 5. */
static int encoded; /* maps */
static bool refuses;

bool __wrap_clconv_cuda_maps_encode(clconv_cuda_maps *cuda,
                                    const clconv_tensor_map *m,
                                    clconv_map_template *out, clconv_text *why);

bool __wrap_clconv_cuda_maps_encode(clconv_cuda_maps *cuda,
                                    const clconv_tensor_map *m,
                                    clconv_map_template *out, clconv_text *why)
{
    (void)cuda;
    ++encoded;
    if (refuses)
        clconv_text_puts(why, "it is refused here");
    *out = (clconv_map_template){
        .word = {[1] = (uint64_t)m->box[0]},
        .images = 11,
        .bias = -1,
    };
    return !refuses;
}

/* Once more, for the passes that there are now, on a device with or without
 * emulated units. */
static clconv_status relaunch(stage *s, bool emulated)
{
    clconv_launch_free(s->launch);
    s->launch = NULL;
    s->facts.unit_emulated = emulated;
    return clconv_launch_new(s->host.context, s->host.device, &s->steps,
                             &s->facts, &s->launch);
}

static void expect_map(stage *s, const uint64_t want[CLCONV_TENSOR_MAP_WORDS])
{
    float told[2 * CLCONV_TENSOR_MAP_WORDS];
    cr_assert_eq(add(s, map_source), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(
        clconv_launch_run(s->launch, s->host.queue, &s->call, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&s->host);
    host_read(&s->host, s->dw, DW_OFFSET, sizeof told, told);
    for (int i = 0; i < 2 * CLCONV_TENSOR_MAP_WORDS; ++i) {
        uint32_t half = (uint32_t)(want[i / 2] >> i % 2 * 32);
        cr_assert_eq(told[i], (float)half, "half %d: %g, not %g", i,
                     (double)told[i], (double)half);
    }
}

Test(launch, a_map_arrives_as_the_driver_encodes_it_for_the_calls_images)
{
    stage s;
    open_stage(&s);
    make_map_pass();
    cr_assert_eq(relaunch(&s, false), CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(encoded, 1);
    expect_map(&s, (uint64_t[CLCONV_TENSOR_MAP_WORDS]){
                       [1] = 64,
                       [5] = (uint64_t)(2 - 1) << 32,
                   });
    cr_assert_eq(encoded, 1, "a call encodes nothing");
    close_stage(&s);
}

Test(launch, the_map_of_an_empty_batch_is_one_of_one_image)
{
    stage s;
    open_stage(&s);
    make_map_pass();
    s.call.batch = 0;
    cr_assert_eq(relaunch(&s, false), CLCONV_OK, "%s", clconv_last_error());
    expect_map(&s, (uint64_t[CLCONV_TENSOR_MAP_WORDS]){[1] = 64});
    close_stage(&s);
}

Test(launch, in_emulation_a_map_arrives_as_its_description)
{
    stage s;
    open_stage(&s);
    make_map_pass();
    cr_assert_eq(relaunch(&s, true), CLCONV_OK, "%s", clconv_last_error());
    clconv_tensor_map map = passes_now[0].map[CLCONV_X];
    uint64_t want[CLCONV_TENSOR_MAP_WORDS];
    map.size[3] = 2;
    clconv_tensor_map_describe(&map, want);
    expect_map(&s, want);
    cr_assert_eq(encoded, 0);
    close_stage(&s);
}

Test(launch, a_map_that_is_refused_fails_the_plan)
{
    stage s;
    open_stage(&s);
    make_map_pass();
    refuses = true;
    cr_assert_eq(relaunch(&s, false), CLCONV_BUILD_FAILED);
    cr_assert_str_eq(clconv_last_error(), "kernel fake_0: no tensor map of x: "
                                          "it is refused here");
    close_stage(&s);
}

Test(launch, a_pass_with_nothing_to_do_needs_no_map)
{
    stage s;
    open_stage(&s);
    make_map_pass();
    passes_now[0].groups = 0;
    cr_assert_eq(relaunch(&s, false), CLCONV_OK);
    cr_assert_eq(encoded, 0);
    close_stage(&s);
}

/* ---- Which passes run -------------------------------------------------- */

static void expect_flags(stage *s, unsigned wanted, bool report,
                         const bool ran[3])
{
    float flags[3 * 8];
    clear_dw(s);
    s->call.wanted = wanted;
    s->call.report.mem = report ? s->dy : NULL;
    cr_assert_eq(
        clconv_launch_run(s->launch, s->host.queue, &s->call, 0, NULL, NULL),
        CLCONV_OK, "%s", clconv_last_error());
    host_finish(&s->host);
    host_read(&s->host, s->dw, DW_OFFSET, sizeof flags, flags);
    for (int i = 0; i < 3; ++i)
        for (int group = 0; group < 8; ++group)
            cr_assert_eq(flags[8 * i + group], ran[i] && group <= i ? 1 : 0,
                         "wanted %u, report %d: pass %d, group %d", wanted,
                         report, i, group);
}

Test(launch, a_pass_runs_for_what_it_serves_and_for_counts)
{
    stage s;
    open_stage(&s);
    make_flag_passes();
    cr_assert_eq(add(&s, flags_source), CLCONV_OK, "%s", clconv_last_error());
    expect_flags(&s, 0, false, (bool[]){false, false, false});
    expect_flags(&s, CLCONV_OP_DW, false, (bool[]){true, false, false});
    expect_flags(&s, CLCONV_OP_DB | CLCONV_OP_DX, false,
                 (bool[]){false, true, true});
    expect_flags(&s, 0, true, (bool[]){false, false, true});
    expect_flags(&s, CLCONV_OP_DW, true, (bool[]){true, false, true});

    passes_now[0].groups = 0; /* nothing to do for this batch */
    expect_flags(&s, CLCONV_OP_DW, true, (bool[]){false, false, true});

    add_arg(&passes_now[2], CLCONV_ARG_TENSOR, CLCONV_X); /* not given */
    expect_flags(&s, CLCONV_OP_DB, true, (bool[]){false, true, false});
    close_stage(&s);
}

/* ---- Failures ---------------------------------------------------------- */

Test(launch, a_failure_halfway_says_that_outputs_are_undefined)
{
    stage s;
    open_stage(&s);
    make_flag_passes();
    size_t most = 1;
    clGetDeviceInfo(s.host.device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most,
                    &most, NULL);
    local_later = most + 1;
    cr_assert_eq(add(&s, flags_source), CLCONV_OK, "%s", clconv_last_error());
    clear_dw(&s);
    s.call.wanted = CLCONV_OP_DW | CLCONV_OP_DX;
    cl_event event = NULL;
    cr_assert_eq(
        clconv_launch_run(s.launch, s.host.queue, &s.call, 0, NULL, &event),
        CLCONV_OPENCL_ERROR);
    cr_assert_null(event);
    host_finish(&s.host);
    const char *said = clconv_last_error();
    cr_assert_not_null(strstr(said, "the outputs are undefined"), "%s", said);
    cr_assert_not_null(strstr(said, "kernel fake_2"), "%s", said);
    cr_assert_not_null(strstr(said, "clEnqueueNDRangeKernel"), "%s", said);
    cr_assert_not_null(strstr(said, "CL_INVALID_WORK_"), "%s", said);
    float first = 0;
    host_read(&s.host, s.dw, DW_OFFSET, sizeof first, &first);
    cr_assert_eq(first, 1, "the first pass had been enqueued");
    close_stage(&s);
}

Test(launch, a_work_group_that_the_device_refuses_fails_the_plan)
{
    stage s;
    open_stage(&s);
    make_flag_passes();
    passes_now[1].local = 1u << 20;
    cr_assert_eq(add(&s, flags_source), CLCONV_BUILD_FAILED);
    cr_assert_not_null(strstr(clconv_last_error(), "fake_1"), "%s",
                       clconv_last_error());
    cr_assert_not_null(strstr(clconv_last_error(), "1048576"), "%s",
                       clconv_last_error());
    close_stage(&s);
}

Test(launch, a_missing_entry_point_is_named)
{
    stage s;
    open_stage(&s);
    make_flag_passes();
    passes_now[2].entry = "fake_3";
    cr_assert_eq(add(&s, flags_source), CLCONV_OPENCL_ERROR);
    cr_assert_not_null(strstr(clconv_last_error(), "kernel fake_3"), "%s",
                       clconv_last_error());
    close_stage(&s);
}
