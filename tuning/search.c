/*
 * What the model expects of an item (model.h), less a part of its doubt, ranks
 * the items that were not asked for: the least is next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Deviations that are taken off the mean: 0 would ask only for what looks best
 * and stay near it. */
#define CURIOSITY 2.5

/* So many of the fastest have their baked twins tried before other ones. */
#define TWINS 3

/* A kernel's defaults come first, unless cost() says that they take so many
 * times the cheapest's: a trial of these may cost as much as many others, so it
 * waits until so many are told. */
#define FAR 16.0
#define FAR_AFTER 32

/* More kernels than a role has. */
#define MAX_KERNELS 16

typedef enum state { UNASKED, ASKED, TOLD } state;

typedef struct entry {
    state state;
    int question; /* the model's */
    double seconds;
} entry;

struct clconv_search {
    const clconv_problem *problem;
    const clconv_device *device;
    clconv_space space;
    clconv_model *model;
    entry *entries; /* of each item */
    int *ranking;   /* the items that were told, fastest first */
    int told;
    int defaults[MAX_KERNELS]; /* cheapest first */
    int default_count;
    bool finishing;
};

/* ---- Making ------------------------------------------------------------ */

static double cost_of(const clconv_search *s, int item)
{
    return s->space.items[item].candidate.cost;
}

/* Sorts a kernel's defaults in, behind all of the same cost. */
static void add_default(clconv_search *s, int item)
{
    if (item < 0 || s->default_count == MAX_KERNELS)
        return;
    int at = s->default_count++;
    for (; at > 0 && cost_of(s, s->defaults[at - 1]) > cost_of(s, item); --at)
        s->defaults[at] = s->defaults[at - 1];
    s->defaults[at] = item;
}

static void find_defaults(clconv_search *s)
{
    for (int i = 0; i < s->space.count; ++i) {
        const clconv_kernel *k = s->space.items[i].candidate.kernel;
        if (i > 0 && s->space.items[i - 1].candidate.kernel == k)
            continue;
        int values[CLCONV_MAX_PARAMS];
        k->defaults(s->problem, s->device, values);
        add_default(s, clconv_space_find(&s->space, k, values));
    }
}

clconv_search *clconv_search_new(const clconv_scope *scope)
{
    clconv_search *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->problem = scope->problem;
    s->device = scope->device;
    if (clconv_space_fill(scope, &s->space)) {
        size_t items = (size_t)s->space.count + 1; /* never none */
        s->entries = calloc(items, sizeof *s->entries);
        s->ranking = calloc(items, sizeof *s->ranking);
        s->model = clconv_model_new(&s->space);
    }
    if (!s->entries || !s->ranking || !s->model) {
        clconv_search_free(s);
        return NULL;
    }
    find_defaults(s);
    return s;
}

void clconv_search_free(clconv_search *s)
{
    if (!s)
        return;
    clconv_model_free(s->model);
    free(s->entries);
    free(s->ranking);
    clconv_space_free(&s->space);
    free(s);
}

int clconv_search_size(const clconv_search *s)
{
    return s->space.count;
}

void clconv_search_item(const clconv_search *s, int index, clconv_candidate *out)
{
    *out = s->space.items[index].candidate;
}

/* ---- Asking ------------------------------------------------------------ */

static bool unasked(const clconv_search *s, int item)
{
    return item >= 0 && s->entries[item].state == UNASKED;
}

static bool is_far(const clconv_search *s, int item)
{
    return cost_of(s, item) > FAR * cost_of(s, s->defaults[0]);
}

static int next_default(const clconv_search *s)
{
    for (int i = 0; i < s->default_count; ++i) {
        int item = s->defaults[i];
        if (unasked(s, item) && (s->told >= FAR_AFTER || !is_far(s, item)))
            return item;
    }
    return -1;
}

/* The baked twin of one of the fastest. */
static int next_twin(const clconv_search *s)
{
    for (int i = 0, twins = 0; i < s->told && twins < TWINS; ++i) {
        int twin = clconv_space_baked_twin(&s->space, s->ranking[i]);
        if (unasked(s, twin))
            return twin;
        twins += twin >= 0;
    }
    return -1;
}

/* Of the items that bake the problem in, or of the others. */
static int most_promising(const clconv_search *s, bool baked)
{
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < s->space.count; ++i) {
        double mean, deviation;
        if (!unasked(s, i) || s->space.items[i].baked != baked)
            continue;
        clconv_model_expect(s->model, i, &mean, &deviation);
        if (mean - CURIOSITY * deviation < least) {
            least = mean - CURIOSITY * deviation;
            best = i;
        }
    }
    return best;
}

static int choose(clconv_search *s)
{
    int item = next_default(s);
    if (item < 0 && !s->finishing)
        item = most_promising(s, false);
    if (item < 0)
        item = next_twin(s);
    if (item < 0)
        item = most_promising(s, true);
    if (item < 0)
        item = most_promising(s, false);
    return item;
}

bool clconv_search_next(clconv_search *s, clconv_candidate *out)
{
    int item = choose(s);
    if (item < 0)
        return false;
    s->entries[item] = (entry){
        .state = ASKED,
        .question = clconv_model_ask(s->model, item),
    };
    *out = s->space.items[item].candidate;
    return true;
}

void clconv_search_finish(clconv_search *s)
{
    s->finishing = true;
}

/* ---- Telling ----------------------------------------------------------- */

/* Is item a faster than b, or as fast and before it in the space? */
static bool before(const clconv_search *s, int a, int b)
{
    double x = s->entries[a].seconds, y = s->entries[b].seconds;
    return x < y || (x == y && a < b);
}

static void rank(clconv_search *s, int item)
{
    int at = s->told++;
    for (; at > 0 && before(s, item, s->ranking[at - 1]); --at)
        s->ranking[at] = s->ranking[at - 1];
    s->ranking[at] = item;
}

void clconv_search_tell(clconv_search *s, const clconv_candidate *c,
                        double seconds)
{
    int item = clconv_space_find(&s->space, c->kernel, c->values);
    if (item < 0 || s->entries[item].state == TOLD)
        return;
    entry *e = &s->entries[item];
    if (e->state == UNASKED)
        e->question = clconv_model_ask(s->model, item);
    if (e->question >= 0)
        clconv_model_answer(s->model, e->question, seconds);
    e->state = TOLD;
    e->seconds = seconds;
    rank(s, item);
}

int clconv_search_told(const clconv_search *s)
{
    return s->told;
}

int clconv_search_best(const clconv_search *s, int count, clconv_candidate *out)
{
    int found = 0;
    while (found < count && found < s->told &&
           s->entries[s->ranking[found]].seconds < INFINITY) {
        out[found] = s->space.items[s->ranking[found]].candidate;
        ++found;
    }
    return found;
}

/* ---- Text -------------------------------------------------------------- */

void clconv_candidate_format(const clconv_candidate *c, clconv_text *out)
{
    const clconv_kernel *k = c->kernel;
    clconv_text_printf(out, "%s%s", k->name, k->param_count ? ":" : "");
    clconv_param_format(k->params, k->param_count, c->values, out);
}

/* Values that the plan leaves open are the kernel's defaults. */
static int find_choice(const clconv_search *s, const clconv_choice *choice)
{
    int values[CLCONV_MAX_PARAMS];
    choice->kernel->defaults(s->problem, s->device, values);
    for (int i = 0; i < choice->kernel->param_count; ++i)
        if (choice->given[i])
            values[i] = choice->values[i];
    return clconv_space_find(&s->space, choice->kernel, values);
}

bool clconv_candidate_parse(const clconv_search *s, const char *plan,
                            clconv_candidate *out)
{
    clconv_choice choices[CLCONV_ROLES];
    if (!s->space.count || clconv_choices_parse(plan, choices) != CLCONV_OK)
        return false;
    clconv_role role = s->space.items[0].candidate.kernel->role;
    int item = -1;
    if (choices[role].kernel)
        item = find_choice(s, &choices[role]);
    if (item < 0)
        return false;
    *out = s->space.items[item].candidate;
    return true;
}
