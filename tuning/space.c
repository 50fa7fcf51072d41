/*
 * The combinations of a kernel's values are the numbers of a mixed radix, one
 * digit a parameter: that number is an item's place, which sorts the space and
 * finds an item again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "space.h"

#include <stdlib.h>
#include <string.h>

#include "splitmix.h"

/* ---- Places ------------------------------------------------------------ */

/* At most CLCONV_MAX_VALUES to the power of CLCONV_MAX_PARAMS: 36 bits. */
static uint64_t combinations(const clconv_kernel *k)
{
    uint64_t count = 1;
    for (int i = 0; i < k->param_count; ++i)
        count *= (uint64_t)k->params[i].count;
    return count;
}

static int digit_of(const clconv_param *p, int value)
{
    for (int i = 0; i < p->count; ++i)
        if (p->values[i] == value)
            return i;
    return -1;
}

/* False: a value that the parameter does not have. */
static bool place_of(const clconv_kernel *k, const int *values, uint64_t *out)
{
    uint64_t place = 0;
    for (int i = 0; i < k->param_count; ++i) {
        int digit = digit_of(&k->params[i], values[i]);
        if (digit < 0)
            return false;
        place = place * (uint64_t)k->params[i].count + (uint64_t)digit;
    }
    *out = place;
    return true;
}

static void values_at(const clconv_kernel *k, uint64_t place, int *values)
{
    for (int i = k->param_count - 1; i >= 0; --i) {
        uint64_t count = (uint64_t)k->params[i].count;
        values[i] = k->params[i].values[place % count];
        place /= count;
    }
}

/* ---- Filling ----------------------------------------------------------- */

typedef struct filler {
    const clconv_scope *scope;
    clconv_choice within; /* its kernel NULL: all */
    clconv_space space;
    int capacity;
} filler;

/* A place for one more item, or NULL: no memory. */
static clconv_space_item *grow(filler *f)
{
    if (f->space.count == f->capacity) {
        int capacity = f->capacity ? 2 * f->capacity : 256;
        void *items =
            realloc(f->space.items, sizeof *f->space.items * (size_t)capacity);
        if (!items)
            return NULL;
        f->space.items = items;
        f->capacity = capacity;
    }
    return &f->space.items[f->space.count];
}

static bool is_within(const clconv_choice *within, const clconv_candidate *c)
{
    for (int i = 0; within->kernel && i < c->kernel->param_count; ++i)
        if (within->given[i] && within->values[i] != c->values[i])
            return false;
    return true;
}

static bool is_promising(const filler *f, const clconv_candidate *c)
{
    const clconv_task task = {.problem = f->scope->problem,
                              .device = f->scope->device,
                              .values = c->values};
    return !c->kernel->promising || c->kernel->promising(&task);
}

/* Adds a promising combination if the planner takes it. False: no memory. */
static bool add(filler *f, int row, uint64_t place)
{
    const clconv_kernel *k = clconv_kernels[row];
    clconv_candidate c = {.kernel = k};
    clconv_step step;
    values_at(k, place, c.values);
    if (!is_within(&f->within, &c) ||
        !clconv_planner_step(f->scope->problem, f->scope->device, k, c.values,
                             &step, &c.cost) ||
        !is_promising(f, &c))
        return true;
    clconv_space_item *item = grow(f);
    if (!item)
        return false;
    *item = (clconv_space_item){
        .candidate = c,
        .row = row,
        .place = place,
        .copies = step.copies,
        .baked = clconv_kernel_bakes(k, c.values),
    };
    ++f->space.count;
    return true;
}

/* All combinations, or one at random of each of as many equal stretches as may
 * be tried, so that they stay sorted and none comes twice. */
static bool add_kernel(filler *f, int row)
{
    uint64_t seed = f->scope->seed;
    uint64_t all = combinations(clconv_kernels[row]);
    uint64_t count = all < CLCONV_SPACE_MOST ? all : CLCONV_SPACE_MOST;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t first = all * i / count, next = all * (i + 1) / count;
        uint64_t place = first + clconv_random(&seed) % (next - first);
        if (!add(f, row, place))
            return false;
    }
    return true;
}

static bool is_wanted(const filler *f, const clconv_kernel *k)
{
    return k->role == f->scope->role &&
           (!f->within.kernel || f->within.kernel == k) &&
           k->covers(f->scope->problem, f->scope->device);
}

bool clconv_space_fill(const clconv_scope *scope, clconv_space *out)
{
    clconv_choice choices[CLCONV_ROLES];
    *out = (clconv_space){0};
    if (clconv_choices_parse(scope->within, choices) != CLCONV_OK)
        return false;
    filler f = {.scope = scope, .within = choices[scope->role]};
    for (int row = 0; row < clconv_kernel_count; ++row) {
        if (!is_wanted(&f, clconv_kernels[row]) || add_kernel(&f, row))
            continue;
        clconv_space_free(&f.space);
        return false;
    }
    *out = f.space;
    return true;
}

void clconv_space_free(clconv_space *s)
{
    free(s->items);
    *s = (clconv_space){0};
}

/* ---- Finding ----------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const clconv_space_item *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int row_of(const clconv_kernel *kernel)
{
    int row = 0;
    while (row < clconv_kernel_count && clconv_kernels[row] != kernel)
        ++row;
    return row;
}

int clconv_space_find(const clconv_space *s, const clconv_kernel *kernel,
                      const int *values)
{
    clconv_space_item key = {.row = row_of(kernel)};
    if (!s->count || !place_of(kernel, values, &key.place))
        return -1;
    const clconv_space_item *found =
        bsearch(&key, s->items, (size_t)s->count, sizeof key, compare);
    return found ? (int)(found - s->items) : -1;
}

/* The same combination with another value is another place: the one whose
 * values bake the shape. */
int clconv_space_baked_twin(const clconv_space *s, int index)
{
    const clconv_candidate *c = &s->items[index].candidate;
    if (s->items[index].baked)
        return -1;
    for (int i = 0; i < c->kernel->param_count; ++i)
        for (int v = 0; v < c->kernel->params[i].count; ++v) {
            int values[CLCONV_MAX_PARAMS];
            memcpy(values, c->values, sizeof values);
            values[i] = c->kernel->params[i].values[v];
            if (clconv_kernel_bakes(c->kernel, values))
                return clconv_space_find(s, c->kernel, values);
        }
    return -1;
}
