/*
 * The commands that measure nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_RECORDS_H
#define CLCONV_TUNE_RECORDS_H

#include "station.h"

/* Each returns the exit status. */
int records_list(station *s);
int records_merge(station *s);
int records_export(station *s);
int records_import(station *s);
int records_clean(station *s);

#endif
