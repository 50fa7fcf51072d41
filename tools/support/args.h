/*
 * Values of command-line options: what a text must look like, and a message
 * that names the option and the allowed range if it does not. To be used with
 * getopt_long, whose option string starts with ':' and with opterr = 0:
 *
 *     case OPT_GROUPS:
 *         ok = args_integer("--groups", optarg, 1, INT32_MAX, &o->groups);
 *         break;
 *     case '?':
 *     case ':':
 *         args_say_bad_option(code, argv);
 *         return ARGS_EXIT_USAGE;
 *
 * Every function writes its outputs only if it returns true; false means that
 * one line went to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_ARGS_H
#define CLCONV_TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a program returns after a wrong option. */
#define ARGS_EXIT_USAGE 2

/* A whole number in [low, high]. */
bool args_integer(const char *option, const char *text, int64_t low,
                  int64_t high, int64_t *out);

/* A finite decimal number in [low, high]. */
bool args_real(const char *option, const char *text, double low, double high,
               double *out);

/* "H,W", or one number for both; each in [low, high]. */
bool args_pair(const char *option, const char *text, int64_t low, int64_t high,
               int64_t out[2]);

/* "TOP,BOTTOM,LEFT,RIGHT"; "H,W": top and bottom, left and right; or one
 * number for all four; each in [low, high]. */
bool args_sides(const char *option, const char *text, int64_t low, int64_t high,
                int64_t out[4]);

/* Numbers between commas, each in [low, high], at least 1 and at most max. */
bool args_list(const char *option, const char *text, int64_t low, int64_t high,
               size_t max, int64_t *out, size_t *count);

/* The index of text in names, which ends with NULL. */
bool args_choice(const char *option, const char *text, const char *const *names,
                 int *out);

/* Says what was wrong where getopt_long returned '?' or ':'. */
void args_say_bad_option(int code, char *const *argv);

#endif
