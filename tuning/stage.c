/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <limits.h>

/* The candidates of a search, in its order or, all of them, the space's. */
typedef struct source {
    clconv_search *search;
    bool exhaustive;
    int index;
} source;

static bool next(source *s, clconv_candidate *out)
{
    if (!s->exhaustive)
        return clconv_search_next(s->search, out);
    if (s->index == clconv_search_size(s->search))
        return false;
    clconv_search_item(s->search, s->index++, out);
    return true;
}

static void make_attempt(const clconv_course *c, unsigned ops,
                         const clconv_candidate *candidate, const char *rest,
                         clconv_attempt *out)
{
    clconv_text plan = CLCONV_TEXT_EMPTY;
    clconv_candidate_format(candidate, &plan);
    clconv_text_printf(&plan, ";%s", rest);
    clconv_attempt_make(c, ops, plan.failed ? "" : plan.data, out);
    clconv_text_free(&plan);
}

/* Tries at most so many; returns how many there were. */
static int try_some(clconv_course *c, clconv_contest *contest, source *from,
                    const char *rest, int count)
{
    clconv_candidate candidates[CLCONV_BATCH_MOST];
    clconv_attempt attempts[CLCONV_BATCH_MOST];
    int taken = 0;
    while (taken < count && next(from, &candidates[taken])) {
        make_attempt(c, contest->ops, &candidates[taken], rest,
                     &attempts[taken]);
        ++taken;
    }
    clconv_contest_try(c, contest, attempts, taken);
    for (int i = 0; i < taken; ++i)
        clconv_search_tell(from->search, &candidates[i], attempts[i].seconds);
    return taken;
}

static int most_trials(const clconv_course *c)
{
    bool is_bounded = c->rules.trials > 0 && !c->rules.exhaustive;
    return is_bounded ? c->rules.trials : INT_MAX;
}

void clconv_stage_search(clconv_course *c, clconv_contest *contest,
                         clconv_search *search, const char *rest, double until)
{
    source from = {.search = search, .exhaustive = c->rules.exhaustive};
    double begin = clconv_course_spent(c);
    double finish = begin + CLCONV_SEARCH_FINISH * (until - begin);
    for (int left = most_trials(c), most = left;;) {
        if (clconv_course_spent(c) >= finish ||
            most - left >= CLCONV_SEARCH_FINISH * most)
            clconv_search_finish(search);
        int count = clconv_course_batch(c, until);
        if (count > left)
            count = left;
        if (!count || !try_some(c, contest, &from, rest, count))
            return;
        left -= count;
    }
}
