/*
 * Ranges are what memory and patience allow: at 512 x 512 pixels one image
 * takes 34 MB in each of the first block's arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>

#include "args.h"
#include "images.h"
#include "message.h"
#include "network.h"

#define SIZE_MAX_PIXELS 512
#define BATCH_MAX 1024
#define STEPS_MAX 10000
#define CALLS_MAX 16

static const char help[] =
    "usage: gradients [options]\n"
    "\n"
    "Trains a small convolutional network on real images for a few steps,\n"
    "takes the gradients dY that then reach each convolution, and shows what\n"
    "fp16 makes of them with and without libclconv's scale of 2^10.\n"
    "\n"
    "  --sizes A,B,C   image sizes in pixels, 8 to 512, at most 8 of them\n"
    "                  (default: the images' own size, 2 and 4 times it)\n"
    "  --batch N       images at once, 1 to 1024 (default 64)\n"
    "  --steps N       training steps, 0 to 10000 (default 20)\n"
    "  --seed S        of weights and batches, 0 to 2^63 - 1 (default 42)\n"
    "  --calls N       timed calls per layer and mode, 1 to 16 (default 5);\n"
    "                  slow calls are repeated less often\n"
    "  --device TEXT   the OpenCL device whose name contains TEXT\n"
    "  --data DIR      Fashion-MNIST's train-*-ubyte.gz (default\n"
    "                  " IMAGES_FASHION_MNIST_DIRECTORY ")\n"
    "  --cifar DIR     CIFAR-10's data_batch_1.bin to data_batch_5.bin "
    "instead\n"
    "  --plot FILE     draw the results into an SVG file, with gnuplot\n"
    "  --help          this text\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong option, 77 no OpenCL device.\n";

enum {
    OPT_SIZES = 256,
    OPT_BATCH,
    OPT_STEPS,
    OPT_SEED,
    OPT_CALLS,
    OPT_DEVICE,
    OPT_DATA,
    OPT_CIFAR,
    OPT_PLOT,
    OPT_HELP
};

static const struct option table[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"calls", required_argument, NULL, OPT_CALLS},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"data", required_argument, NULL, OPT_DATA},
    {"cifar", required_argument, NULL, OPT_CIFAR},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool set_sizes(const char *text, options *o)
{
    return args_list("--sizes", text, NETWORK_SIZE_MIN, SIZE_MAX_PIXELS,
                     OPTIONS_SIZES_MAX, o->sizes, &o->size_count);
}

static bool set_seed(const char *text, options *o)
{
    int64_t seed;

    if (!args_integer("--seed", text, 0, INT64_MAX, &seed))
        return false;
    o->seed = (uint64_t)seed;
    return true;
}

static bool set_text(const char *text, const char **out)
{
    *out = text;
    return true;
}

static bool set_option(int code, char *const *argv, options *o)
{
    switch (code) {
    case OPT_SIZES: return set_sizes(optarg, o);
    case OPT_BATCH:
        return args_integer("--batch", optarg, 1, BATCH_MAX, &o->batch);
    case OPT_STEPS:
        return args_integer("--steps", optarg, 0, STEPS_MAX, &o->steps);
    case OPT_SEED: return set_seed(optarg, o);
    case OPT_CALLS:
        return args_integer("--calls", optarg, 1, CALLS_MAX, &o->calls);
    case OPT_DEVICE: return set_text(optarg, &o->device);
    case OPT_DATA: return set_text(optarg, &o->data);
    case OPT_CIFAR: return set_text(optarg, &o->cifar);
    case OPT_PLOT: return set_text(optarg, &o->plot);
    default: args_say_bad_option(code, argv); return false;
    }
}

options_result options_parse(int argc, char **argv, options *out)
{
    options o = {.batch = 64,
                 .steps = 20,
                 .calls = 5,
                 .seed = 42,
                 .data = IMAGES_FASHION_MNIST_DIRECTORY};
    int code;

    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
        if (code == OPT_HELP) {
            fputs(help, stdout);
            return OPTIONS_HELP;
        }
        if (!set_option(code, argv, &o))
            return OPTIONS_BAD;
    }
    if (optind < argc) {
        message_error("'%s' is not an option; --help lists them", argv[optind]);
        return OPTIONS_BAD;
    }
    *out = o;
    return OPTIONS_OK;
}
