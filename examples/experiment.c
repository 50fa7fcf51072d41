/*
 * The three modes run first and their gradients are kept, so that the slow
 * fp64 reference is computed once for all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiment.h"

#include <math.h>
#include <stdlib.h>

#include "message.h"

static const struct {
    const char *name;
    clconv_math math;
    int scale_log2;
} modes[MODES] = {
    [MODE_FP32] = {"fp32", CLCONV_FP32, 0},
    [MODE_SCALE_1] = {"fp16, 1", CLCONV_MIXED, 0},
    [MODE_SCALED] = {"fp16, 2^10", CLCONV_MIXED, CLCONV_SCALE_LOG2_DEFAULT},
};

const char *experiment_mode_name(experiment_mode mode)
{
    return modes[mode].name;
}

static double largest(const float *values, size_t count)
{
    float max = 0;

    for (size_t i = 0; i < count; ++i) {
        float magnitude = values[i] < 0 ? -values[i] : values[i];

        if (magnitude > max)
            max = magnitude;
    }
    return (double)max;
}

static bool open_gradients(conv_shape shape, conv_gradients *out)
{
    *out = (conv_gradients){
        .dw = malloc(conv_w_count(shape) * sizeof(float)),
        .db = malloc(shape.k * sizeof(float)),
        .dx = malloc(conv_x_count(shape) * sizeof(float)),
    };
    return out->dw && out->db && out->dx;
}

static void close_gradients(conv_gradients *gradients)
{
    free(gradients->dw);
    free(gradients->db);
    free(gradients->dx);
}

static double share_lost(experiment_mode mode, const clconv_counts *dy)
{
    if (modes[mode].math == CLCONV_FP32 || dy->nonzero == 0)
        return (double)NAN;
    return (double)dy->zeroed / (double)dy->nonzero;
}

static bool run_mode(const conv_engine *engine, conv_shape shape,
                     experiment_mode mode, conv_inputs in, size_t calls,
                     conv_gradients gradients, mode_result *out)
{
    clconv_desc desc =
        conv_backward_desc(shape, modes[mode].math, modes[mode].scale_log2);
    conv_measurement measured;
    conv_call call;
    bool ok;

    if (!conv_call_open(engine, &desc, CLCONV_OP_BACKWARD, &call))
        return false;
    ok = conv_measure(&call, in, calls, gradients, &measured);
    conv_call_close(&call);
    if (!ok)
        return false;
    out->lost = share_lost(mode, &measured.report.dy);
    out->microseconds = measured.microseconds;
    return true;
}

bool experiment_run(const conv_engine *engine, conv_shape shape, conv_inputs in,
                    size_t calls, layer_result *out)
{
    layer_result result = {.shape = shape,
                           .max_dy = largest(in.dy, conv_y_count(shape))};
    conv_gradients gradients[MODES] = {{0}};
    comparison found[MODES];
    bool ok = true;

    for (int m = 0; ok && m < MODES; ++m) {
        ok = open_gradients(shape, &gradients[m]);
        if (!ok)
            message_error("out of memory");
        ok = ok && run_mode(engine, shape, (experiment_mode)m, in, calls,
                            gradients[m], &result.mode[m]);
    }
    ok = ok && compare_gradients(shape, in, gradients, MODES, found);
    for (int m = 0; m < MODES; ++m) {
        if (ok)
            result.mode[m].agreement = found[m];
        close_gradients(&gradients[m]);
    }
    if (ok)
        *out = result;
    return ok;
}
