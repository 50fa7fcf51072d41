/*
 * clconv_measure_time().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "measure_parts.h"
#include "os.h"
#include "turns.h"

typedef struct timing {
    clconv_measure *m;
    unsigned ops;
    clconv_prepared **plans;
} timing;

static double seconds_now(void *user)
{
    (void)user;
    return clconv_os_milliseconds() / 1000;
}

static bool run_calls(void *user, int which, int calls)
{
    const timing *t = user;
    clconv_measure *m = t->m;
    const clconv_prepared *p = t->plans[which];
    for (int i = 0; i < calls; ++i) {
        if (clconv_measure_enqueue(m, p->plan, t->ops, m->next_set) !=
            CLCONV_OK)
            return false;
        m->next_set = (m->next_set + 1) % m->tensors.sets;
    }
    return clFinish(m->queue) == CL_SUCCESS;
}

static void keep_spell(const clconv_spell *spell, clconv_trial *out)
{
    if (spell->failed) {
        clconv_measure_end_trial(out, CLCONV_TRIAL_FAILED,
                                 "a call failed while it was timed");
        return;
    }
    out->seconds = spell->median;
    out->lower = spell->lower;
    out->upper = spell->upper;
}

/* plans[i] NULL: not prepared. */
static void time_found(timing *t, int count, double seconds, clconv_trial *out)
{
    clconv_spell *spells = calloc((size_t)count + 1, sizeof *spells);
    int *index = calloc((size_t)count + 1, sizeof *index);
    clconv_turns turns = {.user = t,
                          .clock = seconds_now,
                          .run = run_calls,
                          .seconds = seconds,
                          .in_bursts = !t->m->context->device.is_cpu};
    int found = 0;
    for (int i = 0; index && i < count; ++i)
        if (t->plans[i]) {
            t->plans[found] = t->plans[i];
            index[found++] = i;
        }
    bool timed = spells && index && clconv_turns_take(&turns, found, spells);
    for (int i = 0; timed && i < found; ++i)
        keep_spell(&spells[i], &out[index[i]]);
    free(index);
    free(spells);
}

void clconv_measure_time(clconv_measure *m, unsigned ops,
                         const char *const *plans, int count, double seconds,
                         clconv_trial *out)
{
    timing t = {m, ops, calloc((size_t)count + 1, sizeof *t.plans)};
    for (int i = 0; t.plans && i < count; ++i)
        t.plans[i] = clconv_measure_find(m, ops, plans[i]);
    if (t.plans)
        time_found(&t, count, seconds, out);
    free(t.plans);
}
