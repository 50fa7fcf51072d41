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
    clconv_scope scope;
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

/* A new search of roles[role]. */
static clconv_search *search_role(const exhaustive *e, int role)
{
    clconv_scope scope = e->scope;
    scope.role = roles[role].role;
    return clconv_search_new(&scope);
}

void exhaustive_begin(exhaustive *e, const char *name, const clconv_scope *scope)
{
    e->name = name;
    e->scope = *scope;
    for (int i = 0; i < 2; ++i) {
        clear(&e->tables[i]);
        e->tables[i].search = search_role(e, i);
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

/* What a search of so many trials finds, with the turn to baked programs where
 * a run of that length has it. */
static double search_with(const table *t, clconv_search *s, int trials)
{
    double reached = INFINITY;
    clconv_candidate c;
    for (int told = 0; told < trials; ++told) {
        if (told >= CLCONV_SEARCH_FINISH * trials)
            clconv_search_finish(s);
        if (!clconv_search_next(s, &c))
            break;
        double seconds = look_up(t, &c);
        clconv_search_tell(s, &c, seconds);
        reached = fmin(reached, seconds);
    }
    return reached;
}

/* Percent of the evaluations that a search is given. */
static const int shares[] = {5, 10, 20, 50};

static void replay(const exhaustive *e, int role, FILE *to)
{
    const table *t = &e->tables[role];
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; ++i) {
        clconv_search *s = search_role(e, role);
        int trials = (t->count * shares[i] + 99) / 100;
        double reached = s ? search_with(t, s, trials) : (double)INFINITY;
        clconv_search_free(s);
        fprintf(to, "%s %.1f %% with %d (%d %%)", i ? "," : "",
                100 * best_of(t) / reached, trials, shares[i]);
    }
}

static void replay_role(const exhaustive *e, int role, FILE *to)
{
    const table *t = &e->tables[role];
    int size = t->search ? clconv_search_size(t->search) : 0;
    fprintf(to, "%s %s: %d of %d candidates", e->name, roles[role].name,
            t->count, size);
    if (t->count == size && isfinite(best_of(t))) {
        fputs("; the search reaches", to);
        replay(e, role, to);
        fputs(" of the evaluations", to);
    }
    fputs("\n", to);
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
