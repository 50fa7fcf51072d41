/*
 * One NaN and one Inf in dY, then one NaN in X and one in W: they reach what
 * an in-bounds tap reaches and nothing else. Where they meet only padding
 * (an implementation may multiply it by 0, or leave it out) either is right.
 *
 * The reference of the normal data serves as it is: an element that has to be
 * finite takes no product of the replaced inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judgements.h"
#include "message.h"
#include "random.h"
#include "taps.h"

/* ---- Marks -------------------------------------------------------------- */

static void marks_free(marks *m)
{
    free(m->dw);
    free(m->db);
    free(m->dx);
}

static bool marks_new(const shape *z, marks *out)
{
    marks m = {.dw = calloc(shape_w_count(z), 1),
               .db = calloc((size_t)z->k, 1),
               .dx = calloc(shape_x_count(z), 1)};

    if (!m.dw || !m.db || !m.dx) {
        message_error("out of memory");
        marks_free(&m);
        return false;
    }
    *out = m;
    return true;
}

typedef struct marker {
    uint8_t *marks;
    uint8_t flag; /* for a tap within bounds */
} marker;

static void visit_mark(void *user, size_t output, size_t other)
{
    const marker *m = user;

    m->marks[output] |= other == TAPS_PADDING ? (uint8_t)JUDGE_ALLOWED : m->flag;
}

static void mark_dy(const shape *z, size_t index, uint8_t flag, marks *m)
{
    m->db[index / (size_t)(z->p * z->q) % (size_t)z->k] |= flag;
    taps_dy_to_dw(z, index, visit_mark, &(marker){m->dw, flag});
    taps_dy_to_dx(z, index, visit_mark, &(marker){m->dx, flag});
}

/* ---- Judging ------------------------------------------------------------ */

typedef struct marked {
    const dataset *data;
    const marks *marks;
} marked;

static void judge_marked(const occasion *o, const outputs *got, const void *user)
{
    const marked *m = user;
    tolerances t = row_tolerances(o->check, o->check->setup.desc.scale_log2);

    row_judge(o, got, m->data, &t, m->marks);
}

/* ---- dY ----------------------------------------------------------------- */

/* An element of dy in another filter than the given one, if there is one. */
static size_t place_elsewhere(const shape *z, size_t index,
                              random_source *random)
{
    size_t area = (size_t)(z->p * z->q), filters = (size_t)z->k;
    size_t k = index / area % filters;
    size_t other = (k + (size_t)(filters > 1)) % filters;
    size_t n = (size_t)random_below(random, (uint64_t)z->n);

    return (n * filters + other) * area +
           (size_t)random_below(random, (uint64_t)area);
}

static bool judge_dy(row *r, const dataset *normal)
{
    const shape *z = &r->z;
    random_source random = random_seeded(r->seed + 2);
    size_t nan_at = (size_t)random_below(&random, shape_dy_count(z));
    size_t inf_at = place_elsewhere(z, nan_at, &random);
    float *dy = dataset_copy_floats(normal->dy, shape_dy_count(z));
    const run_inputs in = {.x = normal->x, .w = normal->w, .dy = dy};
    marks m = {NULL, NULL, NULL};
    bool ok = dy && marks_new(z, &m);

    if (ok) {
        dy[inf_at] = INFINITY;
        mark_dy(z, inf_at, JUDGE_INF, &m);
        dy[nan_at] = NAN;
        mark_dy(z, nan_at, JUDGE_NAN, &m);
        row_each_check(r, ROW_ALL_MATHS, "edges, NaN and Inf in dY", &in,
                       judge_marked, &(marked){normal, &m});
    }
    marks_free(&m);
    free(dy);
    return ok;
}

/* ---- X and W ------------------------------------------------------------ */

/* X is read for dW alone and W for dX alone: one call serves both. */
static bool judge_x_and_w(row *r, const dataset *normal)
{
    const shape *z = &r->z;
    random_source random = random_seeded(r->seed + 3);
    size_t x_at = (size_t)random_below(&random, shape_x_count(z));
    size_t w_at = (size_t)random_below(&random, shape_w_count(z));
    float *x = dataset_copy_floats(normal->x, shape_x_count(z));
    float *w = dataset_copy_floats(normal->w, shape_w_count(z));
    const run_inputs in = {.x = x, .w = w, .dy = normal->dy};
    marks m = {NULL, NULL, NULL};
    bool ok = x && w && marks_new(z, &m);

    if (ok) {
        x[x_at] = NAN;
        taps_x_to_dw(z, x_at, visit_mark, &(marker){m.dw, JUDGE_NAN});
        w[w_at] = NAN;
        taps_w_to_dx(z, w_at, visit_mark, &(marker){m.dx, JUDGE_NAN});
        row_each_check(r, ROW_ALL_MATHS, "edges, NaN in X and in W", &in,
                       judge_marked, &(marked){normal, &m});
    }
    marks_free(&m);
    free(x);
    free(w);
    return ok;
}

bool judgement_nonfinite(row *r, const dataset *normal)
{
    return judge_dy(r, normal) && judge_x_and_w(r, normal);
}
