/*
 * Whether a text is one JSON value (RFC 8259) and blanks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_JSON_H
#define CLCONV_TESTS_JSON_H

#include <stdbool.h>

bool json_is_valid(const char *text);

#endif
