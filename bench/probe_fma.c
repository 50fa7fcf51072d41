/*
 * Independent chains of a = a * x + y, as many as hide the latency of one and
 * still fit the registers. How wide a CPU's vectors are is found out by
 * trying: what is too wide is split, and spills.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "message.h"
#include "probe_kernel.h"
#include "probe_parts.h"

typedef struct chains {
    const char *type;
    int width;  /* lanes of type */
    int count;  /* chains */
    int repeat; /* steps of each chain written out in a round */
} chains;

typedef struct grid {
    size_t groups, local;
} grid;

enum { ROUNDS_ARG = 3 };

/* x < 1: the chains converge to 1. */
static const float x_value = 0.75F, y_value = 0.25F;

/* NULL: no memory. The caller frees it. */
static char *write_text(const chains *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    fprintf(f,
            "__kernel void peak(__global %s *out, float x, float y,\n"
            "                   int rounds)\n"
            "{\n"
            "    %s vx = x, vy = y;\n",
            c->type, c->type);
    for (int i = 0; i < c->count; ++i)
        fprintf(f, "    %s a%d = (float)get_local_id(0) + %d;\n", c->type, i, i);
    fprintf(f, "    for (int i = 0; i < rounds; ++i) {\n");
    for (int i = 0; i < c->count * c->repeat; ++i)
        fprintf(f, "        a%d = a%d * vx + vy;\n", i % c->count, i % c->count);
    fprintf(f, "    }\n"
               "    out[get_global_id(0)] = a0");
    for (int i = 1; i < c->count; ++i)
        fprintf(f, " + a%d", i);
    fprintf(f, ";\n}\n");
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

static bool set_args(const probe_kernel *k, cl_mem out)
{
    const cl_int rounds = 1;
    cl_int error = clSetKernelArg(k->kernel, 0, sizeof(out), &out);

    if (!error)
        error = clSetKernelArg(k->kernel, 1, sizeof(x_value), &x_value);
    if (!error)
        error = clSetKernelArg(k->kernel, 2, sizeof(y_value), &y_value);
    if (!error)
        error = clSetKernelArg(k->kernel, ROUNDS_ARG, sizeof(rounds), &rounds);
    if (error)
        message_error("clSetKernelArg failed with OpenCL error %d", (int)error);
    return error == CL_SUCCESS;
}

static bool time_chains(const host *h, const chains *c, const grid *g,
                        const probe_kernel *k, double *flops)
{
    size_t global = g->groups * g->local;
    size_t bytes = global * (size_t)c->width * sizeof(float);
    cl_mem out = host_buffer(h, bytes, NULL);
    cl_int rounds = 0;
    double seconds;
    bool ok = out && set_args(k, out) &&
              probe_kernel_calibrate(k, ROUNDS_ARG, global, g->local, &rounds) &&
              probe_kernel_seconds(k, global, g->local, &seconds);

    if (ok)
        *flops = 2.0 * (double)global * rounds * c->count * c->repeat *
                 c->width / seconds;
    if (out)
        clReleaseMemObject(out);
    return ok;
}

/* Raises *best to what these chains reach. */
static bool try_chains(const host *h, const chains *c, const grid *g,
                       double *best)
{
    char *text = write_text(c);
    probe_kernel k;
    double flops = 0;
    bool ok;

    if (!text) {
        message_error("out of memory");
        return false;
    }
    ok = probe_kernel_open(h, text, "peak", &k);
    free(text);
    if (!ok) {
        message_error("the device's compiler refuses the FMA probe");
        return false;
    }
    ok = time_chains(h, c, g, &k, &flops);
    probe_kernel_close(&k);
    if (flops > *best)
        *best = flops;
    return ok;
}

bool probe_fma(const host *h, double *flops)
{
    static const chains cpu[] = {
        {"float16", 16, 24, 1}, /* AVX-512 */
        {"float8", 8, 12, 1},   /* AVX2 */
        {"float4", 4, 24, 1},   /* NEON */
    };
    static const chains gpu = {"float", 1, 8, 8};
    /* More groups than units: a unit that is disturbed does less of them. */
    const grid cpu_grid = {8 * probe_compute_units(h), 1};
    const grid gpu_grid = {16 * probe_compute_units(h), 256};
    double best = 0;

    if (!h->is_cpu && !try_chains(h, &gpu, &gpu_grid, &best))
        return false;
    for (size_t i = 0; h->is_cpu && i < sizeof(cpu) / sizeof(cpu[0]); ++i) {
        if (!try_chains(h, &cpu[i], &cpu_grid, &best))
            return false;
    }
    *flops = best;
    return true;
}
