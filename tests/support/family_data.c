/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "family_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "naive.h"
#include "random.h"

const char *const family_names[FAMILY_TENSORS] = {"dy", "x",  "w",
                                                  "dw", "db", "dx"};

const unsigned family_ops[FAMILY_TENSORS] = {
    [FAMILY_DY] = CLCONV_OP_BACKWARD, [FAMILY_X] = CLCONV_OP_DW,
    [FAMILY_W] = CLCONV_OP_DX,        [FAMILY_DW] = CLCONV_OP_DW,
    [FAMILY_DB] = CLCONV_OP_DB,       [FAMILY_DX] = CLCONV_OP_DX};

#define LARGEST_HALF 65504.0

static void *new_array(int64_t count, size_t size)
{
    void *array = calloc((size_t)count + 1, size);
    cr_assert_not_null(array);
    return array;
}

static void list_tensors(family_data *data)
{
    const clconv_desc *d = &data->desc;
    const clconv_type types[FAMILY_TENSORS] = {
        d->dy_type, d->x_type, d->w_type, d->dw_type, d->db_type, d->dx_type};
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        data->type[t] = types[t];
        data->elements[t] = family_data_elements(data, t, d->n);
    }
}

/* Magnitude m of the inputs: sums of products stay below 2^22, which leaves
 * room for beta times an old value; or, at m = 1, up to the 2^24 below which an
 * fp32 holds each integer. */
static int magnitude_for(const family_data *data)
{
    const clconv_desc *d = &data->desc;
    int64_t dw_terms = data->elements[FAMILY_DY] / d->k;
    int64_t dx_terms = d->k / d->groups * d->r * d->s;
    int64_t terms = dw_terms > dx_terms ? dw_terms : dx_terms;
    int magnitude = 3;
    while (magnitude > 1 && terms * magnitude * magnitude >= 1 << 22)
        --magnitude;
    cr_assert_leq(terms * magnitude * magnitude, 1 << 24);
    return magnitude;
}

void family_data_new(const clconv_desc *desc, family_data *out)
{
    random_source random = random_seeded(7);
    *out = (family_data){.desc = *desc};
    list_tensors(out);
    int magnitude = magnitude_for(out);
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        size_t count = (size_t)out->elements[t];
        out->value[t] = new_array(out->elements[t], sizeof(float));
        random_fill_integers(&random, magnitude, count, out->value[t]);
        if (t >= FAMILY_DW)
            out->exact[t] = new_array(out->elements[t], sizeof(double));
    }
}

void family_data_free(family_data *data)
{
    for (int t = 0; t < FAMILY_TENSORS; ++t) {
        free(data->value[t]);
        free(data->exact[t]);
    }
    *data = (family_data){0};
}

void family_data_compute(family_data *data, int64_t batch)
{
    const naive_data in = {data->value[FAMILY_X], data->value[FAMILY_W],
                           data->value[FAMILY_DY]};
    const naive_result out = {.dw = data->exact[FAMILY_DW],
                              .db = data->exact[FAMILY_DB],
                              .dx = data->exact[FAMILY_DX]};
    naive_backward(&data->desc, batch, &in, &out);
}

int64_t family_data_elements(const family_data *data, int tensor, int64_t batch)
{
    const clconv_desc *d = &data->desc;
    switch (tensor) {
    case FAMILY_DY: return naive_dy_elements(d, batch);
    case FAMILY_DB: return d->k;
    case FAMILY_W:
    case FAMILY_DW: return naive_w_elements(d);
    default: return naive_x_elements(d, batch);
    }
}

double family_data_result(const family_data *data, int tensor, int64_t i,
                          float beta)
{
    const clconv_desc *d = &data->desc;
    int log2 = (tensor == FAMILY_DX ? d->dx_log2 : 0) - d->dy_log2;
    double result = ldexp(data->exact[tensor][i], log2);
    if (beta != 0.0f)
        result += (double)beta * (double)data->value[tensor][i];
    return result;
}

float family_data_stored(const family_data *data, int tensor, int64_t i,
                         float beta)
{
    double result = family_data_result(data, tensor, i, beta);
    if (data->type[tensor] != CLCONV_F16)
        return (float)result;
    if (isfinite(result) && fabs(result) > LARGEST_HALF &&
        data->desc.overflow == CLCONV_SATURATE)
        result = copysign(LARGEST_HALF, result);
    return host_float_from_half(host_half_from_float((float)result));
}
