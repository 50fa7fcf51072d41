/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "variant.h"

/* No beta next to an exponent: old contents and a scaled sum may need more
 * digits together than fp32 has. */
static const variant variants[] = {
    {.name = "beta, fewer images than described",
     .beta_w = 2,
     .beta_b = -1,
     .beta_x = 3,
     .extra_images = 1},
    {.name = "fp16 inputs that carry an exponent",
     .dy_log2 = 2,
     .fp16 = VARIANT_X | VARIANT_W | VARIANT_DY},
    {.name = "fp16 outputs, out-of-order queue",
     .out_of_order = true,
     .dx_log2 = -1,
     .fp16 = VARIANT_DW | VARIANT_DB | VARIANT_DX},
    {.name = "offsets of 4 bytes, beta",
     .alignment = 4,
     .offset = 4,
     .beta_b = 1,
     .beta_w = -2},
    {.name = "dW not wanted, out-of-order queue",
     .out_of_order = true,
     .unwanted = CLCONV_OP_DW,
     .beta_x = -1},
    {.name = "dX not planned, fp16 x",
     .unplanned = CLCONV_OP_DX,
     .fp16 = VARIANT_X,
     .extra_images = 2},
    {.name = "db not wanted, fp16 dY at an offset of 4 bytes",
     .unwanted = CLCONV_OP_DB,
     .fp16 = VARIANT_DY,
     .alignment = 4,
     .offset = 4},
    {.name = "all fp16 at an offset of 2 bytes, beta",
     .alignment = 2,
     .offset = 2,
     .beta_w = 1,
     .beta_x = 2,
     .fp16 = VARIANT_X | VARIANT_W | VARIANT_DY | VARIANT_DW | VARIANT_DB |
             VARIANT_DX},
    {.name = "fp32 dY that carries an exponent, out-of-order queue",
     .out_of_order = true,
     .dy_log2 = -3,
     .dx_log2 = 2},
    {.name = "db alone", .unplanned = CLCONV_OP_DW | CLCONV_OP_DX, .beta_b = 2},
    {.name = "dX alone, fp16 w and dX",
     .unwanted = CLCONV_OP_DB,
     .unplanned = CLCONV_OP_DW,
     .fp16 = VARIANT_W | VARIANT_DX},
};

size_t variant_count(void)
{
    return sizeof(variants) / sizeof(variants[0]);
}

const variant *variant_get(size_t index)
{
    return &variants[index];
}

static clconv_type type_of(const variant *v, unsigned tensor)
{
    return v->fp16 & tensor ? CLCONV_F16 : CLCONV_F32;
}

static void set_types(const variant *v, clconv_desc *d)
{
    d->x_type = type_of(v, VARIANT_X);
    d->w_type = type_of(v, VARIANT_W);
    d->dy_type = type_of(v, VARIANT_DY);
    d->dw_type = type_of(v, VARIANT_DW);
    d->db_type = type_of(v, VARIANT_DB);
    d->dx_type = type_of(v, VARIANT_DX);
}

run_setup variant_apply(const variant *v, const run_setup *plain)
{
    run_setup setup = *plain;

    set_types(v, &setup.desc);
    setup.desc.n += v->extra_images;
    setup.desc.dy_log2 = v->dy_log2;
    setup.desc.dx_log2 = v->dx_log2;
    if (v->alignment > 0) {
        setup.desc.alignment = v->alignment;
        setup.offset = v->offset;
    }
    setup.plan_ops = CLCONV_OP_BACKWARD & ~v->unplanned;
    setup.wanted = setup.plan_ops & ~v->unwanted;
    setup.beta_w = v->beta_w;
    setup.beta_b = v->beta_b;
    setup.beta_x = v->beta_x;
    setup.out_of_order = v->out_of_order;
    return setup;
}
