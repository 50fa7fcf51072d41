/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rig.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "naive.h"

static const char *const names[RIG_TENSORS] = {"dy", "x",  "w",
                                               "dw", "db", "dx"};

static void count_elements(rig *r, int64_t batch, size_t out[RIG_TENSORS])
{
    out[RIG_DY] = (size_t)naive_dy_elements(&r->desc, batch);
    out[RIG_X] = out[RIG_DX] = (size_t)naive_x_elements(&r->desc, batch);
    out[RIG_W] = out[RIG_DW] = (size_t)naive_w_elements(&r->desc);
    out[RIG_DB] = (size_t)r->desc.k;
}

/* Integers in [-4, 4] in no obvious pattern; sums stay far below 2^24. */
static float *make_integers(size_t count, unsigned seed)
{
    float *data = malloc((count + 1) * sizeof *data);
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)((int)(seed >> 16) % 9 - 4);
    }
    return data;
}

static void make_tensors(rig *r)
{
    count_elements(r, r->desc.n, r->elements);
    for (unsigned t = 0; t < RIG_TENSORS; ++t) {
        size_t bytes = r->elements[t] * sizeof(float);
        const float *data = NULL;
        if (t < RIG_DW)
            data = r->input[t] = make_integers(r->elements[t], t + 1);
        r->mem[t] = host_buffer(&r->host, bytes, data);
        cr_assert_not_null(r->mem[t], "%s", names[t]);
    }
    clconv_backward_args_init(&r->args);
    r->args.dy.mem = r->mem[RIG_DY];
    r->args.x.mem = r->mem[RIG_X];
    r->args.w.mem = r->mem[RIG_W];
    r->args.dw.mem = r->mem[RIG_DW];
    r->args.db.mem = r->mem[RIG_DB];
    r->args.dx.mem = r->mem[RIG_DX];
}

void rig_open(rig *r, host_order order, const char *problem,
              const clconv_context_options *options)
{
    memset(r, 0, sizeof *r);
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), order, &r->host), HOST_OK);
    cr_assert_eq(clconv_context_create(r->host.context, r->host.device, options,
                                       &r->context),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(clconv_desc_parse(problem, &r->desc), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_eq(clconv_plan_create(r->context, &r->desc, CLCONV_OP_BACKWARD,
                                    NULL, &r->plan),
                 CLCONV_OK, "%s: %s", problem, clconv_last_error());
    make_tensors(r);
}

void rig_close(rig *r)
{
    for (int t = 0; t < RIG_TENSORS; ++t) {
        clReleaseMemObject(r->mem[t]);
        if (t < RIG_DW)
            free(r->input[t]);
    }
    clconv_plan_release(r->plan);
    clconv_context_release(r->context);
    host_close(&r->host);
}

void rig_run(rig *r)
{
    cr_assert_eq(clconv_enqueue_backward(r->plan, r->host.queue, &r->args, 0,
                                         NULL, NULL),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert(host_finish(&r->host));
}

void rig_fill_outputs(rig *r, float value)
{
    for (int t = RIG_DW; t < RIG_TENSORS; ++t) {
        float *data = malloc((r->elements[t] + 1) * sizeof *data);
        cr_assert_not_null(data);
        for (size_t i = 0; i < r->elements[t]; ++i)
            data[i] = value;
        cr_assert(host_write(&r->host, r->mem[t], 0,
                             r->elements[t] * sizeof *data, data));
        free(data);
    }
}

/* ---- Expectations ------------------------------------------------------ */

/* NULL in want: NaN everywhere. So many elements are wanted, the rest NaN. */
static void expect_tensor(const rig *r, int t, const double *want,
                          size_t wanted, double times)
{
    size_t count = r->elements[t];
    float *got = malloc((count + 1) * sizeof *got);
    cr_assert_not_null(got);
    cr_assert(host_read(&r->host, r->mem[t], 0, count * sizeof *got, got));
    for (size_t i = 0; i < count; ++i)
        if (want && i < wanted)
            cr_assert((double)got[i] == times * want[i], "%s[%zu] is %g, not %g",
                      names[t], i, (double)got[i], times * want[i]);
        else
            cr_assert(isnan(got[i]), "%s[%zu] was written: %g", names[t], i,
                      (double)got[i]);
    free(got);
}

static double *zeros(size_t count)
{
    double *data = calloc(count + 1, sizeof *data);
    cr_assert_not_null(data);
    return data;
}

void rig_expect(const rig *r, unsigned ops, double times)
{
    static const unsigned op[RIG_TENSORS] = {
        [RIG_DW] = CLCONV_OP_DW,
        [RIG_DB] = CLCONV_OP_DB,
        [RIG_DX] = CLCONV_OP_DX,
    };
    int64_t batch = r->args.batch < 0 ? r->desc.n : r->args.batch;
    size_t wanted[RIG_TENSORS];
    double *want[RIG_TENSORS] = {NULL};
    rig copy = *r;
    count_elements(&copy, batch, wanted);
    for (int t = RIG_DW; t < RIG_TENSORS; ++t)
        want[t] = zeros(wanted[t]);
    naive_backward(
        &r->desc, batch,
        &(naive_data){
            .x = r->input[RIG_X], .w = r->input[RIG_W], .dy = r->input[RIG_DY]},
        &(naive_result){
            .dw = want[RIG_DW], .db = want[RIG_DB], .dx = want[RIG_DX]});
    for (int t = RIG_DW; t < RIG_TENSORS; ++t) {
        expect_tensor(r, t, ops & op[t] ? want[t] : NULL, wanted[t], times);
        free(want[t]);
    }
}

void rig_expect_untouched(const rig *r)
{
    for (int t = RIG_DW; t < RIG_TENSORS; ++t)
        expect_tensor(r, t, NULL, 0, 0);
}

const char *rig_explain(const clconv_plan *plan, const char *begin)
{
    static char text[8192];
    size_t needed = 0;
    cr_assert_eq(clconv_plan_explain(plan, text, sizeof text, &needed),
                 CLCONV_OK);
    cr_assert_leq(needed, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, begin, strlen(begin)) == 0)
            return line;
    return "";
}

int rig_count_stored(const char *problem, const clconv_context_options *options)
{
    rig r;
    int stored = 0, built = -1;
    rig_open(&r, HOST_IN_ORDER, problem, options);
    sscanf(rig_explain(r.plan, "programs: "),
           "programs: %d from disk, %d built", &stored, &built);
    rig_close(&r);
    return built == 0 ? stored : -1;
}
