/*
 * Outputs start as NaN, so that an element nobody writes is seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_buffers.h"

#include <math.h>
#include <stdlib.h>

#include "message.h"
#include "shape.h"

void contender_elements(const clconv_desc *desc,
                        size_t elements[CONTENDER_TENSORS])
{
    shape z = {0};

    shape_from_desc(desc, &z);
    elements[CONTENDER_X] = elements[CONTENDER_DX] = shape_x_count(&z);
    elements[CONTENDER_W] = elements[CONTENDER_DW] = shape_w_count(&z);
    elements[CONTENDER_DY] = shape_dy_count(&z);
    elements[CONTENDER_DB] = (size_t)desc->k;
}

/* Which gradients need a tensor. */
static unsigned users_of(int tensor)
{
    switch (tensor) {
    case CONTENDER_X:
    case CONTENDER_DW: return CLCONV_OP_DW;
    case CONTENDER_W:
    case CONTENDER_DX: return CLCONV_OP_DX;
    case CONTENDER_DB: return CLCONV_OP_DB;
    default: return CLCONV_OP_BACKWARD;
    }
}

static size_t element_bytes(const contender_buffers *b, int tensor)
{
    return b->formats[tensor].is_half ? sizeof(uint16_t) : sizeof(float);
}

/* ---- Formats ------------------------------------------------------------ */

/* NULL with a line on stderr if there is no memory. */
static uint16_t *new_halves(size_t count)
{
    uint16_t *halves = malloc((count ? count : 1) * sizeof(*halves));

    if (!halves)
        message_error("out of memory");
    return halves;
}

static uint16_t *narrow(const float *values, size_t count, int log2)
{
    uint16_t *halves = new_halves(count);
    float scale = ldexpf(1, log2);

    for (size_t i = 0; halves && i < count; ++i)
        halves[i] = host_half_from_float(values[i] * scale);
    return halves;
}

static bool read_halves(const contender_buffers *b, int set, int tensor,
                        float *out)
{
    size_t count = b->elements[tensor];
    uint16_t *halves = new_halves(count);
    float scale = ldexpf(1, -b->formats[tensor].log2);
    bool ok = halves && host_read(b->host, b->mem[set][tensor], 0,
                                  count * sizeof(*halves), halves);

    for (size_t i = 0; ok && i < count; ++i)
        out[i] = host_float_from_half(halves[i]) * scale;
    free(halves);
    return ok;
}

static bool read_tensor(const contender_buffers *b, int set, int tensor,
                        float *out)
{
    if (b->formats[tensor].is_half)
        return read_halves(b, set, tensor, out);
    return host_read(b->host, b->mem[set][tensor], 0,
                     b->elements[tensor] * sizeof(float), out);
}

/* ---- Buffers ------------------------------------------------------------ */

/* The same tensor of every set. data: its values, or NULL for an output. */
static bool open_filled(contender_buffers *b, int tensor, const void *data)
{
    size_t bytes = b->elements[tensor] * element_bytes(b, tensor);

    for (int set = 0; set < b->sets; ++set) {
        b->mem[set][tensor] = host_buffer(b->host, bytes, data);
        if (!b->mem[set][tensor])
            return false;
    }
    return true;
}

static bool open_tensor(contender_buffers *b, int tensor, const float *values)
{
    uint16_t *halves;
    bool ok;

    if (!values || !b->formats[tensor].is_half)
        return open_filled(b, tensor, values);
    halves = narrow(values, b->elements[tensor], b->formats[tensor].log2);
    ok = halves && open_filled(b, tensor, halves);
    free(halves);
    return ok;
}

bool contender_buffers_open(const contender_setup *setup, contender_buffers *b)
{
    const float *values[CONTENDER_TENSORS] = {setup->data.x, setup->data.w,
                                              setup->data.dy};
    bool ok = true;

    b->host = setup->host;
    b->sets = setup->sets;
    contender_elements(setup->desc, b->elements);
    b->mem = calloc((size_t)b->sets, sizeof(*b->mem));
    if (!b->mem) {
        message_error("out of memory");
        return false;
    }
    for (int i = 0; ok && i < CONTENDER_TENSORS; ++i) {
        if (setup->ops & users_of(i))
            ok = open_tensor(b, i, values[i]);
    }
    if (!ok)
        contender_buffers_close(b);
    return ok;
}

void contender_buffers_close(contender_buffers *b)
{
    for (int set = 0; b->mem && set < b->sets; ++set) {
        for (int i = 0; i < CONTENDER_TENSORS; ++i) {
            if (b->mem[set][i])
                clReleaseMemObject(b->mem[set][i]);
        }
    }
    free(b->mem);
    b->mem = NULL;
}

bool contender_buffers_read(const contender_buffers *b, int set,
                            const contender_results *out)
{
    float *const to[CONTENDER_TENSORS] = {
        [CONTENDER_DW] = out->dw, [CONTENDER_DB] = out->db, [CONTENDER_DX] = out->dx};

    for (int i = 0; i < CONTENDER_TENSORS; ++i) {
        if (to[i] && !read_tensor(b, set, i, to[i]))
            return false;
    }
    return true;
}
