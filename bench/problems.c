/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "problems.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "sets.h"
#include "shape.h"

/* Longer lines of a file are an error. */
#define LINE_SIZE 256

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

static bool add(const char *name, const clconv_desc *desc, case_list *list)
{
    if (!cases_add(list, name, desc)) {
        message_error("out of memory");
        return false;
    }
    return true;
}

/* where: what stands in front of a message about text, or "". */
static bool add_parsed(const char *where, const char *name, const char *text,
                       case_list *list)
{
    clconv_desc desc;

    if (clconv_desc_parse(text, &desc)) {
        message_error("%s%s", where, clconv_last_error());
        return false;
    }
    if (!is_plain(&desc)) {
        message_error("%s%s: a problem is sizes and nhwc here; tensors are "
                      "fp32, and --only chooses the arithmetic",
                      where, text);
        return false;
    }
    return add(name, &desc, list);
}

bool problems_add_text(const char *text, case_list *list)
{
    return add_parsed("", text, text, list);
}

/* ---- Sets --------------------------------------------------------------- */

static void join_set_names(char *text, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < problem_set_count && length < size; ++i)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   i ? ", " : "", problem_sets[i].name);
}

bool problems_add_set(const char *name, case_list *list)
{
    char names[256] = "";
    const problem_set *set = NULL;
    bool ok = true;

    for (size_t i = 0; i < problem_set_count; ++i) {
        if (strcmp(problem_sets[i].name, name) == 0)
            set = &problem_sets[i];
    }
    if (!set) {
        join_set_names(names, sizeof(names));
        message_error("--set %s: no such set; there are %s", name, names);
        return false;
    }
    for (size_t i = 0; ok && i < set->count; ++i)
        ok = add_parsed("", set->rows[i].name, set->rows[i].problem, list);
    return ok;
}

void problems_list_sets(void)
{
    for (size_t i = 0; i < problem_set_count; ++i) {
        const problem_set *set = &problem_sets[i];

        printf("%s%s: %s\n", i ? "\n" : "", set->name, set->summary);
        for (size_t k = 0; k < set->count; ++k)
            printf("  %-16s %s\n", set->rows[k].name, set->rows[k].problem);
    }
}

/* ---- Files -------------------------------------------------------------- */

static bool add_csv(const char *path, case_list *list)
{
    char error[CASES_ERROR_SIZE];
    case_list rows;
    bool ok = true;

    if (!cases_read(path, &rows, error)) {
        message_error("--file %s", error);
        return false;
    }
    for (size_t i = 0; ok && i < rows.count; ++i)
        ok = add(rows.items[i].name, &rows.items[i].desc, list);
    cases_free(&rows);
    return ok;
}

/* Cuts off a comment and blanks on both sides. */
static char *trim(char *line)
{
    size_t length;

    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    length = strlen(line);
    while (length > 0 && strchr(" \t", line[length - 1]))
        line[--length] = '\0';
    return line;
}

static bool add_line(const char *path, size_t number, char *line,
                     case_list *list)
{
    char where[320];
    const char *text;

    snprintf(where, sizeof(where), "--file %.200s:%zu: ", path, number);
    if (strlen(line) == LINE_SIZE - 1 && line[LINE_SIZE - 2] != '\n') {
        message_error("%sa line has at most %d characters", where,
                      LINE_SIZE - 2);
        return false;
    }
    text = trim(line);
    return !*text || add_parsed(where, text, text, list);
}

static bool add_lines(const char *path, FILE *file, case_list *list)
{
    char line[LINE_SIZE];
    size_t number = 0, before = list->count;

    while (fgets(line, sizeof(line), file)) {
        if (!add_line(path, ++number, line, list))
            return false;
    }
    if (ferror(file))
        message_error("--file %s: %s", path, strerror(errno));
    else if (list->count == before)
        message_error("--file %s: holds no problem string", path);
    else
        return true;
    return false;
}

static bool add_text_file(const char *path, case_list *list)
{
    FILE *file = fopen(path, "r");
    bool ok;

    if (!file) {
        message_error("--file %s: %s", path, strerror(errno));
        return false;
    }
    ok = add_lines(path, file, list);
    fclose(file);
    return ok;
}

bool problems_add_file(const char *path, case_list *list)
{
    const char *ending = strrchr(path, '.');

    if (ending && strcmp(ending, ".csv") == 0)
        return add_csv(path, list);
    return add_text_file(path, list);
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
