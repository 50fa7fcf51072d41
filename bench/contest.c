/*
 * First the fp32 gradients that all others must agree with: those of the
 * library, some of whose elements plain loops confirm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "message.h"

/* So many sets of small tensors, whether they exceed the cache or not. */
#define SETS_MAX 256

/* Of the memory, what tensors may take; half is left for workspaces. */
#define MEMORY_SHARE 0.5

/* What a problem's contenders share. */
typedef struct contest {
    const contest_rules *rules;
    const columns *list;
    const clconv_desc *desc;
    bench_data data;
    contender_results expected;
    racer racers[COLUMNS_MAX];
    row *row;
} contest;

/* ---- Sets --------------------------------------------------------------- */

int contest_sets(double set_bytes, double cache, double memory, int states)
{
    double enough = floor(2 * cache / set_bytes) + 1;
    double room = floor(MEMORY_SHARE * memory / (set_bytes * states));
    double sets = fmin(fmin(enough, room), SETS_MAX);

    return sets < 2 ? 2 : (int)sets;
}

static double memory_bytes(const host *h)
{
    cl_ulong bytes = 0;

    if (clGetDeviceInfo(h->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(bytes),
                        &bytes, NULL))
        return 0;
    return (double)bytes;
}

/* ---- One contender ------------------------------------------------------ */

static contender_status open_contender(const contest *t, const contender *c,
                                       const char *plan, int sets, void **state,
                                       char why[256])
{
    const bench_data *d = &t->data;
    contender_setup setup = {.host = t->rules->host,
                             .desc = t->desc,
                             .ops = t->rules->ops,
                             .sets = sets,
                             .data = {d->x, d->w, d->dy},
                             .plan = plan};

    why[0] = '\0';
    return c->open(&setup, state, why);
}

static void give_up(entry *e, entry_status status, const char *why)
{
    e->status = status;
    snprintf(e->why, sizeof(e->why), "%s", why);
}

/* The largest error of the first set's results; NaN with a line on stderr if
 * they could not be had. */
static double error_of(const contest *t, const racer *r)
{
    const shape *z = &t->data.z;
    contender_results results;
    double error = NAN;

    if (!data_results_new(z, t->rules->ops, &results))
        return NAN;
    if (r->contender->read(r->state, 0, &results))
        error = agree_results(z, &results, &t->expected);
    data_results_free(&results);
    return error;
}

static void judge(const contest *t, const racer *r, entry *e)
{
    double bound = r->contender->bound;

    e->error = error_of(t, r);
    if (e->error <= bound)
        return;
    e->status = ENTRY_WRONG;
    snprintf(e->why, sizeof(e->why), "relative error %.2g, allowed is %.2g",
             e->error, bound);
}

static void keep_variant(const racer *r, entry *e)
{
    const contender *c = r->contender;
    const char *variant = c->variant ? c->variant(r->state) : NULL;

    snprintf(e->variant, sizeof(e->variant), "%s", variant ? variant : "");
}

/* Ready to be timed, or with an entry that says why not. */
static void prepare(contest *t, int column)
{
    racer *r = &t->racers[column];
    entry *e = &t->row->entries[column];
    contender_status status = open_contender(t, r->contender, t->rules->plan,
                                             t->row->sets, &r->state, e->why);

    if (status != CONTENDER_OK) {
        e->status =
            status == CONTENDER_FAILED ? ENTRY_FAILED : ENTRY_UNSUPPORTED;
        return;
    }
    r->sets = t->row->sets;
    keep_variant(r, e);
    if (!measure_warm_up(r, &t->rules->measure))
        give_up(e, ENTRY_FAILED, "a call failed");
    else
        judge(t, r, e);
}

/* Takes what the turns left in a racer. */
static void conclude(racer *r, entry *e)
{
    if (e->status == ENTRY_TIMED && r->failed)
        give_up(e, ENTRY_FAILED, "a call failed");
    if (e->status == ENTRY_TIMED) {
        e->samples = r->count;
        e->burst = r->burst;
        e->seconds = spread_of(r->samples, r->count);
    }
    r->contender->close(r->state);
    measure_free(r);
}

/* ---- Expected results --------------------------------------------------- */

/* The library's own choice of kernels, whatever --plan says. */
static bool compute_expected(const contest *t, const contender *fp32)
{
    void *state = NULL;
    char why[256];
    bool ok;

    if (open_contender(t, fp32, NULL, 1, &state, why) != CONTENDER_OK) {
        message_error("%s: no fp32 results to compare with: %s", t->row->name,
                      why);
        return false;
    }
    ok = fp32->enqueue(state, 0) && fp32->wait(state) &&
         fp32->read(state, 0, &t->expected);
    fp32->close(state);
    return ok;
}

static bool confirm_expected(const contest *t, const contender *fp32)
{
    double error;

    if (!agree_with_loops(&t->data, &t->expected, &error))
        return false;
    if (error <= fp32->bound)
        return true;
    message_error("%s: the library's fp32 results are wrong: relative error "
                  "%.2g to plain loops",
                  t->row->name, error);
    return false;
}

static bool make_expected(contest *t)
{
    const contender *fp32 = columns_find("fp32");

    if (!data_results_new(&t->data.z, t->rules->ops, &t->expected))
        return false;
    if (compute_expected(t, fp32) && confirm_expected(t, fp32))
        return true;
    data_results_free(&t->expected);
    return false;
}

/* ---- The whole ---------------------------------------------------------- */

static double gradients(unsigned ops)
{
    return (ops & CLCONV_OP_DW ? 1 : 0) + (ops & CLCONV_OP_DX ? 1 : 0);
}

/* Of the contender that moves the fewest. */
static double least_bytes(const row *r, const columns *list)
{
    double least = r->entries[0].bytes;

    for (int i = 1; i < list->count; ++i)
        least = fmin(least, r->entries[i].bytes);
    return least;
}

static row begin_row(const contest_rules *rules, const columns *list,
                     const case_row *problem, const shape *z)
{
    row r = {.name = problem->name};

    clconv_desc_format(&problem->desc, r.problem, sizeof(r.problem));
    r.flop = 1e9 * shape_gflop(z) * gradients(rules->ops);
    for (int i = 0; i < list->count; ++i) {
        r.entries[i].error = NAN;
        r.entries[i].bytes =
            data_bytes(z, rules->ops, list->items[i]->half_tensors);
    }
    r.sets = contest_sets(least_bytes(&r, list), (double)rules->cache_bytes,
                          memory_bytes(rules->host), list->count);
    return r;
}

/* Racers that are ready stand in front, so that turns go among them alone. */
static void race(contest *t)
{
    racer ready[COLUMNS_MAX];
    int column[COLUMNS_MAX], count = 0;

    for (int i = 0; i < t->list->count; ++i) {
        t->racers[i] = (racer){.contender = t->list->items[i]};
        prepare(t, i);
        if (t->row->entries[i].status == ENTRY_TIMED) {
            column[count] = i;
            ready[count++] = t->racers[i];
        }
    }
    measure_in_turns(ready, count, &t->rules->measure);
    for (int i = 0; i < count; ++i)
        t->racers[column[i]] = ready[i];
    for (int i = 0; i < t->list->count; ++i)
        conclude(&t->racers[i], &t->row->entries[i]);
}

bool contest_run(const contest_rules *rules, const columns *list,
                 const case_row *problem, row *out)
{
    contest t = {.rules = rules, .list = list, .desc = &problem->desc};
    row r;

    if (!data_new(&problem->desc, &t.data))
        return false;
    r = begin_row(rules, list, problem, &t.data.z);
    t.row = &r;
    if (!make_expected(&t)) {
        data_free(&t.data);
        return false;
    }
    race(&t);
    data_results_free(&t.expected);
    data_free(&t.data);
    *out = r;
    return true;
}
