/*
 * Packed copies of operands: fp16 with channels last, each group's channels
 * padded with zeros to a multiple of 8, so that every row of channels starts
 * at 16 bytes and is a whole number of them:
 *
 *     X   [n][h][w][groups][pad(group_c)]
 *     dY  [n][p][q][groups][pad(group_k)]
 *     W   [k][r][s][pad(group_c)]     k over all groups, group after group
 *
 * A kernel asks for them by CLCONV_PACKED bits of wants_copies(), and reads
 * them through CLCONV_ARG_OPERAND. Where clconv_pack_is_plain() it asks for the
 * plain copy instead, which is the same and may be the caller's tensor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PACK_H
#define CLCONV_PACK_H

#include "problem.h"

/* Channels of a group are padded to a multiple of this. */
#define CLCONV_PACK_CHANNELS 8

/* Element strides over image, row, column (of W: k, r, s) and group. The
 * channels of a group are neighbours. */
typedef struct clconv_pack_strides {
    int64_t image, row, column, group;
} clconv_pack_strides;

/* Is the dense tensor, in its own layout, already what its packed copy would
 * be? (For fp16; an fp32 tensor's plain copy is.) */
bool clconv_pack_is_plain(const clconv_problem *p, clconv_tensor tensor);

/* Channels of a group of dY, X or W, padded. */
int64_t clconv_pack_channels(const clconv_problem *p, clconv_tensor tensor);

/* Elements of the packed copy, padding included. */
int64_t clconv_pack_elements(const clconv_problem *p, clconv_tensor tensor);

clconv_pack_strides clconv_pack_get_strides(const clconv_problem *p,
                                            clconv_tensor tensor);

#endif
