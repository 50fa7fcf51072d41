/*
 * How bwd_fused goes through a tensor: what a work-item reads at a time, and
 * where it lies in local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_FUSED_READER_H
#define CLCONV_WGMMA_FUSED_READER_H

#include "fused.h"

typedef struct clconv_fused_reader {
    clconv_tensor tensor;
    bool half_type, casts, bias;
    bool vectors;
    bool whole; /* are channels a multiple of eight? */
    int octets; /* of a position in local memory */
    int lanes;  /* positions that are read together, one after the other */
    int deep;   /* octets that a work-item reads at a time, a position each */
    int ring;   /* positions in local memory */
} clconv_fused_reader;

clconv_fused_reader clconv_fused_reader_of(const clconv_task *t,
                                           const clconv_fused *f,
                                           clconv_tensor tensor);

/* Holes: $tensor, $type, $raw (an octet as it is stored), $channels and $step
 * (members of sizes_t), $octets, $lanes, $deep, $batch, $places, $bytes. */
void clconv_fused_reader_set(clconv_emit *e, const clconv_fused_reader *r);

/* v[8] as a raw octet, after the text to. */
void clconv_fused_emit_eight(clconv_emit *e, const clconv_fused_reader *r,
                             const char *to);

#endif
