/*
 * Tuned records for tests: what a record says is random, but its plan is one
 * that the planner chose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "record.h"

/* Of this problem string and device, all outputs, the planner's default plan. */
clconv_record record_of(const char *problem, const clconv_device *device);

/* The device's names are of any bytes but 0. Same seed, same record. */
clconv_record record_random(unsigned *seed);

/* In [0, below). */
int record_pick(unsigned *seed, int below);

#endif
