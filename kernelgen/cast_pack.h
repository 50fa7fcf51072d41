/*
 * The cast's packed copies (pack.h): a pass that reads each element of all
 * tensors that the task packs once, as the passes of cast_flat.c do, and writes
 * them channels last: in NCHW through local memory. One launch for all of them:
 * in a small problem launches take longer than the work.
 *
 *     pass = clconv_cast_pack_pass(t, lws, batch);       in passes()
 *     clconv_cast_pack_emit(e, t, lws);                  in emit()
 *
 * lws: work-items of a group. The program has the seen type (counts.h) of width
 * CLCONV_TILES_VEC.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CAST_PACK_H
#define CLCONV_CAST_PACK_H

#include "kernel.h"

/* Is the operand packed by this task; is one? */
bool clconv_cast_packs(const clconv_task *t, clconv_tensor tensor);
bool clconv_cast_packs_any(const clconv_task *t);

/* Does the pass that packs the operand also write its plain copy? */
bool clconv_cast_pack_copies(const clconv_task *t, clconv_tensor tensor);

/* Does it sum dbias as it packs dY? */
bool clconv_cast_pack_sums(const clconv_task *t);

/* Bytes of local memory that a work-group needs. */
size_t clconv_cast_pack_local(const clconv_task *t, int lws);

/* Bytes of the partial sums of dbias, for the problem's n images. */
size_t clconv_cast_pack_scratch(const clconv_task *t, int lws);

/* What it serves is the caller's to say. */
clconv_pass clconv_cast_pack_pass(const clconv_task *t, int lws, int64_t batch);

/* What that pass leaves of dbias in the scratch. */
clconv_bias_sums clconv_cast_pack_bias_sums(const clconv_task *t, int lws,
                                            int64_t batch);

/* The last sum of dbias, of what that pass left in the scratch. */
clconv_pass clconv_cast_pack_bias_pass(const clconv_task *t, int lws,
                                       int64_t batch);

/* The entry points of both; of the first if another step finishes dbias. */
void clconv_cast_pack_emit(clconv_emit *e, const clconv_task *t, int lws);

#endif
