/*
 * strtoll and strtod are wrapped strictly: no leading blank, no rest, no
 * silent overflow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "args.h"

#include "message.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One decimal number at *text, which then points behind it. */
static bool take_integer(const char **text, int64_t *out)
{
    char *end;
    long long value;

    if (!isdigit((unsigned char)**text) && **text != '-')
        return false;
    errno = 0;
    value = strtoll(*text, &end, 10);
    if (errno || end == *text)
        return false;
    *text = end;
    *out = value;
    return true;
}

/* Up to max numbers in [low, high]; 0 if the text is anything else. */
static size_t take_list(const char *text, int64_t low, int64_t high, size_t max,
                        int64_t *out)
{
    for (size_t i = 0; i < max; ++i) {
        if (!take_integer(&text, &out[i]) || out[i] < low || out[i] > high)
            return 0;
        if (*text == '\0')
            return i + 1;
        if (*text++ != ',')
            return 0;
    }
    return 0;
}

bool args_integer(const char *option, const char *text, int64_t low,
                  int64_t high, int64_t *out)
{
    int64_t value;

    if (take_list(text, low, high, 1, &value) != 1) {
        message_error("%s %s: must be a whole number from %" PRId64
                      " to %" PRId64,
                      option, text, low, high);
        return false;
    }
    *out = value;
    return true;
}

bool args_real(const char *option, const char *text, double low, double high,
               double *out)
{
    char *end;
    double value = strtod(text, &end);

    if (isspace((unsigned char)*text) || end == text || *end != '\0' ||
        !isfinite(value) || value < low || value > high) {
        message_error("%s %s: must be a number from %g to %g", option, text,
                      low, high);
        return false;
    }
    *out = value;
    return true;
}

bool args_pair(const char *option, const char *text, int64_t low, int64_t high,
               int64_t out[2])
{
    int64_t values[2];
    size_t count = take_list(text, low, high, 2, values);

    if (count == 0) {
        message_error("%s %s: must be H,W or one number for both, each from "
                      "%" PRId64 " to %" PRId64,
                      option, text, low, high);
        return false;
    }
    out[0] = values[0];
    out[1] = values[count - 1];
    return true;
}

bool args_sides(const char *option, const char *text, int64_t low, int64_t high,
                int64_t out[4])
{
    /* Which of the numbers given goes to top, bottom, left and right. */
    static const size_t from[5][4] = {
        [1] = {0, 0, 0, 0}, [2] = {0, 0, 1, 1}, [4] = {0, 1, 2, 3}};
    int64_t values[4];
    size_t count = take_list(text, low, high, 4, values);

    if (count == 0 || count == 3) {
        message_error("%s %s: must be TOP,BOTTOM,LEFT,RIGHT, or H,W, or one "
                      "number for all, each from %" PRId64 " to %" PRId64,
                      option, text, low, high);
        return false;
    }
    for (size_t i = 0; i < 4; ++i)
        out[i] = values[from[count][i]];
    return true;
}

bool args_list(const char *option, const char *text, int64_t low, int64_t high,
               size_t max, int64_t *out, size_t *count)
{
    int64_t *values = malloc(max * sizeof(*values));
    size_t taken = values ? take_list(text, low, high, max, values) : 0;

    if (!values)
        message_error("out of memory");
    else if (taken == 0)
        message_error("%s %s: must be 1 to %zu numbers between commas, each "
                      "from %" PRId64 " to %" PRId64,
                      option, text, max, low, high);
    else
        memcpy(out, values, taken * sizeof(*values));
    free(values);
    if (taken)
        *count = taken;
    return taken != 0;
}

/* "a, b or c" */
static void join_names(const char *const *names, char *text, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; names[i] && length < size; ++i) {
        const char *comma = i == 0 ? "" : names[i + 1] ? ", " : " or ";

        length += (size_t)snprintf(text + length, size - length, "%s%s", comma,
                                   names[i]);
    }
}

bool args_choice(const char *option, const char *text, const char *const *names,
                 int *out)
{
    char joined[256] = "";

    for (int i = 0; names[i]; ++i) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    join_names(names, joined, sizeof(joined));
    message_error("%s %s: must be %s", option, text, joined);
    return false;
}

void args_say_bad_option(int code, char *const *argv)
{
    const char *text = argv[optind - 1];

    if (code == ':')
        message_error("%s needs a value; see --help", text);
    else if (strncmp(text, "--", 2) != 0 && optopt)
        message_error("-%c: unknown option; see --help", optopt);
    else if (optopt)
        message_error("%s: this option takes no value; see --help", text);
    else
        message_error("%s: unknown or ambiguous option; see --help", text);
}
