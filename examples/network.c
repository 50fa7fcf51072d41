/*
 * Memory is what limits the image size: at 112 x 112 pixels and 64 images one
 * activation of the first block has 25.7 million elements. A layer therefore
 * keeps two arrays only, its input x and its output y; ReLU's mask is
 * computed again from y, and the backward pass writes dY over y.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "network.h"

#include <math.h>
#include <stdlib.h>

#include "message.h"
#include "random.h"

static const size_t block_channels[NETWORK_BLOCKS] = {32, 64, NETWORK_FEATURES};

const char *network_conv_name(size_t conv)
{
    static const char *const names[NETWORK_CONVS] = {
        "conv1.1", "conv1.2", "conv2.1", "conv2.2", "conv3.1", "conv3.2"};

    return names[conv];
}

/* The shape of a convolution for n images of size x size pixels. */
static conv_shape shape_of(size_t channels, size_t conv, size_t n, size_t size)
{
    size_t block = conv / 2;
    size_t before = block > 0 ? block_channels[block - 1] : channels;

    return (conv_shape){
        .n = n,
        .c = conv % 2 ? block_channels[block] : before,
        .k = block_channels[block],
        .size = size >> block,
    };
}

static tensor_shape y_shape(conv_shape shape)
{
    return (tensor_shape){shape.n, shape.k, shape.size, shape.size};
}

static tensor_shape pooled_shape(conv_shape shape)
{
    return (tensor_shape){shape.n, shape.k, shape.size / 2, shape.size / 2};
}

static float *floats(size_t count)
{
    return calloc(count ? count : 1, sizeof(float));
}

/* ---- Parameters ----------------------------------------------------- */

/* Hands out the next count elements; with all = NULL it only counts. */
static float *part(network_parameters *p, size_t count)
{
    float *at = p->all ? p->all + p->count : NULL;

    p->count += count;
    return at;
}

static void lay_out(network_parameters *p, size_t channels)
{
    p->count = 0;
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        conv_shape shape = shape_of(channels, i, 1, 1);

        p->w[i] = part(p, conv_w_count(shape));
        p->gamma[i] = part(p, shape.k);
        p->beta[i] = part(p, shape.k);
    }
    p->linear_weights = part(p, NETWORK_CLASSES * NETWORK_FEATURES);
    p->linear_bias = part(p, NETWORK_CLASSES);
}

static bool open_parameters(size_t channels, network_parameters *out)
{
    network_parameters p = {0};

    lay_out(&p, channels);
    p.all = floats(p.count);
    if (!p.all)
        return false;
    lay_out(&p, channels);
    *out = p;
    return true;
}

/* Normal with variance 2 / inputs: He et al. 2015, for layers with ReLU. */
static void fill_he(random_source *random, size_t inputs, size_t count, float *w)
{
    float deviation = sqrtf(2.0f / (float)inputs);

    random_fill_normal(random, count, w);
    for (size_t i = 0; i < count; ++i)
        w[i] *= deviation;
}

/* gamma starts at 1, beta and the bias at the 0 they have already. */
static void initialise(network *net, uint64_t seed)
{
    random_source random = random_seeded(seed);

    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        conv_shape shape = shape_of(net->channels, i, 1, 1);

        fill_he(&random, shape.c * CONV_TAPS, conv_w_count(shape),
                net->value.w[i]);
        for (size_t k = 0; k < shape.k; ++k)
            net->value.gamma[i][k] = 1;
    }
    fill_he(&random, NETWORK_FEATURES, NETWORK_CLASSES * NETWORK_FEATURES,
            net->value.linear_weights);
}

bool network_open(size_t channels, uint64_t seed, network *out)
{
    network net = {.channels = channels};

    if (!open_parameters(channels, &net.value) ||
        !open_parameters(channels, &net.gradient) ||
        !open_parameters(channels, &net.velocity)) {
        message_error("out of memory");
        network_close(&net);
        return false;
    }
    initialise(&net, seed);
    *out = net;
    return true;
}

void network_close(network *net)
{
    free(net->value.all);
    free(net->gradient.all);
    free(net->velocity.all);
    *net = (network){0};
}

void network_step(network *net, float rate, float momentum)
{
    float *value = net->value.all, *velocity = net->velocity.all;
    const float *gradient = net->gradient.all;

    for (size_t i = 0; i < net->value.count; ++i) {
        velocity[i] = momentum * velocity[i] + gradient[i];
        value[i] -= rate * velocity[i];
    }
}

/* ---- A pass: memory and plans --------------------------------------- */

/* The first layer's dX would be the gradient of the image: nobody needs it
 * here. */
static unsigned backward_ops(network_purpose purpose, size_t conv)
{
    unsigned ops = purpose == NETWORK_TRAIN ? CLCONV_OP_DW : 0u;

    return conv > 0 ? ops | CLCONV_OP_DX : ops;
}

static bool open_calls(const conv_engine *engine, network_pass *pass, size_t i)
{
    clconv_math math =
        pass->purpose == NETWORK_TRAIN ? CLCONV_MIXED : CLCONV_FP32;
    clconv_desc desc =
        conv_backward_desc(pass->shape[i], math, CLCONV_SCALE_LOG2_DEFAULT);
    unsigned ops = backward_ops(pass->purpose, i);

    return conv_forward_open(engine, pass->shape[i], math, &pass->forward[i]) &&
           (ops == 0 || conv_call_open(engine, &desc, ops, &pass->backward[i]));
}

static bool open_conv_memory(network_pass *pass, size_t i)
{
    conv_shape shape = pass->shape[i];

    pass->x[i] = floats(conv_x_count(shape));
    pass->y_dy[i] = floats(conv_y_count(shape));
    pass->statistics[i] = calloc(shape.k, sizeof(**pass->statistics));
    if (i % 2)
        pass->block_end[i / 2] = floats(conv_y_count(shape));
    return pass->x[i] && pass->y_dy[i] && pass->statistics[i] &&
           (i % 2 == 0 || pass->block_end[i / 2]);
}

/* The gradient array holds dX of any layer but the first, and the gradient
 * of the last pooled activation. All of these fit in conv1.2's x. */
static bool open_memory(network_pass *pass)
{
    size_t n = pass->shape[0].n;
    bool ok = true;

    for (size_t i = 0; ok && i < NETWORK_CONVS; ++i)
        ok = open_conv_memory(pass, i);
    pass->gradient = floats(conv_x_count(pass->shape[1]));
    pass->features = floats(n * NETWORK_FEATURES);
    pass->dfeatures = floats(n * NETWORK_FEATURES);
    pass->logits = floats(n * NETWORK_CLASSES);
    pass->dlogits = floats(n * NETWORK_CLASSES);
    pass->labels = calloc(n ? n : 1, 1);
    ok = ok && pass->gradient && pass->features && pass->dfeatures &&
         pass->logits && pass->dlogits && pass->labels;
    if (!ok)
        message_error("out of memory");
    return ok;
}

bool network_pass_open(const network *net, const conv_engine *engine, size_t n,
                       size_t size, network_purpose purpose, network_pass *out)
{
    network_pass pass = {.purpose = purpose};
    bool ok;

    for (size_t i = 0; i < NETWORK_CONVS; ++i)
        pass.shape[i] = shape_of(net->channels, i, n, size);
    ok = open_memory(&pass);
    for (size_t i = 0; ok && i < NETWORK_CONVS; ++i)
        ok = open_calls(engine, &pass, i);
    if (ok)
        *out = pass;
    else
        network_pass_close(&pass);
    return ok;
}

static void free_and_clear(float **array)
{
    free(*array);
    *array = NULL;
}

void network_pass_keep_captured(network_pass *pass)
{
    for (size_t i = 0; i < NETWORK_BLOCKS; ++i)
        free_and_clear(&pass->block_end[i]);
    free_and_clear(&pass->gradient);
    free_and_clear(&pass->features);
    free_and_clear(&pass->dfeatures);
    free_and_clear(&pass->logits);
    free_and_clear(&pass->dlogits);
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        free(pass->statistics[i]);
        pass->statistics[i] = NULL;
        conv_call_close(&pass->forward[i]);
        conv_call_close(&pass->backward[i]);
    }
}

void network_pass_close(network_pass *pass)
{
    network_pass_keep_captured(pass);
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        free(pass->x[i]);
        free(pass->y_dy[i]);
    }
    free(pass->labels);
    *pass = (network_pass){0};
}

/* ---- Forward -------------------------------------------------------- */

static batch_norm norm_of(const network *net, size_t i)
{
    return (batch_norm){net->value.gamma[i], net->value.beta[i]};
}

static linear linear_of(const network *net)
{
    return (linear){NETWORK_FEATURES, NETWORK_CLASSES,
                    net->value.linear_weights, net->value.linear_bias};
}

/* Where a block's pooled output goes: to the next block's input. The last
 * one is only averaged, and borrows the array of gradients. */
static float *pooled_of(network_pass *pass, size_t block)
{
    return block + 1 < NETWORK_BLOCKS ? pass->x[2 * block + 2] : pass->gradient;
}

static bool forward(const network *net, network_pass *pass)
{
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        tensor_shape shape = y_shape(pass->shape[i]);
        float *a = i % 2 ? pass->block_end[i / 2] : pass->x[i + 1];

        if (!conv_forward(&pass->forward[i], pass->x[i], net->value.w[i],
                          pass->y_dy[i]))
            return false;
        batch_norm_relu_forward(shape, norm_of(net, i), pass->y_dy[i],
                                pass->statistics[i], a);
        if (i % 2)
            max_pool_forward(shape, a, pooled_of(pass, i / 2));
    }
    average_pool_forward(pooled_shape(pass->shape[NETWORK_CONVS - 1]),
                         pass->gradient, pass->features);
    linear_forward(linear_of(net), pass->shape[0].n, pass->features,
                   pass->logits);
    return true;
}

/* ---- Backward ------------------------------------------------------- */

/* From the logits to the output of the last pooling; returns the loss. */
static double backward_head(network *net, network_pass *pass)
{
    tensor_shape pooled = pooled_shape(pass->shape[NETWORK_CONVS - 1]);
    double loss = cross_entropy(pooled.n, NETWORK_CLASSES, pass->logits,
                                pass->labels, pass->dlogits);

    linear_backward(linear_of(net), pooled.n, pass->features, pass->dlogits,
                    net->gradient.linear_weights, net->gradient.linear_bias,
                    pass->dfeatures);
    average_pool_backward(pooled, pass->dfeatures, pass->gradient);
    return loss;
}

static bool backward_conv(network *net, network_pass *pass, size_t i)
{
    unsigned ops = pass->backward[i].ops;
    conv_inputs in = {pass->x[i], net->value.w[i], pass->y_dy[i]};
    conv_gradients out = {
        .dw = ops & CLCONV_OP_DW ? net->gradient.w[i] : NULL,
        .dx = ops & CLCONV_OP_DX ? pass->gradient : NULL,
    };

    return ops == 0 || conv_run(&pass->backward[i], in, out);
}

/* pass->gradient holds the gradient of what the layer put out, after pooling
 * if there is any; it leaves with the gradient of the layer's input. */
static bool backward_layer(network *net, network_pass *pass, size_t i)
{
    tensor_shape shape = y_shape(pass->shape[i]);
    float *da = pass->gradient;

    if (i % 2) {
        da = pass->block_end[i / 2];
        max_pool_backward(shape, pass->gradient, da);
    }
    batch_norm_relu_backward(shape, norm_of(net, i), pass->statistics[i], da,
                             pass->y_dy[i], net->gradient.gamma[i],
                             net->gradient.beta[i]);
    return backward_conv(net, pass, i);
}

bool network_run(network *net, network_pass *pass, double *loss)
{
    double found;

    if (!forward(net, pass))
        return false;
    found = backward_head(net, pass);
    for (size_t i = NETWORK_CONVS; i-- > 0;) {
        if (!backward_layer(net, pass, i))
            return false;
    }
    *loss = found;
    return true;
}
