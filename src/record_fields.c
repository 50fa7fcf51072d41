/*
 * A table with a row a field: each knows how its member prints and how it is
 * read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "record_fields.h"

#include <string.h>

#include "decimal.h"
#include "fields.h"

typedef struct field {
    const char *name;
    /* Appends the value; nothing: the field is left out. */
    void (*put)(const struct field *f, const clconv_record *r, clconv_text *out);
    clconv_record_result (*take)(const struct field *f, const char *value,
                                 clconv_parsed *p);
    size_t offset, size; /* of its member, where there is just one */
    bool required;
    bool is_key; /* see clconv_record_key() */
} field;

static const char *text_of(const field *f, const clconv_record *r)
{
    return (const char *)r + f->offset;
}

/* CLCONV_RECORD_DAMAGED or another result, with a sentence. */
static clconv_record_result refuse(const clconv_parsed *p,
                                   clconv_record_result result, const field *f,
                                   const char *value, const char *expected)
{
    clconv_text_printf(p->why, "%s is \"%.80s\"; it must be %s", f->name, value,
                       expected);
    return result;
}

/* ---- Texts ------------------------------------------------------------- */

static void put_text(const field *f, const clconv_record *r, clconv_text *out)
{
    clconv_fields_quote(out, text_of(f, r));
}

static clconv_record_result take_text(const field *f, const char *value,
                                      clconv_parsed *p)
{
    if (strlen(value) >= f->size)
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value, "shorter");
    strcpy((char *)&p->record + f->offset, value);
    return CLCONV_RECORD_OK;
}

static void put_date(const field *f, const clconv_record *r, clconv_text *out)
{
    clconv_text_puts(out, text_of(f, r));
}

static clconv_record_result take_date(const field *f, const char *value,
                                      clconv_parsed *p)
{
    static const char shape[] = "dddd-dd-dd";
    bool ok = strlen(value) == strlen(shape);
    for (size_t i = 0; ok && shape[i]; ++i)
        ok = shape[i] == 'd' ? value[i] >= '0' && value[i] <= '9'
                             : value[i] == shape[i];
    if (!ok)
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value, "as 2026-11-30");
    return take_text(f, value, p);
}

/* ---- Numbers ----------------------------------------------------------- */

static double number_of(const field *f, const clconv_record *r)
{
    double value;
    memcpy(&value, text_of(f, r), sizeof value);
    return value;
}

static clconv_record_result take_number(const field *f, const char *value,
                                        clconv_parsed *p)
{
    double number;
    if (!clconv_decimal_parse(value, &number))
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value,
                      "a number such as 12.5 or 3e-4");
    memcpy((char *)&p->record + f->offset, &number, sizeof number);
    return CLCONV_RECORD_OK;
}

/* Clocks count nanoseconds at best; more than 10^12 us are eleven days. */
static const double shortest = 1e-3, longest = 1e12;

static void put_microseconds(const field *f, const clconv_record *r,
                             clconv_text *out)
{
    double value = number_of(f, r);
    if (value > 0)
        clconv_decimal_put_fixed(out, value < shortest  ? shortest
                                      : value < longest ? value
                                                        : longest);
}

static clconv_record_result take_microseconds(const field *f, const char *value,
                                              clconv_parsed *p)
{
    clconv_record_result result = take_number(f, value, p);
    if (result == CLCONV_RECORD_OK && !(number_of(f, &p->record) >= shortest &&
                                        number_of(f, &p->record) <= longest))
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value, "in [0.001, 1e12]");
    return result;
}

static void put_error(const field *f, const clconv_record *r, clconv_text *out)
{
    double value = number_of(f, r);
    if (value >= 0 && value < longest)
        clconv_decimal_put_short(out, value);
}

static int int_of(const field *f, const clconv_record *r)
{
    int value;
    memcpy(&value, text_of(f, r), sizeof value);
    return value;
}

static void put_count(const field *f, const clconv_record *r, clconv_text *out)
{
    if (int_of(f, r) > 0)
        clconv_text_printf(out, "%d", int_of(f, r));
}

/* Compute units, registers, or a generation of NVIDIA's. */
static clconv_record_result take_count(const field *f, const char *value,
                                       clconv_parsed *p)
{
    static const double most = 1 << 20; /* as cl_query.c has it */
    double number;
    if (!clconv_decimal_parse(value, &number) || number < 1 || number > most ||
        number != (int)number)
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value, "in [1, 2^20]");
    int count = (int)number;
    memcpy((char *)&p->record + f->offset, &count, sizeof count);
    return CLCONV_RECORD_OK;
}

/* ---- What is computed -------------------------------------------------- */

static void put_problem(const field *f, const clconv_record *r, clconv_text *out)
{
    (void)f;
    clconv_problem_format(&r->problem, out);
}

/* A flag that a later version has is no damage. */
static clconv_record_result take_problem(const field *f, const char *value,
                                         clconv_parsed *p)
{
    (void)f;
    clconv_desc desc;
    if (clconv_desc_parse(value, &desc) == CLCONV_OK &&
        clconv_problem_init(&desc, &p->record.problem) == CLCONV_OK)
        return CLCONV_RECORD_OK;
    clconv_text_puts(p->why, clconv_last_error());
    return CLCONV_RECORD_UNKNOWN;
}

static const struct {
    const char *word;
    unsigned op;
} op_words[] = {{"dw", CLCONV_OP_DW}, {"db", CLCONV_OP_DB}, {"dx", CLCONV_OP_DX}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void put_ops(const field *f, const clconv_record *r, clconv_text *out)
{
    (void)f;
    const char *separator = "";
    for (size_t i = 0; i < COUNT(op_words); ++i)
        if (r->ops & op_words[i].op) {
            clconv_text_printf(out, "%s%s", separator, op_words[i].word);
            separator = ",";
        }
}

static unsigned find_op(const char *word, size_t length)
{
    for (size_t i = 0; i < COUNT(op_words); ++i)
        if (strlen(op_words[i].word) == length &&
            strncmp(op_words[i].word, word, length) == 0)
            return op_words[i].op;
    return 0;
}

static clconv_record_result take_ops(const field *f, const char *value,
                                     clconv_parsed *p)
{
    const char *at = value;
    for (bool more = true; more; ++at) {
        size_t length = strcspn(at, ",");
        unsigned op = find_op(at, length);
        if (op == 0)
            return refuse(p, CLCONV_RECORD_UNKNOWN, f, value,
                          "some of dw,db,dx");
        p->record.ops |= op;
        at += length;
        more = *at == ',';
    }
    return CLCONV_RECORD_OK;
}

/* ---- The device -------------------------------------------------------- */

static void put_kind(const field *f, const clconv_record *r, clconv_text *out)
{
    (void)f;
    clconv_text_puts(out, r->device.is_cpu ? "cpu" : "gpu");
}

static clconv_record_result take_kind(const field *f, const char *value,
                                      clconv_parsed *p)
{
    p->record.device.is_cpu = strcmp(value, "cpu") == 0;
    if (p->record.device.is_cpu || strcmp(value, "gpu") == 0)
        return CLCONV_RECORD_OK;
    return refuse(p, CLCONV_RECORD_UNKNOWN, f, value, "cpu or gpu");
}

static void put_units(const field *f, const clconv_record *r, clconv_text *out)
{
    (void)f;
    clconv_units_format(r->device.units, out);
}

static clconv_record_result take_units(const field *f, const char *value,
                                       clconv_parsed *p)
{
    if (clconv_units_parse(value, &p->record.device.units))
        return CLCONV_RECORD_OK;
    return refuse(p, CLCONV_RECORD_UNKNOWN, f, value,
                  "none or matrix units of this version, such as "
                  "mma_m16n8k16+wgmma");
}

static void put_emulated(const field *f, const clconv_record *r,
                         clconv_text *out)
{
    (void)f;
    clconv_text_puts(out, r->device.unit_emulated ? "yes" : "");
}

static clconv_record_result take_emulated(const field *f, const char *value,
                                          clconv_parsed *p)
{
    if (strcmp(value, "yes") != 0)
        return refuse(p, CLCONV_RECORD_UNKNOWN, f, value, "yes, or left out");
    p->record.device.unit_emulated = true;
    return CLCONV_RECORD_OK;
}

/* ---- The plan's kernels ------------------------------------------------ */

void clconv_record_put_revisions(const clconv_choice choices[CLCONV_ROLES],
                                 clconv_text *out)
{
    const char *separator = "";
    for (int role = 0; role < CLCONV_ROLES; ++role) {
        const clconv_kernel *k = choices[role].kernel;
        if (!k)
            continue;
        clconv_text_printf(out, "%s%s:%d", separator, k->name, k->revision);
        separator = ",";
    }
}

static void put_revisions(const field *f, const clconv_record *r,
                          clconv_text *out)
{
    (void)f;
    clconv_choice choices[CLCONV_ROLES];
    if (clconv_choices_parse(r->plan, choices) == CLCONV_OK)
        clconv_record_put_revisions(choices, out);
}

static clconv_record_result take_revisions(const field *f, const char *value,
                                           clconv_parsed *p)
{
    if (strlen(value) >= sizeof p->revisions)
        return refuse(p, CLCONV_RECORD_DAMAGED, f, value, "shorter");
    strcpy(p->revisions, value);
    return CLCONV_RECORD_OK;
}

/* ---- The table --------------------------------------------------------- */

#define MEMBER(member)                                                         \
    offsetof(clconv_record, member), sizeof(((clconv_record *)0)->member)

/* In the order of a line. */
static const field fields[] = {
    {"problem", put_problem, take_problem, 0, 0, true, true},
    {"ops", put_ops, take_ops, 0, 0, true, true},
    {"plan", put_text, take_text, MEMBER(plan), true, false},
    {"us", put_microseconds, take_microseconds, MEMBER(microseconds), true,
     false},
    {"default_us", put_microseconds, take_microseconds,
     MEMBER(default_microseconds), false, false},
    {"error", put_error, take_number, MEMBER(error), false, false},
    {"kind", put_kind, take_kind, 0, 0, true, true},
    {"unit", put_units, take_units, 0, 0, true, true},
    {"emulated", put_emulated, take_emulated, 0, 0, false, true},
    {"sm", put_count, take_count, MEMBER(device.nv_sm), false, true},
    {"registers", put_count, take_count, MEMBER(device.vector_registers), false,
     true},
    {"device", put_text, take_text, MEMBER(device.name), true, true},
    {"cus", put_count, take_count, MEMBER(device.compute_units), true, true},
    {"vendor", put_text, take_text, MEMBER(device.vendor), true, true},
    {"platform", put_text, take_text, MEMBER(device.platform), true, true},
    {"driver", put_text, take_text, MEMBER(device.driver), true, true},
    {"revisions", put_revisions, take_revisions, 0, 0, true, false},
    {"date", put_date, take_date, MEMBER(date), false, false},
};

_Static_assert(COUNT(fields) <= 32, "a bit each in parsed.seen");

void clconv_record_put_fields(const clconv_record *r, bool keys_only,
                              clconv_text *out)
{
    const char *separator = "";
    for (size_t i = 0; i < COUNT(fields); ++i) {
        clconv_text value = CLCONV_TEXT_EMPTY;
        if (keys_only && !fields[i].is_key)
            continue;
        fields[i].put(&fields[i], r, &value);
        if (value.length) {
            clconv_text_printf(out, "%s%s=%s", separator, fields[i].name,
                               value.data);
            separator = " ";
        }
        out->failed |= value.failed;
        clconv_text_free(&value);
    }
}

clconv_record_result
clconv_record_take_field(const char *name, const char *value, clconv_parsed *p)
{
    for (size_t i = 0; i < COUNT(fields); ++i) {
        if (strcmp(fields[i].name, name) != 0)
            continue;
        if (p->seen & 1u << i)
            return refuse(p, CLCONV_RECORD_DAMAGED, &fields[i], value,
                          "there once");
        p->seen |= 1u << i;
        return fields[i].take(&fields[i], value, p);
    }
    if (strcmp(name, "check") == 0) {
        clconv_text_puts(p->why, "check= must be the last, with 16 digits");
        return CLCONV_RECORD_DAMAGED;
    }
    clconv_text_printf(p->why, "there is no field %s in this version", name);
    return CLCONV_RECORD_UNKNOWN;
}

clconv_record_result clconv_record_check_fields(const clconv_parsed *p)
{
    for (size_t i = 0; i < COUNT(fields); ++i)
        if (fields[i].required && !(p->seen & 1u << i)) {
            clconv_text_printf(p->why, "%s= is missing", fields[i].name);
            return CLCONV_RECORD_DAMAGED;
        }
    return CLCONV_RECORD_OK;
}
