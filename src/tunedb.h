/*
 * The tuned records that a context knows: those that come with the library
 * (tuning/db, embedded) and the user's, one small file each in the cache
 * directory, safe for any number of processes. Safe for threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNEDB_H
#define CLCONV_TUNEDB_H

#include "log.h"
#include "match.h"

/* Where a user's records are, in the cache directory. */
#define CLCONV_TUNEDB_DIR "tuned-1"

typedef struct clconv_tunedb clconv_tunedb;

/* dir: the cache directory, as clconv_store_find_dir() has it, or NULL: the
 * shipped records alone. Reads nothing before it is asked. A directory that
 * cannot be made, read or trusted (os.h) is not used, with a warning; one that
 * cannot be written is read. NULL: no memory. */
clconv_tunedb *clconv_tunedb_new(const char *dir, const clconv_log *log);
void clconv_tunedb_free(clconv_tunedb *db); /* NULL: no-op */

/* Records that were read and those that were not, by reason. */
typedef struct clconv_tunedb_counts {
    int shipped, user, stale, unknown, damaged;
} clconv_tunedb_counts;

void clconv_tunedb_count(clconv_tunedb *db, clconv_tunedb_counts *out);

/* The best matches, the best first; returns how many. ops: all of them must be
 * among the record's. One that is of this very problem, ops, device and driver
 * comes alone; it is looked for on disk each time, since another process may
 * just have written it. A record is valid as long as db. */
int clconv_tunedb_find(clconv_tunedb *db, const clconv_problem *problem,
                       const clconv_device *device, unsigned ops,
                       clconv_match out[CLCONV_MAX_MATCHES]);

/* Keeps the record, in this context and on disk, in place of an older one of
 * the same key. False if it could not be written (said in the log, with the
 * directory's path); this context has it all the same, unless it is no record
 * that could be read again. */
bool clconv_tunedb_save(clconv_tunedb *db, const clconv_record *r);

/* Every record of the user's directory, in a stable order; index from 0, NULL:
 * no more. Those behind a record that is removed move up. */
const clconv_record *clconv_tunedb_user_record(clconv_tunedb *db, int index);

/* Removes the record of that key from the user's directory. Is it gone? */
bool clconv_tunedb_remove(clconv_tunedb *db, const clconv_record *r);

#endif
