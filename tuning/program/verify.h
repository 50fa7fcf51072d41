/*
 * Times and judges the user's records of this device again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_VERIFY_H
#define CLCONV_TUNE_VERIFY_H

#include "station.h"

/* The exit status: success if every record could be looked at, kept or
 * dropped. */
int verify_records(station *s);

#endif
