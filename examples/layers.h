/*
 * The layers of the example network that are not convolutions, forward and
 * backward, in plain C: batch norm with ReLU, max pooling, average pooling
 * over the whole image, the linear layer and the cross-entropy loss.
 *
 * All tensors are dense float arrays in N C H W order. "da" is the gradient
 * of the loss by a. Two backward passes work in place, so that a network at
 * 112 x 112 pixels fits in memory; each says which array it turns into which.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_LAYERS_H
#define CLCONV_EXAMPLES_LAYERS_H

#include <stddef.h>

typedef struct tensor_shape {
    size_t n, c, h, w;
} tensor_shape;

/* n * c * h * w */
size_t tensor_count(tensor_shape shape);

/* What batch norm learns, [c] each. */
typedef struct batch_norm {
    const float *gamma, *beta;
} batch_norm;

/* What its forward pass finds in a batch and its backward pass needs. */
typedef struct batch_statistics {
    double mean, inv_std; /* inv_std = 1 / sqrt(variance + 1e-5) */
} batch_statistics;

/* a = max(0, gamma * (y - mean) * inv_std + beta), statistics [c] over
 * n, h and w. */
void batch_norm_relu_forward(tensor_shape shape, batch_norm norm, const float *y,
                             batch_statistics *statistics, float *a);

/* In place: y_dy holds y and becomes dy. dgamma and dbeta are [c]. */
void batch_norm_relu_backward(tensor_shape shape, batch_norm norm,
                              const batch_statistics *statistics,
                              const float *da, float *y_dy, float *dgamma,
                              float *dbeta);

/* 2 x 2, stride 2: [n][c][h][w] -> [n][c][h/2][w/2]; an odd last row or
 * column is dropped. */
void max_pool_forward(tensor_shape shape, const float *a, float *pooled);

/* In place: a_da holds a and becomes da. Of equal values the first wins. */
void max_pool_backward(tensor_shape shape, const float *dpooled, float *a_da);

/* features [n][c] = the mean over h and w. */
void average_pool_forward(tensor_shape shape, const float *a, float *features);
void average_pool_backward(tensor_shape shape, const float *dfeatures,
                           float *da);

/* A linear layer: weights [outputs][inputs], bias [outputs]. */
typedef struct linear {
    size_t inputs, outputs;
    const float *weights, *bias;
} linear;

/* y [n][outputs] from x [n][inputs] */
void linear_forward(linear layer, size_t n, const float *x, float *y);
void linear_backward(linear layer, size_t n, const float *x, const float *dy,
                     float *dweights, float *dbias, float *dx);

/* Softmax and cross-entropy, averaged over the batch: returns the loss and
 * writes dlogits [n][classes]. labels [n] are below classes. */
double cross_entropy(size_t n, size_t classes, const float *logits,
                     const unsigned char *labels, float *dlogits);

#endif
