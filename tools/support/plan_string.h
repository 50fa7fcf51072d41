/*
 * The string that makes the same plan again, for --plan and
 * clconv_plan_options.plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_PLAN_STRING_H
#define CLCONV_TOOLS_PLAN_STRING_H

#include <stdbool.h>
#include <stddef.h>

#include "clconv/clconv.h"

/* Cut to fit size bytes, always terminated. False with a line on stderr. */
bool plan_string(const clconv_plan *plan, char *text, size_t size);

#endif
