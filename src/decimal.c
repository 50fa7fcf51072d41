/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "decimal.h"

#include <inttypes.h>

/* 10^15 < 2^53, and a double holds 10^22: within these limits a number is one
 * exact product or quotient, rounded once. */
enum { MAX_DIGITS = 15, MAX_EXPONENT = 22 };

static const double least = 1e-20; /* 2.0e-20 is 20e-21: within the limits */

/* ---- Printing --------------------------------------------------------- */

void clconv_decimal_put_fixed(clconv_text *out, double value)
{
    int64_t thousandths = (int64_t)(value * 1e3 + 0.5);
    clconv_text_printf(out, "%" PRId64 ".%03d", thousandths / 1000,
                       (int)(thousandths % 1000));
}

void clconv_decimal_put_short(clconv_text *out, double value)
{
    if (value < least) {
        clconv_text_puts(out, "0");
        return;
    }
    int exponent = 0;
    for (; value >= 10; value /= 10)
        ++exponent;
    for (; value < 1; value *= 10)
        --exponent;
    int tenths = (int)(value * 10 + 0.5);
    if (tenths == 100) {
        tenths = 10;
        ++exponent;
    }
    clconv_text_printf(out, "%d.%de%d", tenths / 10, tenths % 10, exponent);
}

/* ---- Parsing ---------------------------------------------------------- */

/* A run of digits, at least one, appended to *value; counts them. */
static bool take_digits(const char **at, int64_t *value, int *digits)
{
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (++*digits > MAX_DIGITS)
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return *at > start;
}

/* "e-4", or nothing. */
static bool take_exponent(const char **at, int64_t *exponent)
{
    int digits = 0;
    if (**at != 'e')
        return true;
    ++*at;
    bool negative = **at == '-';
    *at += negative || **at == '+';
    bool ok = take_digits(at, exponent, &digits);
    if (negative)
        *exponent = -*exponent;
    return ok;
}

static double power_of_ten(int64_t exponent)
{
    double power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

bool clconv_decimal_parse(const char *text, double *out)
{
    int64_t value = 0, exponent = 0;
    int digits = 0, fraction = 0;
    if (!take_digits(&text, &value, &digits))
        return false;
    if (*text == '.') {
        int whole = digits;
        ++text;
        if (!take_digits(&text, &value, &digits))
            return false;
        fraction = digits - whole;
    }
    if (!take_exponent(&text, &exponent) || *text)
        return false;
    exponent -= fraction;
    if (exponent > MAX_EXPONENT || exponent < -MAX_EXPONENT)
        return false;
    *out = exponent < 0 ? (double)value / power_of_ten(-exponent)
                        : (double)value * power_of_ten(exponent);
    return true;
}
