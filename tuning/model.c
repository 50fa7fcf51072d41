/*
 * The Cholesky factor L of the covariance of what was asked grows by a row a
 * question; so does, for each item, the vector v = L^-1 k(asked, item). With
 * beta = L^-1 (answers - prior) an item's mean is its prior + v * beta, its
 * variance that of the prior - v * v. Nothing is ever factored anew.
 *
 * A question whose answer is not there yet has beta 0: it was as expected. One
 * that failed has a small one: a little worse than expected, so that only where
 * many fail the others are thought less of.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Variances of the logarithm of a time. Values that change a time by a factor
 * of 1.5 are usual, kernels that differ by 3, timings that repeat within a few
 * percent, and cost() may rank the wrong way round. */
#define LEVEL_VARIANCE 1.0   /* of all items together */
#define SLOPE_VARIANCE 1.0   /* of the power of cost() that time grows with */
#define KERNEL_VARIANCE 1.0  /* of a kernel's items together */
#define VALUES_VARIANCE 0.4  /* of what single values do by themselves */
#define JOINT_VARIANCE 0.15  /* of what they do together */
#define NOISE_VARIANCE 0.001 /* of a timing */

/* What is left of the joint part between items that share no value. */
#define JOINT_FLOOR 0.3

/* Deviations from what was expected that a failure counts as. */
#define FAILED_BETA 0.2

typedef enum answer { PENDING, FAILED, TIMED } answer;

typedef struct question {
    int item;
    answer answer;
    double residual; /* log(seconds) - level - prior, if TIMED */
    double beta;
} question;

struct clconv_model {
    const clconv_space *space;
    double *prior;    /* of each item: the logarithm of its cost, centred */
    double *variance; /* of each item, given the questions */
    double *mean;     /* of each item, given the answers */
    int count;
    question asked[CLCONV_MODEL_MOST];
    double *factor;              /* L, rows of CLCONV_MODEL_MOST */
    float *v[CLCONV_MODEL_MOST]; /* of each question, an element of each item */
    bool level_known;
    double level; /* the first answer less its prior */
};

/* ---- Covariance -------------------------------------------------------- */

/* How much two values of a parameter have in common, 0 to 1. Sizes are alike
 * if their ratio is near 1 (0 and 1 are neighbours); names are not alike. */
static double likeness(const clconv_param *p, int a, int b)
{
    if (a == b)
        return 1;
    if (p->names[0])
        return 0;
    return exp(-fabs(log2((a + 1.0) / (b + 1.0))));
}

static double covariance_in_kernel(const clconv_candidate *a,
                                   const clconv_candidate *b)
{
    const clconv_kernel *k = a->kernel;
    double sum = 0, product = 1;
    for (int i = 0; i < k->param_count; ++i) {
        double same = likeness(&k->params[i], a->values[i], b->values[i]);
        sum += same / k->param_count;
        product *= JOINT_FLOOR + (1 - JOINT_FLOOR) * same;
    }
    return KERNEL_VARIANCE + VALUES_VARIANCE * sum + JOINT_VARIANCE * product;
}

static double covariance(const clconv_model *m, int a, int b)
{
    const clconv_candidate *x = &m->space->items[a].candidate;
    const clconv_candidate *y = &m->space->items[b].candidate;
    double sum = LEVEL_VARIANCE + SLOPE_VARIANCE * m->prior[a] * m->prior[b];
    if (x->kernel == y->kernel)
        sum += covariance_in_kernel(x, y);
    return sum;
}

/* ---- Making ------------------------------------------------------------ */

/* A kernel without a cost model is taken to cost what the cheapest does. */
static void set_prior(clconv_model *m)
{
    const clconv_space *s = m->space;
    double least = INFINITY, sum = 0;
    for (int i = 0; i < s->count; ++i)
        if (s->items[i].candidate.cost > 0)
            least = fmin(least, s->items[i].candidate.cost);
    for (int i = 0; i < s->count; ++i) {
        double cost = s->items[i].candidate.cost;
        m->prior[i] = cost > 0 ? log(cost / least) : 0;
        sum += m->prior[i];
    }
    for (int i = 0; i < s->count; ++i)
        m->prior[i] -= sum / s->count;
}

clconv_model *clconv_model_new(const clconv_space *space)
{
    clconv_model *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    size_t items = (size_t)space->count + 1; /* never none */
    m->space = space;
    m->prior = calloc(items, sizeof *m->prior);
    m->variance = calloc(items, sizeof *m->variance);
    m->mean = calloc(items, sizeof *m->mean);
    m->factor = calloc(CLCONV_MODEL_MOST * CLCONV_MODEL_MOST, sizeof *m->factor);
    if (!m->prior || !m->variance || !m->mean || !m->factor) {
        clconv_model_free(m);
        return NULL;
    }
    set_prior(m);
    for (int i = 0; i < space->count; ++i) {
        m->mean[i] = m->prior[i];
        m->variance[i] = covariance(m, i, i);
    }
    return m;
}

void clconv_model_free(clconv_model *m)
{
    if (!m)
        return;
    free(m->prior);
    free(m->variance);
    free(m->mean);
    for (int i = 0; i < m->count; ++i)
        free(m->v[i]);
    free(m->factor);
    free(m);
}

/* ---- Asking ------------------------------------------------------------ */

static double *row_of(const clconv_model *m, int at)
{
    return &m->factor[(size_t)at * CLCONV_MODEL_MOST];
}

/* The new question's row of L: its item's own v, and on the diagonal what is
 * left of its variance, with the noise's. */
static void fill_row(const clconv_model *m, int item, double *row)
{
    for (int i = 0; i < m->count; ++i)
        row[i] = m->v[i][item];
    row[m->count] = sqrt(fmax(m->variance[item], 0) + NOISE_VARIANCE);
}

/* The new question's element of each item's v. */
static void fill_v(const clconv_model *m, int item, const double *row, float *v)
{
    int items = m->space->count;
    for (int i = 0; i < items; ++i)
        v[i] = (float)covariance(m, item, i);
    for (int q = 0; q < m->count; ++q) {
        const float *before = m->v[q];
        float factor = (float)row[q];
        for (int i = 0; i < items; ++i)
            v[i] -= factor * before[i];
    }
    for (int i = 0; i < items; ++i)
        v[i] /= (float)row[m->count];
}

int clconv_model_ask(clconv_model *m, int item)
{
    if (m->count == CLCONV_MODEL_MOST)
        return -1;
    float *v = malloc((size_t)m->space->count * sizeof *v);
    if (!v)
        return -1;
    double *row = row_of(m, m->count);
    fill_row(m, item, row);
    fill_v(m, item, row, v);
    for (int i = 0; i < m->space->count; ++i)
        m->variance[i] -= v[i] * v[i];
    m->v[m->count] = v;
    m->asked[m->count] = (question){.item = item};
    return m->count++;
}

/* ---- Answers ----------------------------------------------------------- */

static double beta_of(const clconv_model *m, int at)
{
    const question *q = &m->asked[at];
    if (q->answer != TIMED)
        return q->answer == FAILED ? FAILED_BETA : 0;
    const double *row = row_of(m, at);
    double sum = q->residual;
    for (int i = 0; i < at; ++i)
        sum -= row[i] * m->asked[i].beta;
    return sum / row[at];
}

static void update_means(clconv_model *m)
{
    int items = m->space->count;
    memcpy(m->mean, m->prior, (size_t)items * sizeof *m->mean);
    for (int q = 0; q < m->count; ++q) {
        double beta = m->asked[q].beta;
        const float *v = m->v[q];
        for (int i = 0; i < items; ++i)
            m->mean[i] += beta * v[i];
    }
}

void clconv_model_answer(clconv_model *m, int asked, double seconds)
{
    question *q = &m->asked[asked];
    q->answer = seconds < INFINITY ? TIMED : FAILED;
    if (q->answer == TIMED) {
        double residual = log(seconds) - m->prior[q->item];
        if (!m->level_known)
            m->level = residual;
        m->level_known = true;
        q->residual = residual - m->level;
    }
    for (int i = asked; i < m->count; ++i)
        m->asked[i].beta = beta_of(m, i);
    update_means(m);
}

void clconv_model_expect(const clconv_model *m, int item, double *mean,
                         double *deviation)
{
    *mean = m->mean[item];
    *deviation = sqrt(fmax(m->variance[item], 0));
}
