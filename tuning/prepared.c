/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "prepared.h"

#include <stdlib.h>
#include <string.h>

static void release(clconv_prepared *p)
{
    clconv_plan_release(p->plan);
    free(p->text);
    *p = (clconv_prepared){.plan = NULL};
}

clconv_prepared *clconv_prepared_find(clconv_prepared_list *list, unsigned ops,
                                      const char *text)
{
    for (int i = 0; i < CLCONV_MEASURE_PLANS; ++i) {
        clconv_prepared *p = &list->item[i];
        if (!p->plan || p->ops != ops || strcmp(p->text, text) != 0)
            continue;
        p->used = ++list->uses;
        return p;
    }
    return NULL;
}

/* A free place was never used, and so comes first. */
static clconv_prepared *least_recently_used(clconv_prepared_list *list)
{
    clconv_prepared *least = &list->item[0];
    for (int i = 1; i < CLCONV_MEASURE_PLANS; ++i)
        if (list->item[i].used < least->used)
            least = &list->item[i];
    return least;
}

clconv_prepared *clconv_prepared_add(clconv_prepared_list *list, unsigned ops,
                                     const char *text, clconv_plan *plan)
{
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    clconv_prepared *p = least_recently_used(list);
    release(p);
    *p = (clconv_prepared){
        .plan = plan, .ops = ops, .text = copy, .used = ++list->uses};
    return p;
}

void clconv_prepared_clear(clconv_prepared_list *list)
{
    for (int i = 0; i < CLCONV_MEASURE_PLANS; ++i)
        release(&list->item[i]);
}
