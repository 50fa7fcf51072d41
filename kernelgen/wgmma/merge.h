/*
 * Groups of few channels, several multiplied as one: a product of the unit takes
 * tens of channels, and what it computes of different groups costs nothing.
 * Such channels lie in memory as those of a larger group, so only W and dW differ:
 * of the larger group's filters each has the channels of its own group, the others
 * are zero in W and no part of dW. The pass of the products has them as merge.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_MERGE_H
#define CLCONV_WGMMA_MERGE_H

#include "kernel.h"

/* The parameter of kernels that can. */
#define CLCONV_MERGE_PARAM                                                     \
    {                                                                          \
        "merge", CLCONV_VALUES(1, 2, 4, 8),                                    \
            "groups whose channels are multiplied as one group's"              \
    }

/* Has the problem so many groups to merge, without padding between them? 1:
 * always. */
bool clconv_merge_legal(const clconv_problem *p, int merge);

/* The most that are legal. */
int clconv_merge_choose(const clconv_problem *p);

/* The task of the products; *problem becomes its problem. */
clconv_task clconv_merge_task(const clconv_task *t, int merge,
                              clconv_problem *problem);

#endif
