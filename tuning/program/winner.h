/*
 * The record of a plan that was found, and its programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_WINNER_H
#define CLCONV_TUNE_WINNER_H

#include "station.h"

/* Today's record of this device. default_seconds 0: unknown. */
clconv_record winner_record(const station *s, const clconv_problem *problem,
                            unsigned ops, const char *plan,
                            const clconv_trial *trial, double default_seconds);

/* The record that there is of this problem on this device and driver, the
 * user's or a shipped one. */
bool winner_find(station *s, const clconv_problem *problem, unsigned ops,
                 clconv_record *out);

/* Saves record and programs where the library finds them. False with a line
 * on stderr if the record could not be written. */
bool winner_keep(station *s, const clconv_record *r);

#endif
