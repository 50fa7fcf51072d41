/*
 * A line as a whole: its check, its fields in turn, and then the plan, whose
 * kernels must be those of this version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "record.h"

#include <math.h>
#include <string.h>

#include "fields.h"
#include "record_fields.h"
#include "seal.h"

enum { MAX_NAME = 32 };

/* ---- Printing ---------------------------------------------------------- */

void clconv_record_format(const clconv_record *r, clconv_text *out)
{
    size_t start = out->length;
    clconv_record_put_fields(r, false, out);
    clconv_seal_put(out, start);
}

void clconv_record_key(const clconv_record *r, clconv_text *out)
{
    clconv_record_put_fields(r, true, out);
}

bool clconv_record_same_key(const clconv_record *a, const clconv_record *b)
{
    clconv_text keys[2] = {CLCONV_TEXT_EMPTY, CLCONV_TEXT_EMPTY};
    clconv_record_key(a, &keys[0]);
    clconv_record_key(b, &keys[1]);
    bool same = !keys[0].failed && !keys[1].failed &&
                strcmp(keys[0].data, keys[1].data) == 0;
    clconv_text_free(&keys[0]);
    clconv_text_free(&keys[1]);
    return same;
}

/* ---- The plan ---------------------------------------------------------- */

/* Every step that ops take has a kernel: without one the planner would choose,
 * and the time would be of another plan. */
static clconv_record_result
check_roles(const clconv_parsed *p, const clconv_choice choices[CLCONV_ROLES])
{
    static const struct {
        unsigned ops;
        const char *what;
    } needs[CLCONV_ROLES] = {
        [CLCONV_ROLE_CAST] = {CLCONV_OP_BACKWARD, "the cast"},
        [CLCONV_ROLE_BWD_DATA] = {CLCONV_OP_DX, "dx"},
        [CLCONV_ROLE_BWD_WEIGHT] = {CLCONV_OP_DW, "dw"},
    };
    const unsigned both = CLCONV_OP_DX | CLCONV_OP_DW;
    const clconv_kernel *backward = choices[CLCONV_ROLE_BACKWARD].kernel;
    if (backward && (p->record.ops & both) == both)
        return CLCONV_RECORD_OK;
    for (int role = 0; role < CLCONV_ROLES; ++role)
        if ((p->record.ops & needs[role].ops) && !choices[role].kernel) {
            clconv_text_printf(p->why, "plan names no kernel for %s",
                               needs[role].what);
            return CLCONV_RECORD_DAMAGED;
        }
    return CLCONV_RECORD_OK;
}

static clconv_record_result check_plan(const clconv_parsed *p)
{
    clconv_choice choices[CLCONV_ROLES];
    if (clconv_choices_parse(p->record.plan, choices) != CLCONV_OK) {
        clconv_text_puts(p->why, clconv_last_error());
        return CLCONV_RECORD_STALE;
    }
    clconv_record_result result = check_roles(p, choices);
    if (result != CLCONV_RECORD_OK)
        return result;
    clconv_text now = CLCONV_TEXT_EMPTY;
    clconv_record_put_revisions(choices, &now);
    if (!now.data || strcmp(now.data, p->revisions) != 0) {
        clconv_text_printf(p->why, "revisions is \"%s\"; this version has %s",
                           p->revisions, now.data ? now.data : "no memory");
        result = CLCONV_RECORD_STALE;
    }
    clconv_text_free(&now);
    return result;
}

/* ---- Parsing ----------------------------------------------------------- */

static clconv_record_result damaged(const clconv_parsed *p, const char *fault)
{
    clconv_text_puts(p->why, fault);
    return CLCONV_RECORD_DAMAGED;
}

/* Takes a check that is right off the line's end. */
static clconv_record_result take_check(const char *line, size_t *length,
                                       bool sealed, const clconv_parsed *p)
{
    clconv_seal seal = clconv_seal_take(line, length);
    if (seal == CLCONV_SEAL_WRONG)
        return damaged(p, "its check is wrong");
    if (seal == CLCONV_SEAL_MISSING && sealed)
        return damaged(p, "it does not end with check=");
    return CLCONV_RECORD_OK;
}

static clconv_record_result parse_fields(const char *line, size_t length,
                                         clconv_parsed *p)
{
    char name[MAX_NAME], value[CLCONV_RECORD_PLAN];
    clconv_fields in = {.at = line, .end = line + length};
    clconv_record_result result = CLCONV_RECORD_OK;
    while (result == CLCONV_RECORD_OK && clconv_fields_more(&in))
        result = clconv_fields_next(&in, name, sizeof name, value, sizeof value)
                     ? clconv_record_take_field(name, value, p)
                     : damaged(p, in.fault);
    if (result == CLCONV_RECORD_OK)
        result = clconv_record_check_fields(p);
    if (result == CLCONV_RECORD_OK)
        result = check_plan(p);
    return result;
}

static bool is_blank(const char *line, size_t length)
{
    clconv_fields in = {.at = line, .end = line + length};
    return !clconv_fields_more(&in) || *in.at == '#';
}

clconv_record_result clconv_record_parse(const char *line, size_t length,
                                         bool sealed, clconv_record *out,
                                         clconv_text *why)
{
    clconv_parsed p = {.record = {.error = NAN}, .why = why};
    if (length > CLCONV_RECORD_LINE)
        return damaged(&p, "the line is too long");
    if (is_blank(line, length))
        return CLCONV_RECORD_BLANK;
    clconv_record_result result = take_check(line, &length, sealed, &p);
    if (result == CLCONV_RECORD_OK)
        result = parse_fields(line, length, &p);
    if (result == CLCONV_RECORD_OK)
        *out = p.record;
    return result;
}
