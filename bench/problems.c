/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "problems.h"

#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "problem_list.h"
#include "shape.h"

/* ---- One problem -------------------------------------------------------- */

/* Sizes and layout alone. */
static clconv_desc plain_desc(const clconv_desc *desc)
{
    clconv_desc defaults, plain = *desc;

    clconv_desc_init(&defaults);
    plain.math = defaults.math;
    plain.x_type = plain.w_type = plain.dy_type = defaults.x_type;
    plain.dw_type = plain.db_type = plain.dx_type = defaults.dw_type;
    plain.scale = defaults.scale;
    plain.scale_log2 = defaults.scale_log2;
    plain.dy_log2 = defaults.dy_log2;
    plain.dx_log2 = defaults.dx_log2;
    plain.overflow = defaults.overflow;
    plain.alignment = defaults.alignment;
    return plain;
}

static bool is_plain(const clconv_desc *desc)
{
    clconv_desc plain = plain_desc(desc);
    char text[256], plain_text[256];

    clconv_desc_format(desc, text, sizeof(text));
    clconv_desc_format(&plain, plain_text, sizeof(plain_text));
    return strcmp(text, plain_text) == 0;
}

static const char *refuse(const clconv_desc *desc)
{
    return is_plain(desc) ? NULL
                          : "a problem is sizes and nhwc here; tensors are "
                            "fp32, and --only chooses the arithmetic";
}

bool problems_add_text(const char *text, case_list *list)
{
    return problem_list_add_text(text, refuse, list);
}

bool problems_add_set(const char *name, case_list *list)
{
    return problem_list_add_set(name, refuse, list);
}

bool problems_add_file(const char *path, case_list *list)
{
    return problem_list_add_file(path, refuse, list);
}

/* ---- Changes ------------------------------------------------------------ */

static bool check(const case_row *row, shape *z)
{
    if (clconv_desc_validate(&row->desc))
        message_error("%s: %s", row->name, clconv_last_error());
    else if (row->desc.n < 1)
        message_error("%s: has no images; --batch N gives it some", row->name);
    else if (!shape_from_desc(&row->desc, z))
        message_error("%s: a tensor has more than 2^40 elements", row->name);
    else
        return true;
    return false;
}

/* A name that is a problem string says what the problem has become. */
static bool rename_row(case_row *row)
{
    char name[256];
    clconv_desc named;
    char *copy;

    if (clconv_desc_parse(row->name, &named))
        return true;
    clconv_desc_format(&row->desc, name, sizeof(name));
    copy = malloc(strlen(name) + 1);
    if (!copy) {
        message_error("out of memory");
        return false;
    }
    free(row->name);
    row->name = strcpy(copy, name);
    return true;
}

static bool change(case_row *row, const problem_changes *changes)
{
    if (changes->batch)
        row->desc.n = changes->batch;
    if (changes->has_layout)
        row->desc.layout = changes->layout;
    return rename_row(row);
}

bool problems_change(case_list *list, const problem_changes *changes,
                     size_t *left_out)
{
    size_t kept = 0, count = list->count;

    for (size_t i = 0; i < count; ++i) {
        case_row *row = &list->items[i];
        shape z;

        if (!change(row, changes) || !check(row, &z))
            return false;
        if (shape_gflop(&z) <= changes->max_gflop) {
            case_row small = *row;

            *row = list->items[kept];
            list->items[kept++] = small;
        }
    }
    *left_out = count - kept;
    for (size_t i = kept; i < count; ++i)
        free(list->items[i].name);
    list->count = kept;
    if (kept == 0)
        message_error("--max-gflop %g leaves no problem", changes->max_gflop);
    return kept > 0;
}
