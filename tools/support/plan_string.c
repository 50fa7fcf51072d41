/*
 * clconv_plan_explain() has it in its line "plan: ...".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plan_string.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

/* What stands behind "plan: " on its line, "" if there is none. */
static void copy_plan_line(const char *explanation, char *out, size_t size)
{
    static const char key[] = "plan: ";
    const size_t length = sizeof(key) - 1;
    const char *line = explanation;

    while (*line && strncmp(line, key, length) != 0) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (*line)
        line += length;
    snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
}

bool plan_string(const clconv_plan *plan, char *text, size_t size)
{
    size_t needed = 0;
    char *explanation = NULL;
    bool ok = !clconv_plan_explain(plan, NULL, 0, &needed);

    if (ok) {
        explanation = malloc(needed);
        ok = explanation &&
             !clconv_plan_explain(plan, explanation, needed, NULL);
    }
    if (ok)
        copy_plan_line(explanation, text, size);
    else
        message_error("the plan cannot be explained: %s",
                      needed && !explanation ? "out of memory"
                                             : clconv_last_error());
    free(explanation);
    return ok;
}
