/*
 * What the benchmark times: something that computes dW, db and dX of one
 * problem, from the caller's plain tensors to the caller's plain tensors,
 * reorders, packing and casts included. One contender is one contender_*.c
 * and one row of contender_table.c.
 *
 * A run of a problem:
 *
 *     c->open(&setup, &state)   buffers for setup.sets sets, programs, plans
 *     c->enqueue(state, set)    one backward; may return before it is done
 *     c->wait(state)            all that was enqueued is done
 *     c->read(state, set, out)  the results, to check them against each other
 *     c->close(state)
 *
 * Each set has tensors of its own, and the benchmark walks through the sets,
 * so that no call finds its inputs in a cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_H
#define CONTENDER_H

#include "host.h"

/* Why there is no time. */
typedef enum contender_status {
    CONTENDER_OK,
    CONTENDER_UNSUPPORTED, /* not for this problem or device */
    CONTENDER_FAILED       /* it should have worked */
} contender_status;

/* fp32 tensors of one set on the host, in the description's layout. */
typedef struct contender_data {
    const float *x, *w, *dy;
} contender_data;

typedef struct contender_results {
    float *dw, *db, *dx; /* in the description's layout; NULL: not asked for */
} contender_results;

typedef struct contender_setup {
    host *host;              /* device, context, in-order queue */
    const clconv_desc *desc; /* fp32 tensors; math and scale are clconv's */
    unsigned ops;            /* clconv_op mask: what is computed */
    int sets;
    contender_data data; /* the values of every set */
    const char *plan;    /* clconv's plan string; NULL: its choice */
} contender_setup;

typedef struct contender {
    const char *name;    /* the column: "mixed", "fp32", "clblast", "onednn" */
    const char *summary; /* for --help and the legend */

    /* "oneDNN 2.6.3"; NULL: this program was built without it. */
    const char *(*version)(void);
    const char *missing; /* why there is none: "no libclblast-dev", or NULL */

    /* Relative error, in the Frobenius norm, of right results: against fp32
     * gradients of normal x and w, and of normal dy times 1e-3. */
    double bound;
    bool half_tensors; /* the caller's X, W, dY and dX are fp16, the last two
                        * times 2^CLCONV_SCALE_LOG2_DEFAULT */
    bool by_request;   /* a column only where --only or a mode names it */

    /* On anything but OK there is no state, and why is a sentence. */
    contender_status (*open)(const contender_setup *setup, void **state,
                             char why[256]);
    bool (*enqueue)(void *state, int set);
    bool (*wait)(void *state);
    bool (*read)(void *state, int set, const contender_results *out);
    void (*close)(void *state); /* NULL: no-op */

    /* Which variant open() chose: of oneDNN "reorder" or "nchw", of clconv the
     * plan string. Valid until close(). NULL: has none. */
    const char *(*variant)(const void *state);
} contender;

/* In the order of the columns; those that were not built have no version. */
extern const contender *const contenders[];
extern const int contender_count;

#endif
