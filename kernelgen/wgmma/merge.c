/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "merge.h"

#include "integers.h"
#include "pack.h"

/* Channels of merged groups at most: a line of an operand. */
#define MOST_CHANNELS 64

#define MOST_GROUPS 8

bool clconv_merge_legal(const clconv_problem *p, int merge)
{
    int64_t channels = merge * clconv_max(p->group_c, p->group_k);
    return merge == 1 ||
           (p->groups % merge == 0 && p->group_c % CLCONV_PACK_CHANNELS == 0 &&
            p->group_k % CLCONV_PACK_CHANNELS == 0 && channels <= MOST_CHANNELS);
}

int clconv_merge_choose(const clconv_problem *p)
{
    int merge = 1;
    while (merge < MOST_GROUPS && clconv_merge_legal(p, 2 * merge))
        merge *= 2;
    return merge;
}

clconv_task clconv_merge_task(const clconv_task *t, int merge,
                              clconv_problem *problem)
{
    clconv_task merged = *t;
    *problem = clconv_problem_merge_groups(t->problem, merge);
    merged.problem = problem;
    return merged;
}
