/*
 * The tuned records that come with the library: the files of tuning/db,
 * embedded at build time. A line of such a file is a record, see record.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SHIPPED_H
#define CLCONV_SHIPPED_H

#include "parts.h"

/* Sorted by name: the device's, without .txt. */
extern const clconv_part clconv_shipped[];
extern const size_t clconv_shipped_count;

#endif
