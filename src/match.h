/*
 * Which tuned records may serve a problem on a device, and which of them best.
 *
 *     clconv_matching m = {.problem = &p, .device = &d, .ops = ops};
 *     for each record
 *         clconv_matching_add(&m, record);
 *     ... m.best[0] to m.best[m.count - 1] ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_MATCH_H
#define CLCONV_MATCH_H

#include "record.h"

/* A record and why it may serve: a static text such as "tuned", "tuned under
 * another driver", "tuned for a problem like this". */
typedef struct clconv_match {
    const clconv_record *record;
    clconv_nearness nearness;
    double distance; /* 0: this very problem */
    const char *why;
} clconv_match;

#define CLCONV_MAX_MATCHES 8

typedef struct clconv_matching {
    const clconv_problem *problem;
    const clconv_device *device;
    unsigned ops; /* all of them must be among a record's */
    int count;
    clconv_match best[CLCONV_MAX_MATCHES]; /* the best first */
    double score[CLCONV_MAX_MATCHES];
} clconv_matching;

/* Of equals, the one that came first stays before the other. */
void clconv_matching_add(clconv_matching *m, const clconv_record *record);

/* This very problem, on this device with this driver. */
bool clconv_match_is_exact(const clconv_match *match);

#endif
