/*
 * The last sum of dbias: a work-group adds up the partial sums of a channel
 * that a cast left (clconv_bias_sums in kernel.h).
 *
 * A pass of bwd_weight that ends with a sum of its own takes it along if the
 * task finishes_bias, which saves a launch. Work-groups for the channels come
 * before its own:
 *
 *     clconv_bias_sum_add(t, &pass);                  in passes(), last
 *     clconv_bias_sum_emit_functions(e, t, items);    before the entry
 *     ... entry_open ...
 *     clconv_bias_sum_emit_groups(e, t);
 *     ... i from "$group", the number of its own work-group; where "$inside",
 *         i is an element of dW that is wanted, of count; "$beta_dw" is its
 *         beta ...
 *
 * The call may want either output without the other: what is not wanted is
 * NULL. Without finishes_bias nothing is added.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BIAS_SUM_H
#define CLCONV_BIAS_SUM_H

#include "kernel.h"

void clconv_bias_sum_add(const clconv_task *t, clconv_pass *pass);

void clconv_bias_sum_emit_functions(clconv_emit *e, const clconv_task *t,
                                    int items);

void clconv_bias_sum_emit_groups(clconv_emit *e, const clconv_task *t);

/*
 * float bias_share(__global const float *sums, int count, int run,
 *                  int channels, int k)
 * is what a work-item adds up of channel k, and
 *
 * float bias_total(__local const float4 *shares)
 * the sum of those of all work-items, one after the other, after a barrier; not
 * if items, a power of two, are 1.
 */
void clconv_bias_sum_emit(clconv_emit *e, int items);

#endif
