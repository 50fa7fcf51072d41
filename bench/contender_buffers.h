/*
 * The tensors of a contender that computes on the OpenCL device: fp32 or as
 * it asks for, one buffer each for every set, only those that the gradients
 * asked for need.
 *
 *     contender_buffers b = {0};              // or with formats of its own
 *     if (!contender_buffers_open(setup, &b)) ...  // said on stderr
 *     cl_mem x = b.mem[set][CONTENDER_X];          // NULL: not needed
 *     contender_buffers_read(&b, set, out);
 *     contender_buffers_close(&b);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_BUFFERS_H
#define CONTENDER_BUFFERS_H

#include "contender.h"

enum {
    CONTENDER_X,
    CONTENDER_W,
    CONTENDER_DY,
    CONTENDER_DW,
    CONTENDER_DB,
    CONTENDER_DX,
    CONTENDER_TENSORS
};

/* Elements of each tensor of setup's description. */
void contender_elements(const clconv_desc *desc,
                        size_t elements[CONTENDER_TENSORS]);

/* How a tensor lies in its buffer; all zero: as it is, in fp32. */
typedef struct contender_format {
    bool is_half;
    int log2; /* of an fp16 tensor: the power of two multiplied in */
} contender_format;

typedef struct contender_buffers {
    contender_format formats[CONTENDER_TENSORS]; /* the contender's choice */
    const host *host;
    int sets;
    size_t elements[CONTENDER_TENSORS];
    cl_mem (*mem)[CONTENDER_TENSORS];
} contender_buffers;

/* Fills what stands behind the formats. */
bool contender_buffers_open(const contender_setup *setup, contender_buffers *b);
void contender_buffers_close(contender_buffers *b);

/* Blocks; what out asks for must have been among the setup's ops. */
bool contender_buffers_read(const contender_buffers *b, int set,
                            const contender_results *out);

#endif
