/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "problem_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "sets.h"

/* Longer lines of a file are an error. */
#define LINE_SIZE 256

/* ---- One problem -------------------------------------------------------- */

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
                       problem_refusal refusal, case_list *list)
{
    clconv_desc desc;
    const char *why;

    if (clconv_desc_parse(text, &desc)) {
        message_error("%s%s", where, clconv_last_error());
        return false;
    }
    why = refusal ? refusal(&desc) : NULL;
    if (why) {
        message_error("%s%s: %s", where, text, why);
        return false;
    }
    return add(name, &desc, list);
}

bool problem_list_add_text(const char *text, problem_refusal refusal,
                           case_list *list)
{
    return add_parsed("", text, text, refusal, list);
}

/* ---- Sets --------------------------------------------------------------- */

static void join_set_names(char *text, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < problem_set_count && length < size; ++i)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   i ? ", " : "", problem_sets[i].name);
}

bool problem_list_add_set(const char *name, problem_refusal refusal,
                          case_list *list)
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
        ok = add_parsed("", set->rows[i].name, set->rows[i].problem, refusal,
                        list);
    return ok;
}

void problem_list_print_sets(void)
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
                     problem_refusal refusal, case_list *list)
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
    return !*text || add_parsed(where, text, text, refusal, list);
}

static bool add_lines(const char *path, FILE *file, problem_refusal refusal,
                      case_list *list)
{
    char line[LINE_SIZE];
    size_t number = 0, before = list->count;

    while (fgets(line, sizeof(line), file)) {
        if (!add_line(path, ++number, line, refusal, list))
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

static bool add_text_file(const char *path, problem_refusal refusal,
                          case_list *list)
{
    FILE *file = fopen(path, "r");
    bool ok;

    if (!file) {
        message_error("--file %s: %s", path, strerror(errno));
        return false;
    }
    ok = add_lines(path, file, refusal, list);
    fclose(file);
    return ok;
}

bool problem_list_add_file(const char *path, problem_refusal refusal,
                           case_list *list)
{
    const char *ending = strrchr(path, '.');

    if (ending && strcmp(ending, ".csv") == 0)
        return add_csv(path, list);
    return add_text_file(path, refusal, list);
}
