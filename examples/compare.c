/*
 * Each worker takes every threads-th image, so that the sums, and with them
 * the printed digits, depend on the number of cores alone. dx is compared
 * image by image and never kept: at 112 x 112 pixels it would fill 200 MB in
 * double. dw and db are added over the workers at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compare.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "conv_fp64.h"
#include "message.h"

#define THREADS_MAX 64

typedef struct worker {
    pthread_t thread;
    conv_shape shape;
    conv_inputs in;
    const conv_gradients *got;
    size_t count;
    size_t first, step; /* its images: first, first + step, ... */
    conv_fp64 truth;
    agreement_sums dx[COMPARE_MAX];
} worker;

/* ---- Agreement ------------------------------------------------------ */

void agreement_add(agreement_sums *sums, const float *got, const double *truth,
                   size_t count)
{
    agreement_sums s = *sums;

    for (size_t i = 0; i < count; ++i) {
        double g = (double)got[i], t = truth[i];

        s.product += g * t;
        s.got += g * g;
        s.truth += t * t;
        s.difference += (g - t) * (g - t);
    }
    *sums = s;
}

agreement agreement_of(const agreement_sums *sums)
{
    return (agreement){
        .cosine = sums->product / (sqrt(sums->got) * sqrt(sums->truth)),
        .error = sqrt(sums->difference / sums->truth),
    };
}

static agreement agreement_between(const float *got, const double *truth,
                                   size_t count)
{
    agreement_sums sums = {0};

    agreement_add(&sums, got, truth, count);
    return agreement_of(&sums);
}

/* ---- Workers -------------------------------------------------------- */

static void *work(void *argument)
{
    worker *w = argument;
    size_t plane = w->shape.size * w->shape.size;
    size_t x_image = w->shape.c * plane, dy_image = w->shape.k * plane;

    for (size_t n = w->first; n < w->shape.n; n += w->step) {
        conv_fp64_add_image(&w->truth, w->in.x + n * x_image,
                            w->in.dy + n * dy_image);
        for (size_t i = 0; i < w->count; ++i)
            agreement_add(&w->dx[i], w->got[i].dx + n * x_image, w->truth.dx,
                          x_image);
    }
    return NULL;
}

static size_t thread_count(size_t images)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = cores > 1 ? (size_t)cores : 1;

    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    return threads < images || images == 0 ? threads : images;
}

/* Starts workers until one cannot be started; returns how many run. */
static size_t start(worker *workers, size_t threads)
{
    for (size_t i = 0; i < threads; ++i) {
        worker *w = &workers[i];

        if (!conv_fp64_open(w->shape, w->in.w, &w->truth))
            return i;
        if (pthread_create(&w->thread, NULL, work, w)) {
            conv_fp64_close(&w->truth);
            return i;
        }
    }
    return threads;
}

static void add_into(double *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        to[i] += from[i];
}

/* Brings the sums of one worker into those of the first. */
static void merge(worker *to, const worker *from)
{
    add_into(to->truth.dw, from->truth.dw, conv_w_count(to->shape));
    add_into(to->truth.db, from->truth.db, to->shape.k);
    add_into(to->truth.db_abs, from->truth.db_abs, to->shape.k);
    for (size_t i = 0; i < to->count; ++i) {
        to->dx[i].product += from->dx[i].product;
        to->dx[i].got += from->dx[i].got;
        to->dx[i].truth += from->dx[i].truth;
        to->dx[i].difference += from->dx[i].difference;
    }
}

/* ---- Result --------------------------------------------------------- */

static double norm(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; ++i)
        sum += values[i] * values[i];
    return sqrt(sum);
}

static comparison conclude(const worker *w, size_t i)
{
    const conv_fp64 *truth = &w->truth;
    size_t k = w->shape.k;
    double size = norm(truth->db, k) / norm(truth->db_abs, k);
    agreement db = agreement_between(w->got[i].db, truth->db, k);

    return (comparison){
        .dw = agreement_between(w->got[i].dw, truth->dw, conv_w_count(w->shape)),
        .db = db,
        .dx = agreement_of(&w->dx[i]),
        .db_size = size,
        .db_error = db.error * size,
    };
}

bool compare_gradients(conv_shape shape, conv_inputs in,
                       const conv_gradients *got, size_t count, comparison *out)
{
    size_t threads = thread_count(shape.n), running;
    worker *workers = calloc(threads, sizeof(*workers));

    if (!workers) {
        message_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < threads; ++i)
        workers[i] = (worker){.shape = shape,
                              .in = in,
                              .got = got,
                              .count = count,
                              .first = i,
                              .step = threads};
    running = start(workers, threads);
    for (size_t i = 0; i < running; ++i)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 1; i < running; ++i)
        merge(&workers[0], &workers[i]);
    for (size_t i = 0; running == threads && i < count; ++i)
        out[i] = conclude(&workers[0], i);
    for (size_t i = 0; i < running; ++i)
        conv_fp64_close(&workers[i].truth);
    free(workers);
    if (running < threads)
        message_error("no memory or threads for the fp64 reference");
    return running == threads;
}
