/*
 * NHWC is a transposition of (channels, area) for each outer index, done in
 * blocks of places so that the lines written stay in the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tensor.h"

#include <string.h>

#include "host.h"

/* ---- Forms -------------------------------------------------------------- */

tensor_form tensor_x(const shape *z, clconv_layout layout, clconv_type type)
{
    return (tensor_form){(size_t)z->n, (size_t)z->c, (size_t)(z->h * z->w),
                         layout, type};
}

tensor_form tensor_w(const shape *z, clconv_layout layout, clconv_type type)
{
    return (tensor_form){(size_t)z->k, (size_t)z->cg, (size_t)(z->r * z->s),
                         layout, type};
}

tensor_form tensor_dy(const shape *z, clconv_layout layout, clconv_type type)
{
    return (tensor_form){(size_t)z->n, (size_t)z->k, (size_t)(z->p * z->q),
                         layout, type};
}

tensor_form tensor_db(const shape *z, clconv_type type)
{
    return (tensor_form){1, (size_t)z->k, 1, CLCONV_NCHW, type};
}

size_t tensor_count(const tensor_form *form)
{
    return form->outer * form->channels * form->area;
}

static size_t element_size(const tensor_form *form)
{
    return form->type == CLCONV_F16 ? 2 : 4;
}

size_t tensor_bytes(const tensor_form *form)
{
    return tensor_count(form) * element_size(form);
}

/* ---- One element -------------------------------------------------------- */

/* Bytes may lie at any address: memcpy is a plain load or store here. */
static void put(clconv_type type, void *bytes, size_t index, float value)
{
    if (type == CLCONV_F32) {
        memcpy((char *)bytes + 4 * index, &value, sizeof(value));
    } else {
        uint16_t half = host_half_from_float(value);
        memcpy((char *)bytes + 2 * index, &half, sizeof(half));
    }
}

static float get(clconv_type type, const void *bytes, size_t index)
{
    float value;
    uint16_t half;

    if (type == CLCONV_F32) {
        memcpy(&value, (const char *)bytes + 4 * index, sizeof(value));
        return value;
    }
    memcpy(&half, (const char *)bytes + 2 * index, sizeof(half));
    return host_float_from_half(half);
}

/* ---- Both ways ---------------------------------------------------------- */

enum { PLACES_A_BLOCK = 64 };

/* Where a transposition goes. */
typedef struct direction {
    const float *from; /* encode */
    float *to;         /* decode, else NULL */
    void *bytes;
} direction;

static void move(const direction *way, clconv_type type, size_t plain,
                 size_t stored)
{
    if (way->to)
        way->to[plain] = get(type, way->bytes, stored);
    else
        put(type, way->bytes, stored, way->from[plain]);
}

static void move_block(const tensor_form *form, const direction *way,
                       size_t outer, size_t first, size_t end)
{
    size_t base = outer * form->channels * form->area;

    for (size_t c = 0; c < form->channels; ++c) {
        for (size_t i = first; i < end; ++i)
            move(way, form->type, base + c * form->area + i,
                 base + i * form->channels + c);
    }
}

static void transpose(const tensor_form *form, const direction *way)
{
    for (size_t outer = 0; outer < form->outer; ++outer) {
        for (size_t i = 0; i < form->area; i += PLACES_A_BLOCK) {
            size_t end = i + PLACES_A_BLOCK;

            move_block(form, way, outer, i, end < form->area ? end : form->area);
        }
    }
}

static void move_in_order(const tensor_form *form, const direction *way)
{
    size_t count = tensor_count(form);

    for (size_t i = 0; i < count; ++i)
        move(way, form->type, i, i);
}

static void move_all(const tensor_form *form, const direction *way)
{
    if (form->layout == CLCONV_NHWC)
        transpose(form, way);
    else
        move_in_order(form, way);
}

void tensor_encode(const tensor_form *form, const float *values, void *bytes)
{
    move_all(form, &(direction){.from = values, .bytes = bytes});
}

void tensor_decode(const tensor_form *form, const void *bytes, float *values)
{
    /* Only read through: decoding never writes to bytes. */
    move_all(form,
             &(direction){.to = values, .bytes = (void *)(uintptr_t)bytes});
}
