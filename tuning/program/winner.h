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

/* Saves the record where the library finds it. False with a line on stderr. */
bool winner_save(station *s, const clconv_record *r);

/* Compiles the records' plans to where the library finds them, with a line on
 * stderr for each that it cannot. A record without its programs is right: they
 * are compiled at first use. */
void winner_keep_programs(const station *s, const clconv_record *const *records,
                          int count);

#endif
