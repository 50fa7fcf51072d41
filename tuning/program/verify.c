/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "interrupt.h"
#include "message.h"
#include "record_list.h"
#include "winner.h"

/* Two runs of the same plan differ by as much. */
#define NOISE 1.02

#define SECONDS_A_PLAN 0.3

typedef struct verdict {
    clconv_trial tuned, plain; /* plain: the default plan */
    char why[320];             /* why it goes; "": it stays */
} verdict;

static void time_both(station *s, const clconv_record *r, const char *name,
                      verdict *v)
{
    const char *plans[2] = {r->plan, ""};
    clconv_trial trials[2];
    pool_prepare(s->workers, name, r->ops, plans, 2, trials);
    int first = trials[0].outcome == CLCONV_TRIAL_OK ? 0 : 1;
    if (trials[1].outcome == CLCONV_TRIAL_OK)
        pool_time(s->workers, name, r->ops, plans + first, 2 - first,
                  SECONDS_A_PLAN, trials + first);
    v->tuned = trials[0];
    v->plain = trials[1];
}

/* A reason against the record, or none. */
static void examine(station *s, const clconv_record *r, verdict *v)
{
    if (v->tuned.outcome == CLCONV_TRIAL_OK)
        station_judge(s, &r->problem, r->ops, r->plan, &v->tuned);
    if (v->tuned.outcome != CLCONV_TRIAL_OK)
        snprintf(v->why, sizeof v->why, "%s: %s",
                 clconv_outcome_word(v->tuned.outcome), v->tuned.why);
    else if (v->tuned.seconds > NOISE * v->plain.seconds)
        snprintf(v->why, sizeof v->why, "slower than the default plan");
}

/* A record of another driver becomes one of this driver, if that has none that
 * is better. */
static bool renew(station *s, const clconv_record *old, const verdict *v)
{
    clconv_record there;
    clconv_record r = winner_record(s, &old->problem, old->ops, old->plan,
                                    &v->tuned, v->plain.seconds);
    bool same = clconv_record_same_key(&r, old);
    bool better = !same && winner_find(s, &r.problem, r.ops, &there) &&
                  there.microseconds <= r.microseconds;
    const clconv_record *one = &r;
    if (!better && !winner_save(s, &r))
        return false;
    if (!better)
        winner_keep_programs(s, &one, 1);
    if (!same)
        clconv_tunedb_remove(s->records, old);
    return true;
}

static void print_verdict(const char *name, const verdict *v)
{
    printf("%s %s:", *v->why ? "dropped" : "kept", name);
    if (v->tuned.outcome == CLCONV_TRIAL_OK)
        printf(" %.1f us,", v->tuned.seconds * 1e6);
    printf(" default %.1f us%s%s\n", v->plain.seconds * 1e6,
           *v->why ? ", " : "", v->why);
    fflush(stdout);
}

/* No memory, no worker: that says nothing of the record, and neither does what
 * came out while the program was being stopped. */
static bool stays(const char *name, const char *plan, const clconv_trial *t)
{
    message_error("%s: it stays as it is, since %s plan is %s here: %s", name,
                  plan, clconv_outcome_word(t->outcome), t->why);
    return false;
}

static bool conclude(station *s, const clconv_record *r, const char *name,
                     verdict *v)
{
    if (v->plain.outcome != CLCONV_TRIAL_OK)
        return stays(name, "the default", &v->plain);
    examine(s, r, v);
    if (v->tuned.outcome == CLCONV_TRIAL_FAILED || (*v->why && interrupt_seen()))
        return stays(name, "its", &v->tuned);
    print_verdict(name, v);
    if (!*v->why)
        return renew(s, r, v);
    clconv_tunedb_remove(s->records, r);
    return true;
}

static bool verify(station *s, const clconv_record *r)
{
    verdict v = {.why = ""};
    clconv_text name = CLCONV_TEXT_EMPTY;
    clconv_problem_format(&r->problem, &name);
    bool ok = !name.failed;
    if (ok)
        time_both(s, r, name.data, &v);
    ok = ok && conclude(s, r, name.data, &v);
    clconv_text_free(&name);
    return ok;
}

int verify_records(station *s)
{
    record_list list;
    bool ok = record_list_of_device(s, &list);
    for (int i = 0; i < list.count && !interrupt_seen(); ++i)
        ok = verify(s, &list.items[i]) && ok;
    if (ok && list.count == 0)
        printf("there are no records of %s in %s\n", s->label, s->places.cache);
    record_list_free(&list);
    return ok && !interrupt_seen() ? EXIT_SUCCESS : EXIT_FAILURE;
}
