/*
 * Shapes come from the files, so nothing has to be typed twice: x gives
 * n, c, h, w; w gives k, r, s; dy is then what the formula of the output says
 * or the error shows both.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tensors.h"

#include <inttypes.h>

#include "message.h"

/* Where image or filter, channel, row and column stand in a shape. */
typedef struct axes {
    size_t first, channel, row, column;
} axes;

static axes axes_of(clconv_layout layout)
{
    return layout == CLCONV_NCHW ? (axes){0, 1, 2, 3} : (axes){0, 3, 1, 2};
}

static clconv_type type_of(const npy_array *array)
{
    return array->header.type == NPY_F32 ? CLCONV_F32 : CLCONV_F16;
}

/* ---- Reading ----------------------------------------------------------- */

static bool read_tensor(const char *path, npy_array *out)
{
    npy_error error;

    if (npy_read(path, 4, out, &error))
        return true;
    message_error("%s: %s", path, error.text);
    return false;
}

bool inputs_read(const run_options *options, run_inputs *out)
{
    run_inputs inputs = {.dy.data = NULL};

    if (read_tensor(options->dy_path, &inputs.dy) &&
        read_tensor(options->x_path, &inputs.x) &&
        read_tensor(options->w_path, &inputs.w)) {
        *out = inputs;
        return true;
    }
    inputs_free(&inputs);
    return false;
}

void inputs_free(run_inputs *inputs)
{
    npy_free(&inputs->dy);
    npy_free(&inputs->x);
    npy_free(&inputs->w);
}

/* ---- Fitting ----------------------------------------------------------- */

static void take_sizes(const run_inputs *inputs, clconv_desc *desc)
{
    const int64_t *x = inputs->x.header.shape, *w = inputs->w.header.shape;
    axes at = axes_of(desc->layout);

    desc->n = x[at.first];
    desc->c = x[at.channel];
    desc->h = x[at.row];
    desc->w = x[at.column];
    desc->k = w[at.first];
    desc->r = w[at.row];
    desc->s = w[at.column];
    desc->x_type = type_of(&inputs->x);
    desc->w_type = type_of(&inputs->w);
    desc->dy_type = type_of(&inputs->dy);
}

static const char *layout_name(const clconv_desc *desc)
{
    return desc->layout == CLCONV_NCHW ? "nchw" : "nhwc";
}

/* Division, because channels * groups may overflow. */
static bool check_channels(const run_options *options, const run_inputs *inputs,
                           const clconv_desc *desc)
{
    int64_t channels = inputs->w.header.shape[axes_of(desc->layout).channel];

    if (desc->c % desc->groups != 0) {
        message_error("--groups %" PRId64 ": must divide the %" PRId64
                      " channels of %s (--layout %s)",
                      desc->groups, desc->c, options->x_path, layout_name(desc));
        return false;
    }
    if (channels != desc->c / desc->groups) {
        message_error("%s: has %" PRId64 " channels, but the %" PRId64
                      " channels of %s with --groups %" PRId64 " need %" PRId64
                      " (--layout %s)",
                      options->w_path, channels, desc->c, options->x_path,
                      desc->groups, desc->c / desc->groups, layout_name(desc));
        return false;
    }
    return true;
}

static npy_header output_gradient_header(const clconv_desc *desc, int64_t p,
                                         int64_t q)
{
    npy_header header = {NPY_F32, 4, {0}, 0, 0};
    axes at = axes_of(desc->layout);

    header.shape[at.first] = desc->n;
    header.shape[at.channel] = desc->k;
    header.shape[at.row] = p;
    header.shape[at.column] = q;
    return header;
}

static bool same_shape(const npy_header *a, const npy_header *b)
{
    for (size_t i = 0; i < 4; ++i) {
        if (a->shape[i] != b->shape[i])
            return false;
    }
    return true;
}

static void say_wrong_dy(const run_options *options, const run_inputs *inputs,
                         const clconv_desc *desc, const npy_header *expected)
{
    char dy[256], x[256], w[256], wanted[256];

    message_error(
        "%s: is %s, but x, %s, and w, %s, with --stride %" PRId64 ",%" PRId64
        " --pad %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
        " --dilation %" PRId64 ",%" PRId64 " --layout %s need the shape %s",
        options->dy_path,
        npy_header_describe(&inputs->dy.header, dy, sizeof(dy)),
        npy_header_describe(&inputs->x.header, x, sizeof(x)),
        npy_header_describe(&inputs->w.header, w, sizeof(w)), desc->stride_h,
        desc->stride_w, desc->pad_top, desc->pad_bottom, desc->pad_left,
        desc->pad_right, desc->dilation_h, desc->dilation_w, layout_name(desc),
        npy_shape_describe(expected, wanted, sizeof(wanted)));
}

bool inputs_describe(const run_options *options, const run_inputs *inputs,
                     clconv_desc *out)
{
    clconv_desc desc = options->desc;
    npy_header expected;
    int64_t p, q;

    take_sizes(inputs, &desc);
    if (!check_channels(options, inputs, &desc))
        return false;
    if (clconv_desc_validate(&desc) || clconv_desc_output_shape(&desc, &p, &q)) {
        message_error("%s and %s: %s", options->x_path, options->w_path,
                      clconv_last_error());
        return false;
    }
    expected = output_gradient_header(&desc, p, q);
    if (!same_shape(&expected, &inputs->dy.header)) {
        say_wrong_dy(options, inputs, &desc, &expected);
        return false;
    }
    *out = desc;
    return true;
}
