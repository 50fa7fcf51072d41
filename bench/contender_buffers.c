/*
 * Outputs start as NaN, so that an element nobody writes is seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender_buffers.h"

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

static bool open_set(const contender_setup *setup, contender_buffers *b, int set)
{
    const float *data[CONTENDER_TENSORS] = {setup->data.x, setup->data.w,
                                            setup->data.dy};

    for (int i = 0; i < CONTENDER_TENSORS; ++i) {
        if (!(setup->ops & users_of(i)))
            continue;
        b->mem[set][i] =
            host_buffer(b->host, b->elements[i] * sizeof(float), data[i]);
        if (!b->mem[set][i])
            return false;
    }
    return true;
}

bool contender_buffers_open(const contender_setup *setup, contender_buffers *out)
{
    contender_buffers b = {.host = setup->host, .sets = setup->sets};

    contender_elements(setup->desc, b.elements);
    b.mem = calloc((size_t)b.sets, sizeof(*b.mem));
    if (!b.mem) {
        message_error("out of memory");
        return false;
    }
    for (int set = 0; set < b.sets; ++set) {
        if (!open_set(setup, &b, set)) {
            contender_buffers_close(&b);
            return false;
        }
    }
    *out = b;
    return true;
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
        if (to[i] && !host_read(b->host, b->mem[set][i], 0,
                                b->elements[i] * sizeof(float), to[i]))
            return false;
    }
    return true;
}
