/*
 * Where the program keeps what in the cache directory:
 *
 *     tune-1/journal-HASH.txt      a device's journal
 *     tune-1/run-HOST-PROCESS/     of one run, removed at its end: workers'
 *                                  logs and what candidates were compiled to
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_PLACES_H
#define CLCONV_TUNE_PLACES_H

#include <stdbool.h>

typedef struct places {
    char *cache; /* the cache directory */
    char *tune;  /* its tune-1 */
    char *run;   /* NULL: not made */
    char *programs; /* in run: what candidates are compiled to */
} places;

/* option: --cache-dir, NULL: as the library finds it. False with a line on
 * stderr. One that cannot be written will do for those that only read. */
bool places_open(const char *option, places *out);

/* Makes the run's directories, and removes those of runs on this host that were
 * killed. False with a line on stderr. */
bool places_begin_run(places *p);

/* Removes the run's directory with all that is in it. */
void places_close(places *p);

/* "DIR/NAME", yours to free(); NULL: no memory. */
char *places_join(const char *dir, const char *name);

/* This program's own file, and a program that lies beside it, else is found in
 * PATH; yours to free(). */
char *places_program(const char *argv0);
char *places_beside(const char *program, const char *name);

#endif
