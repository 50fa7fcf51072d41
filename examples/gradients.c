/*
 * What fp16 makes of real gradients, with and without a scale of 2^10.
 *
 * In the order of the file: train a small network for a few steps on real
 * images; at each image size run it forward and backward once, so that every
 * convolution's real X, W and dY lie in memory; give each layer's tensors to
 * libclconv in three ways and compare the gradients with fp64; print, plot.
 *
 * Where to read on: conv.c calls libclconv; network.c and layers.c are the
 * network in plain C; experiment.c and compare.c are the measurement.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "conv.h"
#include "experiment.h"
#include "host.h"
#include "images.h"
#include "message.h"
#include "network.h"
#include "options.h"
#include "plot.h"
#include "progress.h"
#include "random.h"
#include "summary.h"
#include "table.h"

#define LEARNING_RATE 0.05f
#define MOMENTUM 0.9f

/* Everything that lives from the start to the end. */
typedef struct study {
    options options;
    host host;
    conv_engine engine;
    image_set images;
    network net;
    random_source random; /* draws the batches */
    size_t *index;        /* [batch], the images of the current batch */
    size_result sizes[OPTIONS_SIZES_MAX];
} study;

/* ---- Batches -------------------------------------------------------- */

static void draw_batch(study *s)
{
    for (int64_t i = 0; i < s->options.batch; ++i)
        s->index[i] = (size_t)random_below(&s->random, s->images.count);
}

static void load_batch(const study *s, size_t size, network_pass *pass)
{
    size_t n = pass->shape[0].n;

    images_upscale(&s->images, s->index, n, size, pass->x[0]);
    for (size_t i = 0; i < n; ++i)
        pass->labels[i] = s->images.labels[s->index[i]];
}

/* ---- Training ------------------------------------------------------- */

static bool train_step(study *s, network_pass *pass, double *loss)
{
    draw_batch(s);
    load_batch(s, s->images.size, pass);
    if (!network_run(&s->net, pass, loss))
        return false;
    network_step(&s->net, LEARNING_RATE, MOMENTUM);
    return true;
}

static bool train(study *s)
{
    size_t size = s->images.size;
    double first = 0, last = 0;
    network_pass pass;
    bool ok;

    progress_show("%zu px: planning the convolutions for training", size);
    ok = network_pass_open(&s->net, &s->engine, (size_t)s->options.batch, size,
                           NETWORK_TRAIN, &pass);
    if (!ok)
        return false;
    for (int64_t step = 0; ok && step < s->options.steps; ++step) {
        progress_show("%zu px: training step %lld of %lld, loss %.3f", size,
                      (long long)step + 1, (long long)s->options.steps, last);
        ok = train_step(s, &pass, &last);
        if (step == 0)
            first = last;
    }
    network_pass_close(&pass);
    progress_clear();
    if (ok && s->options.steps > 0)
        printf("Trained %lld steps at %zu x %zu pixels, %lld images each, in "
               "fp16 with 2^10: loss %.3f -> %.3f\n",
               (long long)s->options.steps, size, size,
               (long long)s->options.batch, first, last);
    return ok;
}

/* ---- One image size ------------------------------------------------- */

static bool study_layers(study *s, const network_pass *pass, size_result *out)
{
    for (size_t i = 0; i < NETWORK_CONVS; ++i) {
        conv_inputs in = {pass->x[i], s->net.value.w[i], pass->y_dy[i]};

        progress_show("%zu px: %s in fp32, fp16, fp16 with 2^10 and fp64",
                      out->size, network_conv_name(i));
        if (!experiment_run(&s->engine, pass->shape[i], in,
                            (size_t)s->options.calls, &out->layer[i]))
            return false;
        progress_clear();
        table_print_layer(stdout, network_conv_name(i), &out->layer[i]);
        fflush(stdout);
    }
    return true;
}

static bool study_size(study *s, size_t size, size_result *out)
{
    size_t images = (size_t)s->options.batch;
    network_pass pass;
    bool ok;

    progress_show("%zu px: forward and backward", size);
    if (!network_pass_open(&s->net, &s->engine, images, size, NETWORK_CAPTURE,
                           &pass))
        return false;
    *out = (size_result){.size = size, .images = images};
    load_batch(s, size, &pass);
    ok = network_run(&s->net, &pass, &out->loss);
    network_pass_keep_captured(&pass);
    progress_clear();
    if (ok) {
        table_print_size(stdout, size, images, out->loss);
        ok = study_layers(s, &pass, out);
    }
    network_pass_close(&pass);
    return ok;
}

/* ---- From the start to the end -------------------------------------- */

/* Without --sizes: the images as they are, and 2 and 4 times as large. */
static void choose_sizes(study *s)
{
    options *o = &s->options;

    if (o->size_count > 0)
        return;
    for (o->size_count = 0; o->size_count < 3; ++o->size_count)
        o->sizes[o->size_count] = (int64_t)(s->images.size << o->size_count);
}

static bool read_images(study *s)
{
    const options *o = &s->options;

    return o->cifar ? images_read_cifar10(o->cifar, &s->images)
                    : images_read_fashion_mnist(o->data, &s->images);
}

static bool prepare(study *s)
{
    s->random = random_seeded(s->options.seed);
    s->index = calloc((size_t)s->options.batch, sizeof(*s->index));
    if (!s->index) {
        message_error("out of memory");
        return false;
    }
    return read_images(s) && conv_engine_open(&s->host, &s->engine) &&
           network_open(s->images.channels, s->options.seed, &s->net);
}

static void print_heading(const study *s)
{
    printf("%s on %s\n%s, %zu training images of %zu x %zu pixels, seed %llu\n",
           s->host.device_name, s->host.platform_name,
           s->options.cifar ? "CIFAR-10" : "Fashion-MNIST", s->images.count,
           s->images.size, s->images.size, (unsigned long long)s->options.seed);
}

static bool conduct(study *s)
{
    const options *o = &s->options;

    print_heading(s);
    if (!train(s))
        return false;
    draw_batch(s); /* the same images at every size */
    for (size_t i = 0; i < o->size_count; ++i) {
        if (!study_size(s, (size_t)o->sizes[i], &s->sizes[i]))
            return false;
    }
    table_print_legend(stdout);
    summary_print(stdout, s->sizes, o->size_count);
    if (!o->plot)
        return true;
    if (!plot_write(o->plot, s->sizes, o->size_count))
        return false;
    printf("\nPlot: %s\n", o->plot);
    return true;
}

static void finish(study *s)
{
    network_close(&s->net);
    conv_engine_close(&s->engine);
    images_free(&s->images);
    free(s->index);
}

static int run(study *s)
{
    bool ok;

    if (s->options.plot && !plot_possible(s->options.plot))
        return EXIT_FAILURE;
    switch (host_open(s->options.device, HOST_IN_ORDER, &s->host)) {
    case HOST_OK: break;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
    ok = prepare(s);
    if (ok) {
        choose_sizes(s);
        ok = conduct(s);
    }
    progress_clear();
    finish(s);
    host_close(&s->host);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static study s;

    message_program("gradients");
    switch (options_parse(argc, argv, &s.options)) {
    case OPTIONS_OK: return run(&s);
    case OPTIONS_HELP: return EXIT_SUCCESS;
    default: return ARGS_EXIT_USAGE;
    }
}
