/*
 * The experiment of the example: one layer's real X, W and dY go through the
 * library in three ways, and each result is compared with fp64.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_EXPERIMENT_H
#define CLCONV_EXAMPLES_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "compare.h"
#include "conv.h"
#include "network.h"

typedef enum experiment_mode {
    MODE_FP32,    /* fp32 everywhere */
    MODE_SCALE_1, /* fp16 operands, dY rounded as it is */
    MODE_SCALED,  /* fp16 operands, dY times 2^10 */
    MODES
} experiment_mode;

/* "fp32", "fp16, 1", "fp16, 2^10" */
const char *experiment_mode_name(experiment_mode mode);

typedef struct mode_result {
    double lost; /* share of dY's nonzero elements that became 0; NaN: none is
                    rounded, or all are zero */
    double microseconds; /* of a whole call, dw + db + dx */
    comparison agreement;
} mode_result;

typedef struct layer_result {
    conv_shape shape;
    double max_dy; /* largest |dY| */
    mode_result mode[MODES];
} layer_result;

/* All layers at one image size. */
typedef struct size_result {
    size_t size, images;
    double loss;
    layer_result layer[NETWORK_CONVS];
} size_result;

/* Each mode runs once for its results and up to calls times for the clock.
 * false: said on stderr. */
bool experiment_run(const conv_engine *engine, conv_shape shape, conv_inputs in,
                    size_t calls, layer_result *out);

#endif
