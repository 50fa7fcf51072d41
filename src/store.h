/*
 * A directory of small entries, text key -> bytes, shared by any number of
 * processes. Every failure means "not there", with a warning: a damaged entry
 * is removed, and the caller makes it anew. Not for secrets, nor against an
 * attacker who can write the directory.
 *
 * Entries are programs, which a driver runs: they are read only where directory
 * and file are this user's or root's (os.h). A directory that cannot be
 * written, such as one for a whole system, is read all the same.
 *
 * One entry is one file, named by a hash of its key; the full key is kept in
 * it and compared. An entry without bytes is a mark: its key was in use, but
 * the bytes were not worth their price so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_STORE_H
#define CLCONV_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "log.h"
#include "program_file.h"

typedef struct clconv_store clconv_store;

/*
 * Where a store should be, see clconv_context_options.cache_dir, which is the
 * option. Yours to free(). NULL: in memory only, with a warning unless that
 * was asked for.
 */
char *clconv_store_find_dir(const char *option, const clconv_log *log);

/* Entries go to dir/programs-1. NULL, with a warning in the log, if dir cannot
 * be made, or either cannot be read or trusted. The log is copied. */
clconv_store *clconv_store_new(const char *dir, const clconv_log *log);
void clconv_store_free(clconv_store *s); /* NULL: no-op */

/* The bytes of key, yours to free(); size 0: a mark. False if there is no
 * entry. */
bool clconv_store_read(clconv_store *s, const char *key, unsigned char **data,
                       size_t *size);

/* Replaces the entry. False if it could not be written: the first time this
 * happens there is a warning, which names the directory, and from then on
 * nothing more is written. */
bool clconv_store_write(clconv_store *s, const char *key,
                        const unsigned char *data, size_t size);

/* Leaves a mark, unless there is an entry already. */
bool clconv_store_mark(clconv_store *s, const char *key);

/* The entry is valid during the call; false: no more. */
typedef bool (*clconv_store_visit)(void *user, const clconv_program_file *entry);

/* Visits all whole entries whose keys begin with prefix, in a stable order;
 * damaged ones are dropped. False: a visit said so, or no memory. */
bool clconv_store_each(clconv_store *s, const char *prefix,
                       clconv_store_visit visit, void *user);

/* Removes the entry with a warning that gives the reason. Is it gone? */
bool clconv_store_drop(clconv_store *s, const char *key, const char *reason);

#endif
