/*
 * Tunes the problems of the command line, one after another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_TUNE_H
#define CLCONV_TUNE_TUNE_H

#include "station.h"

/* The exit status: success if every problem has a record. */
int tune_problems(station *s);

#endif
