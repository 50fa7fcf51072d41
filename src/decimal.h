/*
 * Numbers as text that is the same in every locale: printf() and strtod() take
 * the decimal point of the program that we are part of.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DECIMAL_H
#define CLCONV_DECIMAL_H

#include <stdbool.h>

#include "text.h"

/* "812.400": three digits behind the point; value in [0, 1e12]. */
void clconv_decimal_put_fixed(clconv_text *out, double value);

/* "3.1e-4": two digits; "0" for what is below 1e-20. value in [0, 1e20]. */
void clconv_decimal_put_short(clconv_text *out, double value);

/* Digits, perhaps a point and digits, perhaps an exponent, and nothing else:
 * no sign, no space, no "inf". At most 15 digits; the exponent, the point
 * moved to the end, is at most 22 from 0. */
bool clconv_decimal_parse(const char *text, double *out);

#endif
