/*
 * The example's network: three blocks of two 3 x 3 convolutions, each with
 * batch norm and ReLU, of 32, 64 and 128 channels; a block ends with 2 x 2
 * max pooling. Then the average over the image, a linear layer of 10 and
 * cross-entropy. It takes images of any size from NETWORK_SIZE_MIN on.
 *
 *     network net;
 *     network_open(channels, seed, &net);
 *     network_pass pass;            // one batch at one image size
 *     network_pass_open(&net, &engine, n, 28, NETWORK_TRAIN, &pass);
 *     fill pass.x[0] and pass.labels;
 *     network_run(&net, &pass, &loss);
 *     network_step(&net, 0.05f, 0.9f);
 *     network_pass_close(&pass);
 *     network_close(&net);
 *
 * What returns bool has said on stderr why it is false.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_NETWORK_H
#define CLCONV_EXAMPLES_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conv.h"
#include "layers.h"

#define NETWORK_BLOCKS 3
#define NETWORK_CONVS (2 * NETWORK_BLOCKS) /* block b has 2b and 2b + 1 */
#define NETWORK_FEATURES 128
#define NETWORK_CLASSES 10
#define NETWORK_SIZE_MIN 8 /* three poolings leave one pixel */

/* "conv1.1" to "conv3.2" */
const char *network_conv_name(size_t conv);

/* What training changes, or its gradient, or its velocity: one array, and
 * where each part lies in it. The convolutions have no bias: batch norm,
 * which follows each, would take it away again. */
typedef struct network_parameters {
    size_t count;
    float *all;
    float *w[NETWORK_CONVS];                           /* [k][c][3][3] */
    float *gamma[NETWORK_CONVS], *beta[NETWORK_CONVS]; /* [k] */
    float *linear_weights; /* [NETWORK_CLASSES][NETWORK_FEATURES] */
    float *linear_bias;    /* [NETWORK_CLASSES] */
} network_parameters;

typedef struct network {
    size_t channels; /* of the images */
    network_parameters value, gradient, velocity;
} network;

/* He initialisation: the same numbers for the same seed. */
bool network_open(size_t channels, uint64_t seed, network *out);
void network_close(network *net);

typedef enum network_purpose {
    /* Mixed precision with dY scaled by 2^10; all parameters' gradients. */
    NETWORK_TRAIN,
    /* fp32, so that each layer's dY is as exact as floats allow; no dw. */
    NETWORK_CAPTURE
} network_purpose;

/* A batch on its way through the network and back. */
typedef struct network_pass {
    network_purpose purpose;
    conv_shape shape[NETWORK_CONVS];
    unsigned char *labels; /* [n] */

    float *x[NETWORK_CONVS];          /* input of each convolution */
    float *y_dy[NETWORK_CONVS];       /* its output; after network_run() dY */
    float *block_end[NETWORK_BLOCKS]; /* before pooling, then its gradient */
    float *gradient;                  /* dX on its way from layer to layer */
    float *features, *dfeatures;      /* [n][NETWORK_FEATURES] */
    float *logits, *dlogits;          /* [n][NETWORK_CLASSES] */
    batch_statistics *statistics[NETWORK_CONVS]; /* [k] */

    conv_call forward[NETWORK_CONVS], backward[NETWORK_CONVS];
} network_pass;

/* All compilation happens here. */
bool network_pass_open(const network *net, const conv_engine *engine, size_t n,
                       size_t size, network_purpose purpose, network_pass *out);
void network_pass_close(network_pass *pass);

/* Forward and backward once, with the batch in pass->x[0] and pass->labels.
 * Afterwards x and y_dy hold each convolution's X and dY. */
bool network_run(network *net, network_pass *pass, double *loss);

/* Frees what only network_run() needs, so that X and dY remain. */
void network_pass_keep_captured(network_pass *pass);

/* One step of gradient descent with momentum. */
void network_step(network *net, float rate, float momentum);

#endif
