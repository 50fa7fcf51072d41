/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exhaustive.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "message.h"

typedef struct timed {
    uint64_t key; /* of the candidate: a hash of its text */
    double seconds;
} timed;

/* Of one role of one problem. */
typedef struct table {
    clconv_search *search; /* names candidates; NULL: nothing yet */
    timed *rows;
    int count, capacity;
} table;

struct exhaustive {
    FILE *file;
    const char *path;
    const char *name;
    const clconv_problem *problem;
    const clconv_device *device;
    uint64_t seed;
    table tables[2];
};

static const struct {
    clconv_stage stage;
    clconv_role role;
    const char *name;
} roles[2] = {
    {CLCONV_STAGE_BWD_DATA, CLCONV_ROLE_BWD_DATA, "bwd_data"},
    {CLCONV_STAGE_BWD_WEIGHT, CLCONV_ROLE_BWD_WEIGHT, "bwd_weight"},
};

/* ---- Collecting -------------------------------------------------------- */

static void clear(table *t)
{
    free(t->rows);
    clconv_search_free(t->search);
    *t = (table){0};
}

exhaustive *exhaustive_open(const char *path)
{
    exhaustive *e = calloc(1, sizeof *e);
    FILE *file = e ? fopen(path, "w") : NULL;
    if (!file) {
        message_error("--exhaustive %s: %s", path, strerror(errno));
        free(e);
        return NULL;
    }
    e->file = file;
    e->path = path;
    fputs("problem,role,plan,outcome,seconds\n", file);
    return e;
}

void exhaustive_begin(exhaustive *e, const char *name,
                      const clconv_problem *problem,
                      const clconv_device *device, uint64_t seed)
{
    e->name = name;
    e->problem = problem;
    e->device = device;
    e->seed = seed;
    for (int i = 0; i < 2; ++i) {
        clear(&e->tables[i]);
        e->tables[i].search =
            clconv_search_new(problem, device, roles[i].role, seed);
    }
}

static uint64_t make_key(const clconv_text *candidate)
{
    return candidate->failed
               ? 0
               : clconv_hash_bytes(candidate->data, candidate->length).low;
}

static const timed *find(const table *t, uint64_t key)
{
    for (int i = 0; i < t->count; ++i)
        if (t->rows[i].key == key)
            return &t->rows[i];
    return NULL;
}

static bool add(table *t, uint64_t key, double seconds)
{
    if (t->count == t->capacity) {
        int capacity = t->capacity ? 2 * t->capacity : 256;
        timed *more = realloc(t->rows, (size_t)capacity * sizeof *more);
        if (!more)
            return false;
        t->rows = more;
        t->capacity = capacity;
    }
    t->rows[t->count++] = (timed){key, seconds};
    return true;
}

/* The role's part of the plan is the candidate. */
static void add_to_role(exhaustive *e, int role, const char *plan,
                        const clconv_trial *trial)
{
    table *t = &e->tables[role];
    bool is_ok = trial->outcome == CLCONV_TRIAL_OK;
    double seconds = is_ok ? trial->seconds : (double)INFINITY;
    clconv_candidate c;
    clconv_text text = CLCONV_TEXT_EMPTY;
    if (!t->search || !clconv_candidate_parse(t->search, plan, &c))
        return;
    clconv_candidate_format(&c, &text);
    uint64_t key = make_key(&text);
    if (!text.failed && !find(t, key) && add(t, key, seconds))
        fprintf(e->file, "%s,%s,\"%s\",%s,%.9g\n", e->name, roles[role].name,
                text.data, clconv_outcome_word(trial->outcome), seconds);
    clconv_text_free(&text);
}

void exhaustive_add(exhaustive *e, clconv_stage stage, const char *plan,
                    const clconv_trial *trial)
{
    for (int i = 0; i < 2; ++i)
        if (roles[i].stage == stage)
            add_to_role(e, i, plan, trial);
}

/* ---- Replaying --------------------------------------------------------- */

static double best_of(const table *t)
{
    double best = INFINITY;
    for (int i = 0; i < t->count; ++i)
        best = fmin(best, t->rows[i].seconds);
    return best;
}

/* What the candidate took; INFINITY if that is not known. */
static double look_up(const table *t, const clconv_candidate *c)
{
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_candidate_format(c, &text);
    const timed *row = find(t, make_key(&text));
    clconv_text_free(&text);
    return row ? row->seconds : (double)INFINITY;
}

/* Percent of the evaluations at which the search is looked at. */
static const int shares[] = {5, 10, 20, 50};

static void replay(const table *t, clconv_search *s, FILE *to)
{
    double best = best_of(t), reached = INFINITY;
    clconv_candidate c;
    int told = 0;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; ++i) {
        int wanted = (t->count * shares[i] + 99) / 100;
        for (; told < wanted && clconv_search_next(s, &c); ++told) {
            double seconds = look_up(t, &c);
            clconv_search_tell(s, &c, seconds);
            reached = fmin(reached, seconds);
        }
        fprintf(to, "%s %.1f %% with %d %%", i ? "," : "", 100 * best / reached,
                shares[i]);
    }
}

static void replay_role(const exhaustive *e, int role, FILE *to)
{
    const table *t = &e->tables[role];
    clconv_search *s =
        clconv_search_new(e->problem, e->device, roles[role].role, e->seed);
    int size = s ? clconv_search_size(s) : 0;
    fprintf(to, "%s %s: %d of %d candidates", e->name, roles[role].name,
            t->count, size);
    if (t->count == size && isfinite(best_of(t))) {
        fputs("; the search reaches", to);
        replay(t, s, to);
        fputs(" of the evaluations", to);
    }
    fputs("\n", to);
    clconv_search_free(s);
}

void exhaustive_replay(const exhaustive *e, FILE *to)
{
    for (int i = 0; i < 2; ++i)
        replay_role(e, i, to);
}

bool exhaustive_close(exhaustive *e)
{
    if (!e)
        return true;
    bool ok = !ferror(e->file);
    ok = fclose(e->file) == 0 && ok;
    if (!ok)
        message_error("--exhaustive %s: cannot be written", e->path);
    for (int i = 0; i < 2; ++i)
        clear(&e->tables[i]);
    free(e);
    return ok;
}
