/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fused_reader.h"

static bool reads_vectors(const clconv_problem *p, int64_t channels)
{
    return p->layout == CLCONV_NHWC && channels % 8 == 0 &&
           p->alignment % 16 == 0;
}

clconv_fused_reader clconv_fused_reader_of(const clconv_task *t,
                                           const clconv_fused *f,
                                           clconv_tensor tensor)
{
    const clconv_problem *p = t->problem;
    bool of_dy = tensor == CLCONV_DY;
    int64_t channels = of_dy ? p->group_k : p->group_c;
    int line = of_dy ? f->k_line : f->c_line, halo = of_dy ? f->halo : 0;
    clconv_fused_reader r = {.tensor = tensor, .octets = line / 8};
    r.half_type = p->type[tensor] == CLCONV_F16;
    r.casts = clconv_problem_casts(p, tensor);
    r.bias = of_dy && t->bias;
    r.vectors = reads_vectors(p, channels);
    r.whole = channels % 8 == 0;
    r.lanes = clconv_fused_lanes(line);
    r.deep = f->at_once;
    while (f->rows % (r.deep * r.lanes) || halo % (r.deep * r.lanes))
        r.deep /= 2;
    r.ring = of_dy ? f->ring : f->buffers * f->rows;
    return r;
}

void clconv_fused_reader_set(clconv_emit *e, const clconv_fused_reader *r)
{
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(r->tensor));
    clconv_emit_set_text(e, "type", r->half_type ? "half" : "float");
    clconv_emit_set_text(e, "raw", r->half_type ? "uint4" : "float8");
    clconv_emit_set_text(e, "channels",
                         r->tensor == CLCONV_DY ? "group_k" : "group_c");
    clconv_emit_set_text(e, "step",
                         r->tensor == CLCONV_W   ? "w_channel"
                         : r->tensor == CLCONV_X ? "x_channel"
                                                 : "dy_channel");
    clconv_emit_set(e, "octets", r->octets);
    clconv_emit_set(e, "lanes", r->lanes);
    clconv_emit_set(e, "deep", r->deep);
    clconv_emit_set(e, "batch", r->deep * r->lanes);
    clconv_emit_set(e, "places", r->ring);
    clconv_emit_set(e, "bytes", 16 * r->octets);
}

void clconv_fused_emit_eight(clconv_emit *e, const clconv_fused_reader *r,
                             const char *to)
{
    clconv_emit_line(e, to);
    clconv_emit_line(
        e, r->half_type ? "    (uint4)(v[0] | v[1] << 16, v[2] | v[3] << 16, "
                          "v[4] | v[5] << 16, v[6] | v[7] << 16);"
                        : "    (float8)(v[0], v[1], v[2], v[3], v[4], v[5], "
                          "v[6], v[7]);");
}

clconv_fused_turns clconv_fused_turns_of(const clconv_task *t,
                                         const clconv_fused *f)
{
    clconv_fused_reader dy = clconv_fused_reader_of(t, f, CLCONV_DY);
    clconv_fused_reader x = clconv_fused_reader_of(t, f, CLCONV_X);
    return (clconv_fused_turns){
        .x = f->rows / (x.deep * x.lanes),
        .x_deep = x.deep,
        .dy = f->rows / (dy.deep * dy.lanes),
        .dy_deep = dy.deep,
        .halo = f->halo / (dy.deep * dy.lanes),
    };
}
