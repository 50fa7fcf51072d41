/*
 * cuda_replay: runs kernels that OpenCL compiled through CUDA's driver, so
 * that ncu and compute-sanitizer see them, which they do not through OpenCL.
 * README.md, beside this file, says how to build and use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <cuda.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launch_file.h"
#include "program_image.h"

static const char usage[] =
    "usage: cuda_replay [option]... FOLDER\n"
    "       cuda_replay --kernels FILE\n"
    "\n"
    "Runs the launches in FOLDER/launches.txt, in order, and prints what each\n"
    "takes.\n"
    "\n"
    "  --list          prints the launches with their numbers; needs no GPU\n"
    "  --first N       begins with launch N\n"
    "  --last N        ends with launch N\n"
    "  --only TEXT     only entry points whose name contains TEXT\n"
    "  --repeat N      all of that N times, default 1\n"
    "  --kernels FILE  prints the kernels of a program: PTX, cubin or an "
    "entry\n"
    "                  of clconv's program cache\n";

typedef struct options {
    const char *path, *only;
    int first, last, repeat;
    bool list, kernels;
} options;

/* What a run holds on the device. */
typedef struct replay {
    launch_file file;
    const char *folder;
    CUmodule *modules;
    size_t *dynamic_shared; /* of each module's launches */
    CUdeviceptr *buffers;
    double *milliseconds; /* of each launch, all repeats together */
} replay;

static bool failed(CUresult result, const char *call)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return false;
    cuGetErrorName(result, &name);
    fprintf(stderr, "cuda_replay: %s: %s\n", call, name ? name : "failed");
    return true;
}

/* ---- Programs ----------------------------------------------------------- */

static bool load_image(const program_image *image, CUmodule *out)
{
    static char log[8192];
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};

    log[0] = '\0';
    if (!failed(cuModuleLoadDataEx(out, image->data, 2, names, values),
                "cuModuleLoadDataEx"))
        return true;
    fprintf(stderr, "%s\n", log);
    return false;
}

static bool load_program(const char *path, CUmodule *module, size_t *dynamic)
{
    program_image image;
    bool ok;

    if (!program_image_read(path, &image))
        return false;
    *dynamic = image.dynamic_shared;
    ok = load_image(&image, module);
    program_image_free(&image);
    return ok;
}

static void join(const replay *r, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", r->folder, name);
}

static bool load_programs(replay *r)
{
    char path[PATH_MAX];

    for (int i = 0; i < r->file.program_count; ++i) {
        join(r, r->file.programs[i], path);
        if (!load_program(path, &r->modules[i], &r->dynamic_shared[i]))
            return false;
    }
    return true;
}

/* ---- Buffers ------------------------------------------------------------ */

/* Halves between 2^-3 and 1 in size; two of them are a small float. */
static void fill_random(unsigned char *bytes, size_t size)
{
    static uint32_t state = 1;

    for (size_t i = 0; i + 1 < size; i += 2) {
        uint32_t exponent;

        state = state * 1664525U + 1013904223U;
        exponent = 12 + (state >> 8) % 3;
        bytes[i] = (unsigned char)(state >> 24);
        bytes[i + 1] = (unsigned char)((state >> 16 & 0x83U) | exponent << 2);
    }
}

static bool fill_from_file(const replay *r, const replay_buffer *b,
                           unsigned char *bytes)
{
    char path[PATH_MAX];
    FILE *stream;
    bool ok;

    join(r, b->fill, path);
    stream = fopen(path, "rb");
    ok = stream && fread(bytes, 1, b->bytes, stream) == b->bytes;
    if (stream)
        fclose(stream);
    if (!ok)
        fprintf(stderr, "%s: cannot be read, or is too short\n", path);
    return ok;
}

static bool fill(const replay *r, const replay_buffer *b, unsigned char *bytes)
{
    if (strcmp(b->fill, "zero") == 0)
        return true;
    if (strcmp(b->fill, "random") != 0)
        return fill_from_file(r, b, bytes);
    fill_random(bytes, b->bytes);
    return true;
}

static bool make_buffer(const replay *r, const replay_buffer *b,
                        CUdeviceptr *out)
{
    unsigned char *bytes = calloc(b->bytes, 1);
    bool ok = bytes && fill(r, b, bytes) &&
              !failed(cuMemAlloc(out, b->bytes), "cuMemAlloc") &&
              !failed(cuMemcpyHtoD(*out, bytes, b->bytes), "cuMemcpyHtoD");

    free(bytes);
    return ok;
}

static bool make_buffers(replay *r)
{
    for (int i = 0; i < r->file.buffer_count; ++i) {
        if (!make_buffer(r, &r->file.buffers[i], &r->buffers[i]))
            return false;
    }
    return true;
}

/* ---- Launches ----------------------------------------------------------- */

static bool is_chosen(const options *o, const replay *r, int launch)
{
    return launch >= o->first && launch <= o->last &&
           (!o->only || strstr(r->file.launches[launch].entry, o->only));
}

static bool get_function(const replay *r, const replay_launch *l,
                         CUfunction *out)
{
    size_t dynamic = r->dynamic_shared[l->program];

    if (failed(cuModuleGetFunction(out, r->modules[l->program], l->entry),
               l->entry))
        return false;
    return !dynamic ||
           !failed(cuFuncSetAttribute(
                       *out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       (int)dynamic),
                   "cuFuncSetAttribute");
}

static bool launch(replay *r, replay_launch *l)
{
    void *params[ARGS_MAX];
    CUfunction function;

    if (!get_function(r, l, &function))
        return false;
    for (int i = 0; i < l->arg_count; ++i) {
        replay_arg *a = &l->args[i];

        params[i] = a->buffer < 0 ? (void *)a->value : &r->buffers[a->buffer];
    }
    return !failed(cuLaunchKernel(function, l->groups, 1, 1, l->local, 1, 1,
                                  (unsigned)r->dynamic_shared[l->program], NULL,
                                  params, NULL),
                   l->entry);
}

static bool launch_timed(replay *r, int index, const CUevent events[2])
{
    float milliseconds;

    if (failed(cuEventRecord(events[0], NULL), "cuEventRecord") ||
        !launch(r, &r->file.launches[index]) ||
        failed(cuEventRecord(events[1], NULL), "cuEventRecord") ||
        failed(cuEventSynchronize(events[1]), r->file.launches[index].entry) ||
        failed(cuEventElapsedTime(&milliseconds, events[0], events[1]),
               "cuEventElapsedTime"))
        return false;
    r->milliseconds[index] += milliseconds;
    return true;
}

static bool run_launches(const options *o, replay *r)
{
    CUevent events[2];

    for (int i = 0; i < 2; ++i) {
        if (failed(cuEventCreate(&events[i], CU_EVENT_DEFAULT),
                   "cuEventCreate"))
            return false;
    }
    for (int n = 0; n < o->repeat; ++n) {
        for (int i = 0; i < r->file.launch_count; ++i) {
            if (is_chosen(o, r, i) && !launch_timed(r, i, events))
                return false;
        }
    }
    return true;
}

/* ---- Printing ----------------------------------------------------------- */

static int attribute(CUfunction function, CUfunction_attribute which)
{
    int value = -1;

    cuFuncGetAttribute(&value, which, function);
    return value;
}

static void print_function(CUfunction function)
{
    printf("%d registers, %d bytes of local and %d of static shared memory",
           attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS),
           attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
           attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
}

static bool print_launches(const options *o, const replay *r)
{
    for (int i = 0; i < r->file.launch_count; ++i) {
        const replay_launch *l = &r->file.launches[i];
        CUfunction function;

        if (!is_chosen(o, r, i))
            continue;
        if (!get_function(r, l, &function))
            return false;
        printf("%3d  %s: %.1f us, %u groups of %u, ", i, l->entry,
               1e3 * r->milliseconds[i] / o->repeat, l->groups, l->local);
        print_function(function);
        printf(", %zu dynamic\n", r->dynamic_shared[l->program]);
    }
    return true;
}

static bool print_kernels_of(CUmodule module)
{
    CUfunction functions[256];
    unsigned count = 0;

    if (failed(cuModuleGetFunctionCount(&count, module),
               "cuModuleGetFunctionCount"))
        return false;
    count = count < 256 ? count : 256;
    if (failed(cuModuleEnumerateFunctions(functions, count, module),
               "cuModuleEnumerateFunctions"))
        return false;
    for (unsigned i = 0; i < count; ++i) {
        const char *name = "?";

        cuFuncGetName(&name, functions[i]);
        printf("%s: ", name);
        print_function(functions[i]);
        putchar('\n');
    }
    return true;
}

/* ---- The whole ---------------------------------------------------------- */

static bool open_device(void)
{
    CUdevice device;
    CUcontext context;

    return !failed(cuInit(0), "cuInit") &&
           !failed(cuDeviceGet(&device, 0), "cuDeviceGet") &&
           !failed(cuDevicePrimaryCtxRetain(&context, device),
                   "cuDevicePrimaryCtxRetain") &&
           !failed(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static bool run_kernels(const options *o)
{
    CUmodule module;
    size_t dynamic;

    if (!open_device() || !load_program(o->path, &module, &dynamic))
        return false;
    if (dynamic)
        printf("dynamic shared memory instead of static: %zu bytes\n", dynamic);
    return print_kernels_of(module);
}

static bool allocate(replay *r)
{
    const launch_file *f = &r->file;

    r->modules = calloc((size_t)f->program_count, sizeof(*r->modules));
    r->dynamic_shared =
        calloc((size_t)f->program_count, sizeof(*r->dynamic_shared));
    r->buffers = calloc((size_t)f->buffer_count + 1, sizeof(*r->buffers));
    r->milliseconds = calloc((size_t)f->launch_count, sizeof(*r->milliseconds));
    return r->modules && r->dynamic_shared && r->buffers && r->milliseconds;
}

/* What is on the device goes with the process. */
static void free_replay(replay *r)
{
    free(r->modules);
    free(r->dynamic_shared);
    free(r->buffers);
    free(r->milliseconds);
    launch_file_free(&r->file);
}

static bool run_replay(const options *o)
{
    replay r = {.folder = o->path};
    char path[PATH_MAX];
    bool ok;

    join(&r, "launches.txt", path);
    if (!launch_file_read(path, &r.file))
        return false;
    if (o->list) {
        launch_file_print(stdout, &r.file);
        ok = true;
    } else {
        ok = allocate(&r) && open_device() && load_programs(&r) &&
             make_buffers(&r) && run_launches(o, &r) && print_launches(o, &r);
    }
    free_replay(&r);
    return ok;
}

/* ---- Options ------------------------------------------------------------ */

static bool read_number(const char *text, int least, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);

    *out = (int)value;
    return *text && !*end && value >= least && value <= INT_MAX;
}

static bool read_options(int argc, char **argv, options *out)
{
    static const struct option longs[] = {
        {"list", no_argument, NULL, 'l'},
        {"kernels", no_argument, NULL, 'k'},
        {"first", required_argument, NULL, 'f'},
        {"last", required_argument, NULL, 'e'},
        {"only", required_argument, NULL, 'o'},
        {"repeat", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0}};
    bool ok = true;

    *out = (options){.last = INT_MAX, .repeat = 1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'l': out->list = true; break;
        case 'k': out->kernels = true; break;
        case 'f': ok = ok && read_number(optarg, 0, &out->first); break;
        case 'e': ok = ok && read_number(optarg, 0, &out->last); break;
        case 'o': out->only = optarg; break;
        case 'r': ok = ok && read_number(optarg, 1, &out->repeat); break;
        default: ok = false;
        }
    }
    out->path = argv[optind];
    return ok && argc - optind == 1;
}

int main(int argc, char **argv)
{
    options o;
    bool ok;

    if (!read_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    ok = o.kernels ? run_kernels(&o) : run_replay(&o);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
