/*
 * Every trial of a device, a line each, appended as it goes, so that a run
 * that was interrupted or killed can go on:
 *
 *     problem="n2c4h8w8k8r3s3p1" ops=7 plan="..." outcome="ok" seconds=...
 *     lower=... upper=... error=... why="" check=0123456789abcdef
 *
 * check is a hash of the line before it; a line that is torn or damaged is
 * skipped. Of two lines on the same plan the later one holds. Kernels of
 * another revision, another driver or version of the library have another
 * file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_JOURNAL_H
#define CLCONV_TUNE_JOURNAL_H

#include "device.h"
#include "trial.h"

typedef struct journal journal;

/* The device's file in dir; yours to free(). NULL: no memory. */
char *journal_path(const char *dir, const clconv_device *device);

/* Reads what there is. NULL with a line on stderr if it cannot be opened. */
journal *journal_open(const char *path);
void journal_close(journal *j); /* NULL: no-op */

/* Lines that were read, and lines that were skipped. */
int journal_count(const journal *j);
int journal_skipped(const journal *j);

/* A failure to write is said once on stderr, with the path. */
void journal_add(journal *j, const char *problem, unsigned ops,
                 const char *plan, const clconv_trial *trial);

/* What was read or added last of that plan; NULL: nothing. Valid until the
 * next journal_add(). */
const clconv_trial *journal_find(const journal *j, const char *problem,
                                 unsigned ops, const char *plan);

#endif
