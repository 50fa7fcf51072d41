/*
 * All that was tuned for a device as one file: records and compiled programs,
 * to be taken to another machine of that kind.
 *
 *     clconv_bundle_place here = {dir, &context->device, prefix};
 *     status = clconv_bundle_write(&here, &log, "epyc.clconv", &counts);
 *     ...
 *     status = clconv_bundle_read("epyc.clconv", &there, &log, &counts);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BUNDLE_H
#define CLCONV_BUNDLE_H

#include "device.h"
#include "log.h"
#include "status.h"

/* A cache directory and the device whose share of it is meant. */
typedef struct clconv_bundle_place {
    const char *dir;             /* clconv_store_find_dir() */
    const clconv_device *device; /* of records */
    const char *prefix;          /* of programs' keys: clconv_cache_prefix() */
} clconv_bundle_place;

typedef struct clconv_bundle_counts {
    int records, programs; /* written */
    int foreign;           /* left out: of another device, driver or library */
    char why[256];         /* the first of these: what differs, one line */
} clconv_bundle_counts;

/*
 * Writes the file aside and renames it: one that is there stays until then.
 * Nothing to write is no failure: see the counts. INVALID_ARGUMENT: dir or file
 * cannot be used; OUT_OF_MEMORY.
 */
clconv_status clconv_bundle_write(const clconv_bundle_place *from,
                                  const clconv_log *log, const char *file,
                                  clconv_bundle_counts *out);

/*
 * Adds what is in the file to the directory, in place of what there is of the
 * same key. The whole file is checked before anything is written: it is all
 * taken, but for what is foreign, or nothing; only where the directory cannot
 * be written any more, some of its records and programs, each as a whole.
 * Errors as above.
 */
clconv_status clconv_bundle_read(const char *file, const clconv_bundle_place *to,
                                 const clconv_log *log,
                                 clconv_bundle_counts *out);

#endif
