/*
 * libclconv: gradients of a 2-D convolution on OpenCL, in mixed precision
 * without losing small gradients; and the convolution itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * How to read this file: the description of a problem, then the three
 * objects in the order of use (context, plan, the enqueues), then the report
 * of what rounding did, then texts and errors. A first program:
 *
 *     clconv_desc desc;
 *     clconv_desc_init(&desc);
 *     desc.n = 64, desc.c = 32, desc.h = 28, desc.w = 28;
 *     desc.k = 64, desc.r = 3, desc.s = 3;
 *     desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
 *
 *     clconv_context *context;
 *     clconv_plan *plan;
 *     clconv_context_create(cl_ctx, device, NULL, &context);
 *     clconv_plan_create(context, &desc, CLCONV_OP_BACKWARD, NULL, &plan);
 *
 *     clconv_backward_args args;
 *     clconv_backward_args_init(&args);
 *     args.batch = 64;
 *     args.x.mem = x, args.w.mem = w, args.dy.mem = dy;
 *     args.dw.mem = dw, args.db.mem = db, args.dx.mem = dx;
 *     clconv_enqueue_backward(plan, queue, &args, 0, NULL, NULL);
 *
 * Every call that can fail returns a clconv_status; on failure outputs stay
 * untouched and clconv_last_error() says, in this thread, which argument was
 * wrong and what it may be. Nothing here prints, aborts or keeps OpenCL
 * objects in static variables.
 */
#ifndef CLCONV_CLCONV_H
#define CLCONV_CLCONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLCONV_VERSION_MAJOR 0
#define CLCONV_VERSION_MINOR 1
#define CLCONV_VERSION_PATCH 0

#if defined(__GNUC__)
#define CLCONV_API __attribute__((visibility("default")))
#else
#define CLCONV_API
#endif

/* ---- Status --------------------------------------------------------- */

/* Status codes, their one place: X(name, value, text). */
#define CLCONV_STATUS_LIST(X)                                                  \
    X(CLCONV_OK, 0, "success")                                                 \
    X(CLCONV_INVALID_ARGUMENT, -1, "an argument is out of its allowed range")  \
    X(CLCONV_UNSUPPORTED, -2, "not supported here")                            \
    X(CLCONV_OUT_OF_MEMORY, -3, "out of host memory")                          \
    X(CLCONV_OPENCL_ERROR, -4, "an OpenCL call failed")                        \
    X(CLCONV_BUILD_FAILED, -5, "a generated kernel did not build")             \
    X(CLCONV_INTERNAL, -6, "internal error, please report it")

#define CLCONV_STATUS_ENUM(name, value, text) name = value,
typedef enum clconv_status {
    CLCONV_STATUS_LIST(CLCONV_STATUS_ENUM)
} clconv_status;
#undef CLCONV_STATUS_ENUM

/* "CLCONV_OK", and "success". Never NULL, also for unknown values. */
CLCONV_API const char *clconv_status_name(clconv_status status);
CLCONV_API const char *clconv_status_text(clconv_status status);

/*
 * The sentence for the last failure in this thread: the argument, its value
 * and the allowed range, or the OpenCL call and its error. "" if nothing has
 * failed; a later success leaves it as it is. Valid until the next libclconv
 * call in this thread.
 */
CLCONV_API const char *clconv_last_error(void);

/* "0.1.0" */
CLCONV_API const char *clconv_version(void);

/* ---- The problem ---------------------------------------------------- */

typedef enum clconv_layout {
    CLCONV_NCHW = 0, /* x [n][c][h][w], w [k][c/groups][r][s], dy [n][k][p][q] */
    CLCONV_NHWC = 1, /* x [n][h][w][c], w [k][r][s][c/groups], dy [n][p][q][k] */
} clconv_layout;

typedef enum clconv_type {
    CLCONV_F32 = 0,
    CLCONV_F16 = 1 /* IEEE binary16 */
} clconv_type;

typedef enum clconv_math {
    /* fp16 operands, fp32 accumulation. fp32 tensors are rounded to fp16,
     * nearest even; dY is multiplied by 2^scale_log2 in that step. */
    CLCONV_MIXED = 0,
    /* fp32 operands and accumulation; fp16 tensors are widened. */
    CLCONV_FP32 = 1
} clconv_math;

/* What becomes of finite values that lie beyond fp16's largest, 65504. */
typedef enum clconv_overflow {
    CLCONV_SATURATE = 0, /* +-65504, counted in the report */
    CLCONV_TO_INF = 1 /* +-Inf, counted in the report; round to nearest even */
} clconv_overflow;

typedef enum clconv_scale {
    CLCONV_SCALE_FIXED = 0,  /* 2^scale_log2 */
    CLCONV_SCALE_DYNAMIC = 1 /* chosen on the device: unsupported in 0.1 */
} clconv_scale;

/* What the epilogue of the forward convolution does to y, last of all. */
typedef enum clconv_activation {
    CLCONV_IDENTITY = 0,
    CLCONV_RELU = 1 /* below 0 becomes 0; a NaN stays */
} clconv_activation;

/* scale_log2, dy_log2 and dx_log2 lie in [-CLCONV_LOG2_MAX, CLCONV_LOG2_MAX]. */
#define CLCONV_LOG2_MAX 40
#define CLCONV_SCALE_LOG2_DEFAULT 10

/*
 * A 2-D convolution (cross-correlation, as deep learning uses the word):
 *
 *   y[n,k,p,q] = b[k] + sum over c,r,s of
 *       x[n, c, p*stride_h + r*dilation_h - pad_top,
 *               q*stride_w + s*dilation_w - pad_left] * w[k,c,r,s]
 *   p = (h + pad_top + pad_bottom - dilation_h*(r - 1) - 1) / stride_h + 1
 *
 * and likewise q; c runs over the c/groups channels of k's group. A size,
 * also a padded one, is at most 2^31 - 2^16, a tensor 2^58 elements. Call
 * clconv_desc_init() first, then set what differs. All tensors are dense.
 */
typedef struct clconv_desc {
    size_t struct_size; /* set by clconv_desc_init() */

    int64_t n;       /* images, >= 0; a call may use fewer */
    int64_t c, h, w; /* input channels, height, width, >= 1 */
    int64_t k, r, s; /* output channels, filter height, width, >= 1 */
    int64_t stride_h, stride_w;     /* >= 1, default 1 */
    int64_t pad_top, pad_bottom;    /* >= 0, default 0 */
    int64_t pad_left, pad_right;    /* >= 0, default 0 */
    int64_t dilation_h, dilation_w; /* >= 1, default 1: no holes */
    int64_t groups;                 /* divides c and k, default 1 */

    clconv_layout layout; /* default CLCONV_NCHW */
    clconv_math math;     /* default CLCONV_MIXED */

    /* Element types, default CLCONV_F32 each. */
    clconv_type x_type, w_type, dy_type;
    clconv_type dw_type, db_type, dx_type;

    /*
     * Exponents. The true gradient of y is dY * 2^-dy_log2: dy_log2 says what
     * the caller already multiplied in (default 0). scale_log2 is what the
     * cast of an fp32 dY to fp16 multiplies in (default 10; an fp16 dY and
     * CLCONV_FP32 are not scaled). Both are divided out in fp32 before dW, db
     * and dX are stored, so these are in true units; dX alone is stored times
     * 2^dx_log2 (default 0), for callers who keep dX in fp16.
     */
    clconv_scale scale;
    int scale_log2;
    int dy_log2;
    int dx_log2;
    clconv_overflow overflow; /* default CLCONV_SATURATE */

    /* Every buffer offset given later is a multiple of this many bytes: a
     * power of two from the size of the element to 4096; default 16. */
    size_t alignment;

    /* Of CLCONV_OP_FORWARD alone: the types of y and of the bias b, default
     * CLCONV_F32, and what is applied to y, default CLCONV_IDENTITY. */
    clconv_type y_type, b_type;
    clconv_activation activation;
} clconv_desc;

CLCONV_API void clconv_desc_init(clconv_desc *desc);

/* CLCONV_OK, or CLCONV_INVALID_ARGUMENT with the field and its range in
 * clconv_last_error(). */
CLCONV_API clconv_status clconv_desc_validate(const clconv_desc *desc);

/* Height and width of y and dy. */
CLCONV_API clconv_status clconv_desc_output_shape(const clconv_desc *desc,
                                                  int64_t *p, int64_t *q);

/*
 * Problem strings, such as n64c128h28w28k128r3s3p1_nhwc: the sizes, then
 * what differs from the defaults. After the sizes: u2 or u2x1 (stride),
 * p1, p1x2 (height x width) or p1x0x2x0 (top x bottom x left x right),
 * d2 or d2x1 (dilation), g4 (groups); then, each after an underscore:
 * nhwc, fp32, x16 w16 dy16 dw16 db16 dx16 y16 b16 (fp16 tensors), inf
 * (overflow), relu (activation), scale0 (scale_log2), dylog3, dxlog10, align4.
 *
 * clconv_desc_format writes at most size bytes, always terminated, and
 * returns the length that the whole string has, as snprintf does. It checks
 * no values; of NULL or a struct without its size it makes "".
 */
CLCONV_API clconv_status clconv_desc_parse(const char *text, clconv_desc *desc);
CLCONV_API size_t clconv_desc_format(const clconv_desc *desc, char *text,
                                     size_t size);

/* ---- Context: one per cl_context and device -------------------------- */

typedef struct clconv_context clconv_context;

typedef enum clconv_log_level {
    CLCONV_LOG_WARNING = 0, /* it goes on, with less: no cache, another plan */
    CLCONV_LOG_INFO = 1     /* each program of a plan: from where, how long */
} clconv_log_level;

/* Called from whichever thread is inside libclconv; must not call back. */
typedef void (*clconv_log_fn)(clconv_log_level level, const char *message,
                              void *user);

/* Which compiled programs go to disk. */
typedef enum clconv_cache_policy {
    /* All at once, but where the driver compiles a second time to hand out a
     * binary (PoCL: it would double a cold start) at their second use: the
     * first process that launches a program leaves a mark, the next one stores
     * the binary when its plan is released, the third starts from it. */
    CLCONV_CACHE_CHEAP = 0,
    /* Costly ones as well at their first use, when the plan that launched them
     * is released. */
    CLCONV_CACHE_ALL = 1
} clconv_cache_policy;

typedef struct clconv_context_options {
    size_t struct_size; /* set by clconv_context_options_init() */
    clconv_log_fn log;  /* NULL: no log */
    void *log_user;
    /* Where compiled programs are kept. NULL: $CLCONV_CACHE_DIR, else
     * $XDG_CACHE_HOME/clconv, else ~/.cache/clconv. "": memory only. A
     * directory that cannot be written is read, with a warning once something
     * would be written. It is not used, with a warning, if it belongs to
     * neither this user nor root, or others may write to it. */
    const char *cache_dir;
    /* For tests: act as if the device had this matrix unit and compute its
     * products in plain OpenCL C, such as "mma_m16n8k16". NULL: none. Unlike a
     * unit of the device, it is not done without where a kernel does not
     * build: CLCONV_BUILD_FAILED. */
    const char *emulate_unit;
    clconv_cache_policy cache_policy; /* default CLCONV_CACHE_CHEAP */
} clconv_context_options;

CLCONV_API void clconv_context_options_init(clconv_context_options *options);

/*
 * Reads the environment and the device once. options may be NULL. The
 * context retains cl_ctx and is shared freely between threads. With
 * CLCONV_OFFLINE=1 in the environment its plans compile nothing from source:
 * every program must be in the cache, and the device needs no compiler. On an
 * NVIDIA sm_90 it multiplies two small matrices, on a queue of its own, to see
 * whether wgmma works; the first time that compiles a program.
 * Errors: INVALID_ARGUMENT (device not in cl_ctx), UNSUPPORTED (no
 * compiler, big-endian device), OPENCL_ERROR, OUT_OF_MEMORY.
 */
CLCONV_API clconv_status clconv_context_create(
    cl_context cl_ctx, cl_device_id device,
    const clconv_context_options *options, clconv_context **out);
CLCONV_API void clconv_context_retain(clconv_context *context);
CLCONV_API void clconv_context_release(clconv_context *context); /* NULL: no-op */

/* ---- Plan: the kernels for one description --------------------------- */

typedef struct clconv_plan clconv_plan;

/* What a plan can compute, a mask. */
typedef enum clconv_op {
    CLCONV_OP_DW = 1,
    CLCONV_OP_DB = 2,
    CLCONV_OP_DX = 4,
    CLCONV_OP_BACKWARD = 7,
    CLCONV_OP_FORWARD = 8 /* y; alone, never beside a gradient */
} clconv_op;

/* What "tuned" means: clconv-tune or CLCONV_PLAN_FIND measured the fastest plan
 * for a problem on a device and keeps a record of it in the cache directory. */
typedef enum clconv_plan_mode {
    /* The best plan known without measuring: a tuned record's, that of a
     * problem or a device like this, else what a model of costs says. */
    CLCONV_PLAN_DEFAULT = 0,
    /* A record of this very problem, device and driver, else UNSUPPORTED. */
    CLCONV_PLAN_TUNED = 1,
    /* Such a record, else measure now, on the device, in this process, and keep
     * the record. This takes find_seconds; run it while the device is idle. A
     * record whose plan needs more than max_workspace is measured anew and
     * replaced. A driver that crashes or hangs takes this process along:
     * clconv-tune, which works in processes of its own, survives that. */
    CLCONV_PLAN_FIND = 2,
    /* The generic kernels, which are slow but compile in the shortest time and
     * once for all shapes: to start at once and make another plan later. */
    CLCONV_PLAN_INSTANT = 3
} clconv_plan_mode;

/* How far CLCONV_PLAN_FIND has come. */
typedef struct clconv_find_progress {
    double seconds;           /* spent so far */
    double budget;            /* find_seconds */
    int trials;               /* plans tried so far */
    double best_microseconds; /* of a call, in this stage; INFINITY: none yet */
    const char *stage;        /* such as "bwd_data"; a static text */
} clconv_find_progress;

/* Called between trials, in the thread that makes the plan; must not call back.
 * false: stop with the best plan so far. */
typedef bool (*clconv_find_progress_fn)(const clconv_find_progress *progress,
                                        void *user);

/* find_seconds is at most this: a day. */
#define CLCONV_FIND_SECONDS_MAX 86400.0
#define CLCONV_FIND_SECONDS_DEFAULT 10.0

typedef struct clconv_plan_options {
    size_t struct_size; /* set by clconv_plan_options_init() */
    clconv_plan_mode mode;
    /* Bytes of workspace that a plan may need; default SIZE_MAX: as much as
     * the device allocates in one buffer. */
    size_t max_workspace;
    /* A plan string as clconv_plan_explain() prints it, whole or in part:
     * kernels separated by ';', such as
     * "bwd_data_generic;bwd_weight_generic:cast=separate". What it leaves
     * open is chosen as for NULL. Must be NULL with CLCONV_PLAN_FIND. */
    const char *plan;
    /* For CLCONV_PLAN_FIND: seconds to measure for, default 10, in
     * (0, CLCONV_FIND_SECONDS_MAX]. It ends with the trial during which they
     * run out and a last check, which on a slow device takes longer. */
    double find_seconds;
    clconv_find_progress_fn find_progress; /* NULL: none */
    void *find_user;
} clconv_plan_options;

CLCONV_API void clconv_plan_options_init(clconv_plan_options *options);

/*
 * Chooses kernels for the outputs in ops (a mask of clconv_op) and compiles
 * them, or takes them from the cache. options may be NULL.
 * Errors: INVALID_ARGUMENT (description, ops, plan string), UNSUPPORTED (no
 * kernel covers this problem within max_workspace; CLCONV_PLAN_TUNED without a
 * record; CLCONV_PLAN_FIND where no plan passed its check; either of these two
 * with CLCONV_OP_FORWARD; dynamic scale), BUILD_FAILED (with the compiler's
 * first lines; with CLCONV_OFFLINE=1, a program that is not in the cache),
 * OPENCL_ERROR, OUT_OF_MEMORY.
 */
CLCONV_API clconv_status clconv_plan_create(clconv_context *context,
                                            const clconv_desc *desc,
                                            unsigned ops,
                                            const clconv_plan_options *options,
                                            clconv_plan **out);
CLCONV_API void clconv_plan_retain(clconv_plan *plan);
CLCONV_API void clconv_plan_release(clconv_plan *plan); /* NULL: no-op */

/* Bytes that the workspace of a call must have, for desc.n images. */
CLCONV_API clconv_status clconv_plan_workspace_size(const clconv_plan *plan,
                                                    size_t *bytes);

/*
 * A text for people: the problem, each kernel with its values and why it was
 * chosen, launches, workspace, where the program came from. Its line
 * "plan: ..." holds the string for clconv_plan_options.plan. Writes at most
 * size bytes, always terminated; *needed (may be NULL) gets the whole length
 * with the terminator.
 */
CLCONV_API clconv_status clconv_plan_explain(const clconv_plan *plan, char *text,
                                             size_t size, size_t *needed);

/* ---- Enqueue ---------------------------------------------------------- */

/* A tensor: its first element lies offset bytes into mem. */
typedef struct clconv_buffer {
    cl_mem mem; /* NULL: not wanted, or not given */
    size_t offset;
} clconv_buffer;

typedef struct clconv_backward_args {
    size_t struct_size; /* set by clconv_backward_args_init() */
    int64_t batch; /* images in this call, 0 to desc.n; init: -1 = desc.n */

    /* Inputs. x is read for dW only, w for dX only. */
    clconv_buffer x, w, dy;

    /* Outputs: out = beta * out + gradient, for any finite beta; 0 (the
     * default) never reads. An unwanted one is left {NULL, 0}; one that the
     * plan was not created for is an error, none at all is not. No output may
     * overlap another tensor. */
    clconv_buffer dw, db, dx;
    float beta_w, beta_b, beta_x;

    /* At least clconv_plan_workspace_size() bytes, offset a multiple of 256.
     * {NULL, 0}: allocated for this call. Contents need not be kept; two
     * calls that may run at the same time need two. */
    clconv_buffer workspace;

    /* sizeof(clconv_report) bytes, offset a multiple of 8: counts are ADDED,
     * so clear it first and read it whenever that suits; calls that run at
     * the same time may share one. x and w are counted where they are given,
     * read for an output or not. {NULL, 0}: none. */
    clconv_buffer report;
} clconv_backward_args;

CLCONV_API void clconv_backward_args_init(clconv_backward_args *args);

/*
 * Enqueues the gradients of one convolution on an in-order or out-of-order
 * queue. Waits for the events in wait_list; *event (may be NULL) completes
 * when every output and the report are written. Buffers, plan and context may
 * be released right after the call. Never blocks, never compiles. Shared freely
 * between threads. Same plan, device, driver and data: same bits.
 * With batch 0, dW and db become beta * old (0 if beta is 0) and the event
 * completes.
 * Errors: INVALID_ARGUMENT (before anything is enqueued), OPENCL_ERROR or
 * OUT_OF_MEMORY (outputs are then undefined, and the message says so).
 */
CLCONV_API clconv_status clconv_enqueue_backward(
    clconv_plan *plan, cl_command_queue queue, const clconv_backward_args *args,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event);

typedef struct clconv_forward_args {
    size_t struct_size; /* set by clconv_forward_args_init() */
    int64_t batch; /* images in this call, 0 to desc.n; init: -1 = desc.n */

    /* Inputs. b holds an element for each of the k channels; {NULL, 0}: no
     * bias. It is added in fp32 and never rounded. */
    clconv_buffer x, w, b;

    /* y = activation(beta_y * y + convolution + b), for any finite beta; 0 (the
     * default) never reads. Must not overlap another tensor. */
    clconv_buffer y;
    float beta_y;

    clconv_buffer workspace, report; /* as in clconv_backward_args */
} clconv_forward_args;

CLCONV_API void clconv_forward_args_init(clconv_forward_args *args);

/*
 * Enqueues a forward convolution, with a plan that was created for
 * CLCONV_OP_FORWARD. Under CLCONV_MIXED, fp32 x and w are rounded to fp16 as
 * the gradients round them, without a scale, and products are added in fp32. In
 * all else, errors included, like clconv_enqueue_backward(). With batch 0
 * nothing is read or written, and the event completes.
 */
CLCONV_API clconv_status clconv_enqueue_forward(clconv_plan *plan,
                                                cl_command_queue queue,
                                                const clconv_forward_args *args,
                                                cl_uint num_events_in_wait_list,
                                                const cl_event *event_wait_list,
                                                cl_event *event);

/* ---- Report: what the casts did, counted on the device ---------------- */

/* Elements of one tensor. A cast tensor counts what its cast did; a tensor
 * that is fp16 already counts what it holds; an fp32 tensor that is not cast
 * counts nonzero, nan and inf, the rest stays 0. */
typedef struct clconv_counts {
    uint64_t nonzero;   /* neither 0 nor NaN before rounding */
    uint64_t zeroed;    /* of those, 0 after rounding: lost */
    uint64_t subnormal; /* fp16 subnormal after rounding: fewer bits */
    uint64_t saturated; /* finite, beyond fp16's range: +-65504 or Inf */
    uint64_t nan;
    uint64_t inf; /* infinite before rounding */
} clconv_counts;

/* Layout of the report buffer. An output is counted if it is fp16. */
typedef struct clconv_report {
    clconv_counts dy, x, w;
    clconv_counts dw, db, dx;
    clconv_counts y;
} clconv_report;

#ifdef __cplusplus
}
#endif

#endif
