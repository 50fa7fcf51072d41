/*
 * Lists of problems from a command line, named sets and files.
 *
 *     if (!problem_list_add_set("cpu", NULL, &list)) ...
 *
 * False means that one line went to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_PROBLEM_LIST_H
#define CLCONV_TOOLS_PROBLEM_LIST_H

#include "cases.h"

/* Why a program does not take a problem, to stand after it and a colon; NULL:
 * it does. Itself NULL: every problem is taken. */
typedef const char *(*problem_refusal)(const clconv_desc *desc);

/* A problem string. */
bool problem_list_add_text(const char *text, problem_refusal refusal,
                           case_list *list);

/* The problems of one of sets.h. */
bool problem_list_add_set(const char *name, problem_refusal refusal,
                          case_list *list);

/* FILE.csv is what cases.h reads; any other file holds one problem string a
 * line, blank lines and what follows a # aside. */
bool problem_list_add_file(const char *path, problem_refusal refusal,
                           case_list *list);

/* Prints every set with its problems. */
void problem_list_print_sets(void);

#endif
