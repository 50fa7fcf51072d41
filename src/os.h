/*
 * Everything that the library asks of the operating system: every POSIX call
 * stands in os.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_OS_H
#define CLCONV_OS_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

typedef struct clconv_mutex clconv_mutex;

clconv_mutex *clconv_mutex_new(void);    /* NULL: no memory */
void clconv_mutex_free(clconv_mutex *m); /* NULL: no-op */
void clconv_mutex_lock(clconv_mutex *m);
void clconv_mutex_unlock(clconv_mutex *m);

/* The variable's value, or NULL if it is not set or empty. */
const char *clconv_os_env(const char *name);

/* Is it set, and not to 0? */
bool clconv_os_flag(const char *name);

/* The number of this process: another one after a fork. */
long clconv_os_process(void);

/* A shared library, such as "libm.so.6"; NULL if there is none. It stays
 * loaded: a driver's may have threads. */
typedef struct clconv_os_library clconv_os_library;
clconv_os_library *clconv_os_library_get(const char *name);

/* Sets *function, a pointer to a function; false if there is none. */
bool clconv_os_function(clconv_os_library *library, const char *name,
                        void *function);

/* A clock that never goes back, in milliseconds. */
double clconv_os_milliseconds(void);

/* Today, in Greenwich: "2026-11-30". */
#define CLCONV_OS_DATE 16
void clconv_os_date(char out[CLCONV_OS_DATE]);

/*
 * Makes path and its parents, for this user alone, where they do not exist.
 * False, and *why gets a reason, unless path is then a directory that we can
 * read and that is trusted: this user's, and not everybody may write to it; or
 * root's, and nobody else may. It need not be one that we can write to.
 */
bool clconv_os_private_dir(const char *path, clconv_text *why);

/*
 * The path of a directory in dir, yours to free(), both as above: whoever may
 * write the parent may swap the directory. NULL, and *why gets a reason. Where
 * the parent is as above, but there is no such directory and none can be made,
 * the path comes with a reason.
 */
char *clconv_os_private_subdir(const char *dir, const char *name,
                               clconv_text *why);

typedef enum clconv_os_result {
    CLCONV_OS_DONE,
    CLCONV_OS_MISSING, /* no such file */
    CLCONV_OS_FAILED   /* *why has the reason */
} clconv_os_result;

/* The whole file, yours to free(), if it has at most limit bytes. */
clconv_os_result clconv_os_read(const char *path, size_t limit,
                                unsigned char **data, size_t *size,
                                clconv_text *why);

/* The same of a file that is trusted, as directories are. */
clconv_os_result clconv_os_read_trusted(const char *path, size_t limit,
                                        unsigned char **data, size_t *size,
                                        clconv_text *why);

/* What unfinished files are called: a prefix of the name. */
#define CLCONV_OS_UNFINISHED ".unfinished-"

/*
 * Writes dir/name so that a reader, in any process, sees the old file or the
 * whole new one, also if we are killed: aside, flushed, renamed. After a kill
 * only a file with the prefix above may remain.
 */
clconv_os_result clconv_os_replace(const char *dir, const char *name,
                                   const void *data, size_t size,
                                   clconv_text *why);

/* Names in a directory, sorted, without those that begin with a dot. */
typedef struct clconv_os_names {
    char **name;
    size_t count;
} clconv_os_names;

/* No names where there is no directory; false: it cannot be read, or no memory. */
bool clconv_os_list(const char *dir, clconv_os_names *out);
void clconv_os_names_free(clconv_os_names *names);

/* Is it gone? */
bool clconv_os_remove(const char *path);

/* Removes unfinished files that have not changed for that many seconds. */
void clconv_os_remove_unfinished(const char *dir, long seconds);

#endif
