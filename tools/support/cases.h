/*
 * Lists of convolutions in CSV files:
 *
 *     name,N,C,H,W,K,R,S,stride_h,stride_w,pad_top,pad_bottom,pad_left,
 *     pad_right,dilation_h,dilation_w,groups             (one line)
 *     resnet_50:conv1,50,3,224,224,64,7,7,2,2,3,2,3,2,1,1,1
 *
 * The first line names the columns, in any order; all of them must be there,
 * and no other. Dilation 1 means none. No quotes; blank lines are skipped.
 *
 *     case_list list;
 *     char error[CASES_ERROR_SIZE];
 *     if (!cases_read(path, &list, error)) ...   // "file:line:column: why"
 *     for (size_t i = 0; i < list.count; ++i)
 *         use(list.items[i].name, &list.items[i].desc);
 *     cases_free(&list);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_CASES_H
#define CLCONV_TOOLS_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "clconv/clconv.h"

typedef struct case_row {
    char *name;
    clconv_desc desc; /* defaults where the file says nothing */
    bool is_whole;    /* desc also says the layout and the arithmetic */
} case_row;

typedef struct case_list {
    case_row *items;
    size_t count;
} case_list;

#define CASES_ERROR_SIZE 512

/* False with the reason in error (CASES_ERROR_SIZE bytes); *out is then as it
 * was. Sizes, strides and dilations are 1 to CASES_MAX, paddings and N are 0
 * to CASES_MAX. A file without rows is an error. */
#define CASES_MAX 1000000000
bool cases_read(const char *path, case_list *out, char *error);

/* The same for a text; file is what messages call it. */
bool cases_parse(const char *file, const char *text, case_list *out,
                 char *error);

/* Prints the names and sizes as a text that cases_parse() reads. */
void cases_print(FILE *to, const case_list *list);

/* Adds one row, copying name; false if there is no memory. */
bool cases_add(case_list *list, const char *name, const clconv_desc *desc);

void cases_free(case_list *list);

#endif
