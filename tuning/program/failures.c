/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "failures.h"

#include <stdlib.h>

void failures_add(failures *f, const char *problem, const char *plan,
                  const clconv_trial *trial)
{
    clconv_outcome o = trial->outcome;
    int index = f->counts[o]++;
    if (index >= FAILURES_LISTED)
        return;
    if (!f->listed[o])
        f->listed[o] = calloc(FAILURES_LISTED, sizeof **f->listed);
    if (!f->listed[o])
        return;
    failure *at = &f->listed[o][index];
    snprintf(at->problem, sizeof at->problem, "%s", problem);
    snprintf(at->plan, sizeof at->plan, "%s", plan);
    snprintf(at->why, sizeof at->why, "%s", trial->why);
}

static void print_outcome(FILE *to, const failures *f, int o)
{
    int listed = f->counts[o] < FAILURES_LISTED ? f->counts[o] : FAILURES_LISTED;
    fprintf(to, "%d %s\n", f->counts[o], clconv_outcome_word((clconv_outcome)o));
    for (int i = 0; f->listed[o] && i < listed; ++i) {
        const failure *at = &f->listed[o][i];
        fprintf(to, "  %s %s\n    %s\n", at->problem,
                *at->plan ? at->plan : "(the default plan)", at->why);
    }
    if (f->counts[o] > listed)
        fprintf(to, "  and %d more\n", f->counts[o] - listed);
}

void failures_print(FILE *to, const failures *f)
{
    const char *head = "\nCandidates that failed\n";
    for (int i = 0; i < CLCONV_OUTCOMES; ++i) {
        if (f->counts[i] == 0)
            continue;
        fputs(head, to);
        head = "";
        print_outcome(to, f, i);
    }
}

void failures_free(failures *f)
{
    for (int i = 0; i < CLCONV_OUTCOMES; ++i)
        free(f->listed[i]);
    *f = (failures){0};
}
