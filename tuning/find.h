/*
 * CLCONV_PLAN_FIND: tunes a problem in this process, without a fork, and keeps
 * the record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_FIND_H
#define CLCONV_FIND_H

#include "record.h"

/* Errors as clconv_plan_create(). *out is also among the context's records. */
clconv_status clconv_find(clconv_context *context, const clconv_desc *desc,
                          unsigned ops, const clconv_plan_options *options,
                          clconv_record *out);

#endif
