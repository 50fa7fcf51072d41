/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "progress.h"

#include <math.h>
#include <stdio.h>

#include "child.h"

void progress_begin(progress *p, size_t index, const char *problem)
{
    p->index = index;
    p->problem = problem;
    p->stage = -1;
    p->default_seconds = 0;
}

void progress_clear(const progress *p)
{
    if (p->is_terminal)
        fprintf(stderr, "\r\033[K");
}

/* It is tried first. */
static void note_default(progress *p, const clconv_tuner_progress *now)
{
    if (now->trials == 1 && now->trial->outcome == CLCONV_TRIAL_OK)
        p->default_seconds = now->trial->seconds;
}

/* A role by itself is no match for the default plan's whole call. */
static bool is_whole_call(clconv_stage stage)
{
    return stage != CLCONV_STAGE_BWD_DATA && stage != CLCONV_STAGE_BWD_WEIGHT;
}

static void print_times(const progress *p, const clconv_tuner_progress *now)
{
    double left = p->end - child_clock();
    if (isfinite(now->best_seconds))
        fprintf(stderr, ", best %.1f us", now->best_seconds * 1e6);
    if (p->default_seconds > 0 && is_whole_call(now->stage))
        fprintf(stderr, " (default %.1f us)", p->default_seconds * 1e6);
    fprintf(stderr, ", %.0f s left", left > 0 ? left : 0);
}

void progress_show(progress *p, const clconv_tuner_progress *now)
{
    bool is_new = (int)now->stage != p->stage;
    note_default(p, now);
    p->stage = (int)now->stage;
    if (!p->is_terminal && !is_new)
        return;
    progress_clear(p);
    fprintf(stderr, "%zu of %zu  %.40s  %s", p->index, p->count, p->problem,
            clconv_stage_name(now->stage));
    if (p->is_terminal) {
        fprintf(stderr, ": %d plans", now->trials);
        print_times(p, now);
    }
    fputs(p->is_terminal ? "" : "\n", stderr);
}
