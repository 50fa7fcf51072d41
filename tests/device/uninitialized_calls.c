/*
 * uninitialized_calls [--plan TEXT] [--emulate UNIT] [--lose KERNEL] PROBLEM...
 *
 * Calls the library, in both layouts and both kinds of arithmetic, such that
 * oclgrind 21.10 with --uninitialized can follow. It forgets what it knew of
 * a buffer whenever the host writes to it and does not see what a buffer is
 * created with, so the host writes a buffer whole and in one command, or not
 * at all. It takes a new buffer at an old one's address for the old one, so
 * none is released. And it loses track of halves of vectors (shuffles.h).
 *
 * With --lose the kernel of that name runs without its last work-group, so
 * that a later one reads a workspace that is not all there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "host.h"
#include "message.h"
#include "random.h"
#include "shape.h"
#include "shuffles.h"

typedef struct setting {
    host host;
    clconv_context *context;
    clconv_plan_options plan_options;
    const char *emulate;
    int calls;
} setting;

/* ---- Between the library and the driver --------------------------------- */

static const char *lost_kernel; /* NULL: none */

cl_program __real_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths,
                                            cl_int *error);
cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths,
                                            cl_int *error);

/* The library gives one string, terminated. */
cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count,
                                            const char **strings,
                                            const size_t *lengths, cl_int *error)
{
    char *text = shuffles_spell(strings[0]);
    const char *source = text;
    cl_program program = NULL;

    if (text)
        program = __real_clCreateProgramWithSource(context, count, &source,
                                                   lengths, error);
    else
        *error = CL_OUT_OF_HOST_MEMORY;
    free(text);
    return program;
}

static bool is_lost(cl_kernel kernel)
{
    char name[64] = "";

    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    return lost_kernel && strcmp(name, lost_kernel) == 0;
}

cl_int __real_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                     cl_uint dimensions, const size_t *offset,
                                     const size_t *global, const size_t *local,
                                     cl_uint wait_count,
                                     const cl_event *wait_list, cl_event *event);
cl_int __wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                     cl_uint dimensions, const size_t *offset,
                                     const size_t *global, const size_t *local,
                                     cl_uint wait_count,
                                     const cl_event *wait_list, cl_event *event);

/* The library's ranges have one dimension. */
cl_int __wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                     cl_uint dimensions, const size_t *offset,
                                     const size_t *global, const size_t *local,
                                     cl_uint wait_count,
                                     const cl_event *wait_list, cl_event *event)
{
    size_t items = *global - (is_lost(kernel) ? *local : 0);

    if (items == 0)
        return CL_SUCCESS;
    return __real_clEnqueueNDRangeKernel(queue, kernel, dimensions, offset,
                                         &items, local, wait_count, wait_list,
                                         event);
}

/* ---- Buffers ------------------------------------------------------------ */

static clconv_buffer unwritten(const setting *s, size_t bytes)
{
    cl_int error;
    cl_mem mem =
        clCreateBuffer(s->host.context, CL_MEM_READ_WRITE, bytes, NULL, &error);

    if (error)
        message_error("clCreateBuffer: %d", (int)error);
    return (clconv_buffer){mem, 0};
}

static clconv_buffer written(const setting *s, size_t bytes, const void *data)
{
    clconv_buffer buffer = unwritten(s, bytes);

    if (buffer.mem && !host_write(&s->host, buffer.mem, 0, bytes, data))
        buffer.mem = NULL;
    return buffer;
}

static clconv_buffer input(const setting *s, size_t count)
{
    random_source source = random_seeded(count);
    float *values = malloc(count * sizeof *values);
    clconv_buffer buffer = {NULL, 0};

    if (!values)
        return buffer;
    random_fill_integers(&source, 4, count, values);
    buffer = written(s, count * sizeof *values, values);
    free(values);
    return buffer;
}

static clconv_buffer output(const setting *s, size_t count)
{
    return unwritten(s, count * sizeof(float));
}

static bool make_buffers(const setting *s, const shape *z,
                         const clconv_plan *plan, clconv_backward_args *args)
{
    const clconv_report zeros = {{0}, {0}, {0}, {0}, {0}, {0}, {0}};
    size_t workspace;

    if (clconv_plan_workspace_size(plan, &workspace))
        return false;
    clconv_backward_args_init(args);
    args->x = input(s, shape_x_count(z));
    args->w = input(s, shape_w_count(z));
    args->dy = input(s, shape_dy_count(z));
    args->dw = output(s, shape_w_count(z));
    args->db = output(s, (size_t)z->k);
    args->dx = output(s, shape_x_count(z));
    args->report = written(s, sizeof zeros, &zeros);
    args->workspace = unwritten(s, workspace ? workspace : 1);
    return args->x.mem && args->w.mem && args->dy.mem && args->dw.mem &&
           args->db.mem && args->dx.mem && args->report.mem &&
           args->workspace.mem;
}

/* ---- Calls -------------------------------------------------------------- */

static bool failed(clconv_status status)
{
    if (status)
        message_error("%s: %s", clconv_status_name(status), clconv_last_error());
    return status != CLCONV_OK;
}

static bool call(setting *s, const shape *z, clconv_plan *plan)
{
    clconv_backward_args args;

    if (!make_buffers(s, z, plan, &args))
        return false;
    ++s->calls;
    return !failed(clconv_enqueue_backward(plan, s->host.queue, &args, 0, NULL,
                                           NULL)) &&
           host_finish(&s->host);
}

/* True as well where the plan's kernels do not cover the problem. */
static bool plan_and_call(setting *s, const clconv_desc *desc)
{
    clconv_plan *plan;
    shape z;
    clconv_status status = clconv_plan_create(
        s->context, desc, CLCONV_OP_BACKWARD, &s->plan_options, &plan);

    if (status == CLCONV_UNSUPPORTED)
        return true;
    if (failed(status))
        return false;
    bool ok = shape_from_desc(desc, &z) && call(s, &z, plan);
    clconv_plan_release(plan);
    return ok;
}

static bool call_variants(setting *s, const char *problem)
{
    clconv_desc desc;
    bool ok = !failed(clconv_desc_parse(problem, &desc));

    for (int i = 0; ok && i < 4; ++i) {
        desc.layout = i & 1 ? CLCONV_NHWC : CLCONV_NCHW;
        desc.math = i & 2 ? CLCONV_FP32 : CLCONV_MIXED;
        ok = plan_and_call(s, &desc);
    }
    return ok;
}

/* ---- The program -------------------------------------------------------- */

static bool parse_options(int argc, char **argv, setting *s)
{
    static const struct option options[] = {{"plan", 1, NULL, 'p'},
                                            {"emulate", 1, NULL, 'e'},
                                            {"lose", 1, NULL, 'l'},
                                            {NULL, 0, NULL, 0}};
    int code;

    clconv_plan_options_init(&s->plan_options);
    while ((code = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (code) {
        case 'p': s->plan_options.plan = optarg; break;
        case 'e': s->emulate = optarg; break;
        case 'l': lost_kernel = optarg; break;
        default: args_say_bad_option(code, argv); return false;
        }
    }
    return true;
}

static bool open_setting(setting *s)
{
    clconv_context_options options;

    clconv_context_options_init(&options);
    options.emulate_unit = s->emulate;
    options.cache_dir = "";
    return host_open("oclgrind", HOST_IN_ORDER, &s->host) == HOST_OK &&
           !failed(clconv_context_create(s->host.context, s->host.device,
                                         &options, &s->context));
}

int main(int argc, char **argv)
{
    setting s = {.calls = 0};

    message_program("uninitialized_calls");
    if (!parse_options(argc, argv, &s))
        return ARGS_EXIT_USAGE;
    if (!open_setting(&s))
        return EXIT_FAILURE;
    bool ok = true;
    for (int i = optind; ok && i < argc; ++i)
        ok = call_variants(&s, argv[i]);
    clconv_context_release(s.context);
    host_close(&s.host);
    if (ok && s.calls == 0)
        message_error("no problem that the plan covers");
    return ok && s.calls > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
