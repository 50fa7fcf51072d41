/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "columns.h"

#include <stdio.h>
#include <string.h>

#include "message.h"

/* Bytes of the list of names in a message. */
#define NAMES_SIZE 256

static bool is_built(const contender *c)
{
    return c->version() != NULL;
}

static void add(columns *list, const contender *c)
{
    if (list->count == COLUMNS_MAX)
        return;
    if (strcmp(c->name, "mixed") == 0)
        list->base = list->count;
    list->items[list->count++] = c;
}

/* The first length bytes of name; NULL if there is none. */
static const contender *find(const char *name, size_t length)
{
    for (int i = 0; i < contender_count; ++i) {
        if (strlen(contenders[i]->name) == length &&
            strncmp(contenders[i]->name, name, length) == 0)
            return contenders[i];
    }
    return NULL;
}

const contender *columns_find(const char *name)
{
    const contender *c = find(name, strlen(name));

    return c && is_built(c) ? c : NULL;
}

columns columns_default(void)
{
    columns list = {.count = 0};

    for (int i = 0; i < contender_count; ++i) {
        if (is_built(contenders[i]) && !contenders[i]->by_request)
            add(&list, contenders[i]);
    }
    return list;
}

columns columns_of_report(void)
{
    columns list = {.count = 0};

    add(&list, columns_find("mixed"));
    add(&list, columns_find("report"));
    return list;
}

/* ---- Lists of names ----------------------------------------------------- */

static bool list_has(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        if (strcspn(list, ",") == length && strncmp(list, name, length) == 0)
            return true;
    }
    return false;
}

static void join_built(char *text, size_t size)
{
    size_t length = 0;

    for (int i = 0; i < contender_count && length < size; ++i) {
        if (is_built(contenders[i]))
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length ? ", " : "", contenders[i]->name);
    }
}

/* Why a name is no column. */
static bool refuse(const char *name, size_t length, const contender *c)
{
    char names[NAMES_SIZE] = "";

    join_built(names, sizeof(names));
    message_error("--only %.*s: %s; there are %s", (int)length, name,
                  c ? c->missing : "no such contender", names);
    return false;
}

bool columns_named(const char *list, columns *out)
{
    columns named = {.count = 0};

    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        const contender *c = find(at, length);

        if (!c || !is_built(c))
            return refuse(at, length, c);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    for (int i = 0; i < contender_count; ++i) {
        if (list_has(list, contenders[i]->name))
            add(&named, contenders[i]);
    }
    *out = named;
    return true;
}
