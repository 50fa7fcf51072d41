/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "random.h"

#define SEED 1

static float *new_floats(size_t count)
{
    float *values = malloc((count ? count : 1) * sizeof(*values));

    if (!values)
        message_error("out of memory for %zu floats", count);
    return values;
}

static void fill(bench_data *data)
{
    random_source random = random_seeded(SEED);
    size_t count = shape_dy_count(&data->z);

    random_fill_normal(&random, shape_x_count(&data->z), data->x);
    random_fill_normal(&random, shape_w_count(&data->z), data->w);
    random_fill_normal(&random, count, data->dy);
    for (size_t i = 0; i < count; ++i)
        data->dy[i] *= DATA_DY_SIZE;
}

bool data_new(const clconv_desc *desc, bench_data *out)
{
    bench_data data = {.layout = desc->layout};

    if (!shape_from_desc(desc, &data.z))
        return false;
    data.x = new_floats(shape_x_count(&data.z));
    data.w = new_floats(shape_w_count(&data.z));
    data.dy = new_floats(shape_dy_count(&data.z));
    if (!data.x || !data.w || !data.dy) {
        data_free(&data);
        return false;
    }
    fill(&data);
    *out = data;
    return true;
}

void data_free(bench_data *data)
{
    free(data->x);
    free(data->w);
    free(data->dy);
}

/* ---- Results ------------------------------------------------------------ */

/* NULL also where it is not wanted; *ok tells. */
static float *new_result(size_t count, bool wanted, bool *ok)
{
    float *values = wanted ? new_floats(count) : NULL;

    if (wanted && !values)
        *ok = false;
    for (size_t i = 0; values && i < count; ++i)
        values[i] = NAN;
    return values;
}

bool data_results_new(const shape *z, unsigned ops, contender_results *out)
{
    bool ok = true;
    contender_results results = {
        .dw = new_result(shape_w_count(z), ops & CLCONV_OP_DW, &ok),
        .db = new_result((size_t)z->k, ops & CLCONV_OP_DB, &ok),
        .dx = new_result(shape_x_count(z), ops & CLCONV_OP_DX, &ok)};

    if (ok)
        *out = results;
    else
        data_results_free(&results);
    return ok;
}

void data_results_free(contender_results *results)
{
    free(results->dw);
    free(results->db);
    free(results->dx);
}

/* ---- Layout and size ---------------------------------------------------- */

float *data_as_nchw(const float *values, clconv_layout layout, size_t outer,
                    size_t channels, size_t pixels)
{
    float *copy = new_floats(outer * channels * pixels);
    size_t at = 0;

    if (!copy || layout == CLCONV_NCHW) {
        if (copy)
            memcpy(copy, values, outer * channels * pixels * sizeof(*copy));
        return copy;
    }
    for (size_t o = 0; o < outer; ++o) {
        const float *image = values + o * channels * pixels;

        for (size_t c = 0; c < channels; ++c) {
            for (size_t i = 0; i < pixels; ++i)
                copy[at++] = image[i * channels + c];
        }
    }
    return copy;
}

double data_bytes(const shape *z, unsigned ops, bool halves)
{
    double x = (double)shape_x_count(z), w = (double)shape_w_count(z);
    double narrow = (double)shape_dy_count(z), wide = 0;

    if (ops & CLCONV_OP_DW)
        narrow += x, wide += w;
    if (ops & CLCONV_OP_DX)
        narrow += w + x;
    if (ops & CLCONV_OP_DB)
        wide += (double)z->k;
    return narrow * (halves ? sizeof(cl_half) : sizeof(float)) +
           wide * sizeof(float);
}
