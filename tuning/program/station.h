/*
 * What every command works with: the device's facts, the cache directory, the
 * records in it and, for those that measure, journal and workers.
 *
 *     station s;
 *     if (station_open(&options, &s) == EXIT_SUCCESS) ...
 *     if (station_find_device(&s) == EXIT_SUCCESS && station_start(&s, argv[0]))
 *     station_close(&s);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_STATION_H
#define CLCONV_TUNE_STATION_H

#include "check.h"
#include "journal.h"
#include "options.h"
#include "places.h"
#include "pool.h"
#include "trial_fields.h"
#include "tunedb.h"

#define STATION_MAX_SETTINGS 8

typedef struct station {
    const tune_options *options;
    places places;
    clconv_device device; /* zero before station_find_device() */
    char label[520];      /* "platform / device", for --device */
    bool is_cpu;
    bool compiles_late; /* see clconv_query_compiles_late() */
    char *prefix;       /* of this device's programs in the cache directory */
    clconv_tunedb *records;

    /* Of station_start(). */
    int jobs; /* workers there are */
    journal *journal;
    pool *workers;
    char *program, *check_program; /* this one's file, and clconv-check */
    char *check_log;
    /* Of processes that try candidates, so that what these are compiled to
     * does not fill the user's caches; ends with NULL. */
    char *settings[STATION_MAX_SETTINGS];
} station;

/* The library's warnings as lines on stderr. */
extern const clconv_log station_log;

/* Finds the cache directory and opens the records. An exit status; after a
 * failure, said on stderr, there is nothing to close. */
int station_open(const tune_options *o, station *out);

/* Fills device, label and what follows them. */
int station_find_device(station *s);

/* Makes ready for measuring. False with a line on stderr. argv0: how this
 * program was called. */
bool station_start(station *s, const char *argv0);

/* Judges a plan that was timed: by clconv-check, or, where that gives no
 * judgement, by a worker, with a note on stderr. */
void station_judge(station *s, const clconv_problem *problem, unsigned ops,
                   const char *plan, clconv_trial *trial);

/* Compiles plans, in processes of their own, into the user's caches, where
 * later processes find them. False with a line on stderr for each that is not
 * there. */
bool station_keep_programs(const station *s, const pool_task *tasks, int count);

void station_close(station *s);

#endif
