/*
 * record.so: writes down the launches of an OpenCL program for cuda_replay.
 * It is loaded in front of the OpenCL library (LD_PRELOAD) and passes each
 * call on; README.md, beside this file, says how to use it.
 *
 * RECORD_DIR gets launches.txt (launch_file.h has its format), each program's
 * binary as the driver gives it, and the contents of small buffers from before
 * their first launch. A launch that differs from an earlier one by its buffers
 * alone is not written again: a loop of calls is recorded once.
 *
 * For host programs that call OpenCL from one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_file.h"

/* The contents of larger buffers are made up. */
#define CONTENTS_MAX ((size_t)1 << 20)

/* Everything is kept in lists until the process ends. */
typedef struct buffer {
    struct buffer *next;
    cl_mem mem;
    size_t bytes;
    int number; /* in the file; -1: not there yet */
} buffer;

typedef struct program {
    struct program *next;
    unsigned char *data;
    size_t bytes;
    int number;
} program;

typedef struct kernel {
    struct kernel *next;
    cl_kernel handle;
    program *program;
    char entry[NAME_SIZE];
    replay_arg args[ARGS_MAX]; /* buffer -1: a value, which may be a cl_mem */
    cl_uint arg_count;
} kernel;

/* A launch without the numbers of its buffers. */
typedef struct text {
    struct text *next;
    char *data;
    const program *program;
} text;

static buffer *buffers;
static program *programs;
static kernel *kernels;
static text *seen;
static int buffer_count, program_count;

/* ---- Output ------------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    const char *folder = getenv("RECORD_DIR");

    snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
    return path;
}

static FILE *open_output(const char *name, const char *mode)
{
    FILE *to = fopen(path_of(name), mode);

    if (!to) {
        fprintf(stderr, "record: %s cannot be written\n", path_of(name));
        exit(EXIT_FAILURE);
    }
    return to;
}

static FILE *launches(void)
{
    static FILE *to;

    if (!to)
        to = open_output("launches.txt", "w");
    return to;
}

static void write_bytes(const char *name, const void *data, size_t bytes)
{
    FILE *to = open_output(name, "wb");

    fwrite(data, 1, bytes, to);
    fclose(to);
}

static void *allocate(size_t size)
{
    void *zeros = calloc(1, size ? size : 1);

    if (!zeros) {
        fputs("record: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return zeros;
}

/* The function that the program meant. ISO C has no cast from an object's
 * pointer to a function's. */
static void get_real(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found) {
        fprintf(stderr, "record: no %s behind this library\n", name);
        exit(EXIT_FAILURE);
    }
    memcpy(function, &found, sizeof(found));
}

/* ---- Buffers ------------------------------------------------------------ */

/* A handle may come again once its buffer is released: the newest counts. */
static buffer *find_buffer(const void *value, size_t size)
{
    cl_mem mem;

    if (size != sizeof(mem)) /* a null pointer is no buffer's handle */
        return NULL;
    memcpy(&mem, value, sizeof(mem));
    for (buffer *b = buffers; b; b = b->next) {
        if (b->mem == mem)
            return b;
    }
    return NULL;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                      void *host, cl_int *error)
{
    cl_mem (*real)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    buffer *b = allocate(sizeof(*b));

    get_real("clCreateBuffer", &real);
    *b = (buffer){.next = buffers, .bytes = size, .number = -1};
    b->mem = real(context, flags, size, host, error);
    if (b->mem)
        buffers = b;
    return b->mem;
}

static bool write_contents(cl_command_queue queue, const buffer *b,
                           const char *name)
{
    void *data = allocate(b->bytes);
    bool ok = clEnqueueReadBuffer(queue, b->mem, CL_TRUE, 0, b->bytes, data, 0,
                                  NULL, NULL) == CL_SUCCESS;

    if (ok)
        write_bytes(name, data, b->bytes);
    free(data);
    return ok;
}

static void write_buffer(cl_command_queue queue, buffer *b)
{
    char name[NAME_SIZE];

    b->number = buffer_count++;
    snprintf(name, sizeof(name), "buffer-%d.bin", b->number);
    if (b->bytes > CONTENTS_MAX || !write_contents(queue, b, name))
        strcpy(name, "random");
    fprintf(launches(), "buffer %d %zu %s\n", b->number, b->bytes, name);
}

/* ---- Programs and kernels ----------------------------------------------- */

/* The binary for the first device. */
static program read_program(cl_program handle)
{
    program p = {.number = -1};
    cl_uint devices = 1;
    size_t *sizes;
    unsigned char **data;

    clGetProgramInfo(handle, CL_PROGRAM_NUM_DEVICES, sizeof(devices), &devices,
                     NULL);
    sizes = allocate(devices * sizeof(*sizes));
    data = allocate(devices * sizeof(*data));
    clGetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES, devices * sizeof(*sizes),
                     sizes, NULL);
    p.bytes = sizes[0];
    p.data = data[0] = allocate(p.bytes);
    clGetProgramInfo(handle, CL_PROGRAM_BINARIES, devices * sizeof(*data), data,
                     NULL);
    free(sizes);
    free(data);
    return p;
}

/* By contents, since each context of a process has handles of its own. */
static program *keep_program(cl_program handle)
{
    program read = read_program(handle), *p;

    for (p = programs; p; p = p->next) {
        if (p->bytes == read.bytes && memcmp(p->data, read.data, p->bytes) == 0) {
            free(read.data);
            return p;
        }
    }
    p = allocate(sizeof(*p));
    *p = read;
    p->next = programs;
    programs = p;
    return p;
}

static void write_program(program *p)
{
    char name[NAME_SIZE];

    p->number = program_count++;
    snprintf(name, sizeof(name), "program-%d.bin", p->number);
    write_bytes(name, p->data, p->bytes);
    fprintf(launches(), "program %d %s\n", p->number, name);
}

static kernel *find_kernel(cl_kernel handle)
{
    kernel *k = kernels;

    while (k && k->handle != handle)
        k = k->next;
    return k;
}

cl_kernel clCreateKernel(cl_program handle, const char *name, cl_int *error)
{
    cl_kernel (*real)(cl_program, const char *, cl_int *);
    kernel *k = allocate(sizeof(*k));

    get_real("clCreateKernel", &real);
    k->handle = real(handle, name, error);
    k->program = keep_program(handle);
    snprintf(k->entry, sizeof(k->entry), "%s", name);
    k->next = kernels;
    kernels = k;
    return k->handle;
}

cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t size,
                      const void *value)
{
    cl_int (*real)(cl_kernel, cl_uint, size_t, const void *);
    kernel *k = find_kernel(handle);

    if (k && index < ARGS_MAX && size <= VALUE_MAX) {
        k->args[index] = (replay_arg){.buffer = -1, .size = size};
        if (value)
            memcpy(k->args[index].value, value, size);
        if (k->arg_count <= index)
            k->arg_count = index + 1;
    }
    get_real("clSetKernelArg", &real);
    return real(handle, index, size, value);
}

/* ---- Launches ----------------------------------------------------------- */

static void print_value(FILE *to, const replay_arg *a)
{
    fputs(" x", to);
    for (size_t i = 0; i < a->size; ++i)
        fprintf(to, "%02x", a->value[i]);
}

/* with_buffers: the numbers of buffers, all of which are written. */
static char *launch_text(const kernel *k, size_t groups, size_t local,
                         bool with_buffers)
{
    char *data = NULL;
    size_t size;
    FILE *to = open_memstream(&data, &size);

    if (!to)
        return strcpy(allocate(1), "");
    fprintf(to, "%s %zu %zu", k->entry, groups, local);
    for (cl_uint i = 0; i < k->arg_count; ++i) {
        const buffer *b = find_buffer(k->args[i].value, k->args[i].size);

        if (!b)
            print_value(to, &k->args[i]);
        else if (with_buffers)
            fprintf(to, " b%d", b->number);
        else
            fputs(" b", to);
    }
    fclose(to);
    return data;
}

/* Takes the text. */
static bool is_new(const kernel *k, char *launch)
{
    text *t;

    for (t = seen; t; t = t->next) {
        if (strcmp(t->data, launch) == 0 && t->program == k->program) {
            free(launch);
            return false;
        }
    }
    t = allocate(sizeof(*t));
    *t = (text){seen, launch, k->program};
    seen = t;
    return true;
}

static void record(cl_command_queue queue, const kernel *k, size_t groups,
                   size_t local)
{
    char *line;

    if (!is_new(k, launch_text(k, groups, local, false)))
        return;
    if (k->program->number < 0)
        write_program(k->program);
    for (cl_uint i = 0; i < k->arg_count; ++i) {
        buffer *b = find_buffer(k->args[i].value, k->args[i].size);

        if (b && b->number < 0)
            write_buffer(queue, b);
    }
    line = launch_text(k, groups, local, true);
    fprintf(launches(), "launch %d %s\n", k->program->number, line);
    fflush(launches());
    free(line);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle,
                              cl_uint dims, const size_t *offset,
                              const size_t *global, const size_t *local,
                              cl_uint wait_count, const cl_event *wait_list,
                              cl_event *event)
{
    cl_int (*real)(cl_command_queue, cl_kernel, cl_uint, const size_t *,
                   const size_t *, const size_t *, cl_uint, const cl_event *,
                   cl_event *);
    const kernel *k = find_kernel(handle);

    if (k && dims == 1 && !offset && local)
        record(queue, k, global[0] / local[0], local[0]);
    else
        fprintf(stderr,
                "record: left out: %s, which is not one-dimensional "
                "with a local size\n",
                k ? k->entry : "an unknown kernel");
    get_real("clEnqueueNDRangeKernel", &real);
    return real(queue, handle, dims, offset, global, local, wait_count,
                wait_list, event);
}
