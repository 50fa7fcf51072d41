/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "protocol.h"

#include <string.h>

#include "clconv/clconv.h"

static const char *const verb_words[COMMAND_VERBS] = {
    [COMMAND_PREPARE] = "prepare",
    [COMMAND_TIME] = "time",
    [COMMAND_JUDGE] = "judge",
    [COMMAND_KEEP] = "keep",
};

/* ---- Commands ---------------------------------------------------------- */

void command_format(const command *c, clconv_text *out)
{
    line_put_text(out, "do", verb_words[c->verb]);
    line_put_text(out, "problem", c->problem);
    line_put_integer(out, "ops", (long)c->ops);
    line_put_real(out, "seconds", c->seconds);
    for (int i = 0; i < c->count; ++i)
        line_put_text(out, "plan", c->plans[i]);
    clconv_text_puts(out, "\n");
}

static bool take_verb(const char *word, command_verb *out)
{
    for (int i = 0; i < COMMAND_VERBS; ++i)
        if (strcmp(word, verb_words[i]) == 0) {
            *out = (command_verb)i;
            return true;
        }
    return false;
}

static bool take_ops(const char *value, unsigned *out)
{
    long ops;
    if (!line_integer(value, 1, CLCONV_OP_BACKWARD, &ops))
        return false;
    *out = (unsigned)ops;
    return true;
}

static bool take_problem(const char *value, command_strings *strings,
                         command *out)
{
    out->problem = strings->problem;
    return line_copy(value, strings->problem, sizeof strings->problem);
}

static bool take_plan(const char *value, command_strings *strings, command *out)
{
    if (out->count == COMMAND_MAX_PLANS)
        return false;
    char *plan = strings->plans[out->count];
    out->plans[out->count++] = plan;
    return line_copy(value, plan, sizeof strings->plans[0]);
}

static bool take_field(const line_field *f, command_strings *strings,
                       command *out)
{
    if (strcmp(f->name, "do") == 0)
        return take_verb(f->value, &out->verb);
    if (strcmp(f->name, "problem") == 0)
        return take_problem(f->value, strings, out);
    if (strcmp(f->name, "ops") == 0)
        return take_ops(f->value, &out->ops);
    if (strcmp(f->name, "seconds") == 0)
        return line_real(f->value, &out->seconds);
    return strcmp(f->name, "plan") == 0 && take_plan(f->value, strings, out);
}

bool command_parse(const char *line, size_t length, command_strings *strings,
                   command *out)
{
    command c = {.verb = COMMAND_VERBS};
    clconv_fields in = {.at = line, .end = line + length};
    line_field f;
    while (line_next(&in, &f))
        if (!take_field(&f, strings, &c))
            return false;
    if (in.fault || c.verb == COMMAND_VERBS || !c.problem || !c.ops || !c.count)
        return false;
    *out = c;
    return true;
}

/* ---- Answers ----------------------------------------------------------- */

void answer_format(const clconv_trial *trial, clconv_text *out)
{
    trial_put(out, trial);
    clconv_text_puts(out, "\n");
}

bool answer_parse(const char *line, size_t length, clconv_trial *out)
{
    clconv_trial trial = trial_failed(CLCONV_OUTCOMES, "");
    clconv_fields in = {.at = line, .end = line + length};
    line_field f;
    while (line_next(&in, &f))
        if (!trial_take(&f, &trial))
            return false;
    if (in.fault || trial.outcome == CLCONV_OUTCOMES)
        return false;
    *out = trial;
    return true;
}
