/*
 * Problem strings: printing and parsing, their one place. The grammar is in
 * clconv.h at clconv_desc_parse().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "status.h"

/* ---- Printing --------------------------------------------------------- */

static void put_pair(clconv_text *out, char letter, int64_t a, int64_t b,
                     int64_t usual)
{
    if (a == usual && b == usual)
        return;
    clconv_text_printf(out, "%c%" PRId64, letter, a);
    if (a != b)
        clconv_text_printf(out, "x%" PRId64, b);
}

static void put_padding(clconv_text *out, const clconv_desc *d)
{
    if (d->pad_top == d->pad_bottom && d->pad_left == d->pad_right)
        put_pair(out, 'p', d->pad_top, d->pad_left, 0);
    else
        clconv_text_printf(out, "p%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64,
                           d->pad_top, d->pad_bottom, d->pad_left, d->pad_right);
}

/* A flag without a number stands for one value of one field. */
typedef struct flag {
    const char *text;
    size_t field; /* offset of an enum in clconv_desc */
    int value;
} flag;

/* clang-format off */
#define FLAG(text, member, value) {text, offsetof(clconv_desc, member), value}
/* clang-format on */

static const flag flags[] = {
    FLAG("nhwc", layout, CLCONV_NHWC),    FLAG("fp32", math, CLCONV_FP32),
    FLAG("x16", x_type, CLCONV_F16),      FLAG("w16", w_type, CLCONV_F16),
    FLAG("dy16", dy_type, CLCONV_F16),    FLAG("dw16", dw_type, CLCONV_F16),
    FLAG("db16", db_type, CLCONV_F16),    FLAG("dx16", dx_type, CLCONV_F16),
    FLAG("y16", y_type, CLCONV_F16),      FLAG("b16", b_type, CLCONV_F16),
    FLAG("inf", overflow, CLCONV_TO_INF), FLAG("relu", activation, CLCONV_RELU),
};

/* Flags with a number: an exponent, or the alignment. */
static const flag numbers[] = {
    FLAG("scale", scale_log2, CLCONV_SCALE_LOG2_DEFAULT),
    FLAG("dylog", dy_log2, 0),
    FLAG("dxlog", dx_log2, 0),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The enums of clconv_desc have the size of an int (C11 6.7.2.2: some integer
 * type; every compiler that OpenCL hosts use takes int or unsigned). */
_Static_assert(sizeof(clconv_type) == sizeof(int), "enums are ints");

static int get_int(const clconv_desc *d, size_t offset)
{
    int value;
    memcpy(&value, (const char *)d + offset, sizeof value);
    return value;
}

static void set_int(clconv_desc *d, size_t offset, int value)
{
    memcpy((char *)d + offset, &value, sizeof value);
}

static void format(const clconv_desc *d, clconv_text *out)
{
    clconv_text_printf(out,
                       "n%" PRId64 "c%" PRId64 "h%" PRId64 "w%" PRId64
                       "k%" PRId64 "r%" PRId64 "s%" PRId64,
                       d->n, d->c, d->h, d->w, d->k, d->r, d->s);
    put_pair(out, 'u', d->stride_h, d->stride_w, 1);
    put_padding(out, d);
    put_pair(out, 'd', d->dilation_h, d->dilation_w, 1);
    if (d->groups != 1)
        clconv_text_printf(out, "g%" PRId64, d->groups);
    for (size_t i = 0; i < COUNT(flags); ++i)
        if (get_int(d, flags[i].field) == flags[i].value)
            clconv_text_printf(out, "_%s", flags[i].text);
    for (size_t i = 0; i < COUNT(numbers); ++i)
        if (get_int(d, numbers[i].field) != numbers[i].value)
            clconv_text_printf(out, "_%s%d", numbers[i].text,
                               get_int(d, numbers[i].field));
    if (d->alignment != 16)
        clconv_text_printf(out, "_align%zu", d->alignment);
}

size_t clconv_desc_format(const clconv_desc *desc, char *text, size_t size)
{
    clconv_text whole = CLCONV_TEXT_EMPTY;
    clconv_desc d;
    if (clconv_problem_read_desc(desc, &d) == CLCONV_OK)
        format(&d, &whole);
    char *string = clconv_text_take(&whole);
    size_t length = string ? strlen(string) : 0;
    if (size) {
        size_t part = length < size ? length : size - 1;
        if (part)
            memcpy(text, string, part);
        text[part] = '\0';
    }
    free(string);
    return length;
}

void clconv_problem_format(const clconv_problem *p, clconv_text *out)
{
    clconv_desc d;
    clconv_desc_init(&d);
    d.n = p->n, d.c = p->c, d.h = p->h, d.w = p->w;
    d.k = p->k, d.r = p->r, d.s = p->s;
    d.stride_h = p->stride_h, d.stride_w = p->stride_w;
    d.pad_top = p->pad_top, d.pad_bottom = p->pad_bottom;
    d.pad_left = p->pad_left, d.pad_right = p->pad_right;
    d.dilation_h = p->dilation_h, d.dilation_w = p->dilation_w;
    d.groups = p->groups;
    d.layout = p->layout, d.math = p->math, d.overflow = p->overflow;
    d.x_type = p->type[CLCONV_X], d.w_type = p->type[CLCONV_W];
    d.dy_type = p->type[CLCONV_DY], d.dw_type = p->type[CLCONV_DW];
    d.db_type = p->type[CLCONV_DB], d.dx_type = p->type[CLCONV_DX];
    d.y_type = p->type[CLCONV_Y], d.b_type = p->type[CLCONV_B];
    d.activation = p->activation;
    d.scale_log2 = p->scale_log2;
    d.dy_log2 = p->dy_log2, d.dx_log2 = p->dx_log2;
    d.alignment = p->alignment;
    format(&d, out);
}

/* ---- Parsing ---------------------------------------------------------- */

typedef struct parser {
    const char *text; /* the whole, for messages */
    const char *at;
    bool letters[256]; /* options that were there already */
} parser;

static clconv_status fail_at(const parser *in, const char *expected)
{
    if (!*in->at)
        return clconv_fail(CLCONV_INVALID_ARGUMENT,
                           "problem string \"%.200s\": expected %s at its end",
                           in->text, expected);
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "problem string \"%.200s\": expected %s at \"%.40s\"",
                       in->text, expected, in->at);
}

/* Decimal digits, with a sign if it may be negative; false if there are none
 * or the value exceeds 2^31 - 1. */
static bool take_number(parser *in, bool is_signed, int64_t *out)
{
    const char *s = in->at;
    bool negative = is_signed && *s == '-';
    s += negative;
    if (*s < '0' || *s > '9')
        return false;
    int64_t value = 0;
    for (; *s >= '0' && *s <= '9'; ++s) {
        value = value * 10 + (*s - '0');
        if (value > INT32_MAX)
            return false;
    }
    *out = negative ? -value : value;
    in->at = s;
    return true;
}

static clconv_status parse_sizes(parser *in, clconv_desc *d)
{
    int64_t *const fields[] = {&d->n, &d->c, &d->h, &d->w, &d->k, &d->r, &d->s};
    static const char letters[] = "nchwkrs";
    for (size_t i = 0; i < COUNT(fields); ++i) {
        char expected[] = "?NUMBER (sizes n c h w k r s in this order, each "
                          "below 2^31)";
        expected[0] = letters[i];
        if (*in->at != letters[i])
            return fail_at(in, expected);
        ++in->at;
        if (!take_number(in, false, fields[i]))
            return fail_at(in, expected);
    }
    return CLCONV_OK;
}

/* "1", "1x2" or "1x0x2x0" after the letter; returns how many, 0 if none. */
static int take_list(parser *in, int64_t out[4])
{
    int count = 0;
    do {
        if (count == 4 || !take_number(in, false, &out[count]))
            return 0;
        ++count;
    } while (*in->at == 'x' && ++in->at);
    return count;
}

static void set_pair(int64_t *a, int64_t *b, const int64_t *list, int count)
{
    *a = list[0];
    *b = list[count - 1];
}

static clconv_status parse_option(parser *in, clconv_desc *d)
{
    if (in->letters[(unsigned char)*in->at])
        return fail_at(in, "each of u, p, d and g once, not again");
    in->letters[(unsigned char)*in->at] = true;
    char letter = *in->at++;
    int64_t list[4];
    int count = take_list(in, list);
    if (count == 1 || count == 2) {
        switch (letter) {
        case 'u':
            set_pair(&d->stride_h, &d->stride_w, list, count);
            return CLCONV_OK;
        case 'd':
            set_pair(&d->dilation_h, &d->dilation_w, list, count);
            return CLCONV_OK;
        case 'p':
            set_pair(&d->pad_top, &d->pad_left, list, count);
            set_pair(&d->pad_bottom, &d->pad_right, list, count);
            return CLCONV_OK;
        case 'g':
            if (count == 2)
                break;
            d->groups = list[0];
            return CLCONV_OK;
        }
    }
    if (count == 4 && letter == 'p') {
        d->pad_top = list[0], d->pad_bottom = list[1];
        d->pad_left = list[2], d->pad_right = list[3];
        return CLCONV_OK;
    }
    return fail_at(in, "u1, u2x1, p1, p1x2, p1x0x2x0, d2, d2x1 or g4");
}

/* Does the text at hand start with this word, and does no letter follow? */
static bool take_word(parser *in, const char *word, bool number_follows)
{
    size_t length = strlen(word);
    if (strncmp(in->at, word, length) != 0)
        return false;
    char next = in->at[length];
    if (!number_follows && next != '\0' && next != '_')
        return false;
    in->at += length;
    return true;
}

static clconv_status parse_flag(parser *in, clconv_desc *d)
{
    int64_t value;
    for (size_t i = 0; i < COUNT(flags); ++i)
        if (take_word(in, flags[i].text, false)) {
            set_int(d, flags[i].field, flags[i].value);
            return CLCONV_OK;
        }
    for (size_t i = 0; i < COUNT(numbers); ++i)
        if (take_word(in, numbers[i].text, true)) {
            if (!take_number(in, true, &value))
                return fail_at(in, "a number");
            set_int(d, numbers[i].field, (int)value);
            return CLCONV_OK;
        }
    if (take_word(in, "align", true) && take_number(in, false, &value)) {
        d->alignment = (size_t)value;
        return CLCONV_OK;
    }
    return fail_at(in, "nhwc, fp32, x16, w16, dy16, dw16, db16, dx16, y16, "
                       "b16, inf, relu, scaleN, dylogN, dxlogN or alignN");
}

clconv_status clconv_desc_parse(const char *text, clconv_desc *desc)
{
    if (!text || !desc)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s is NULL",
                           text ? "desc" : "text");
    clconv_desc d;
    clconv_desc_init(&d);
    parser in = {.text = text, .at = text};
    clconv_status status = parse_sizes(&in, &d);
    while (status == CLCONV_OK && *in.at && *in.at != '_')
        status = parse_option(&in, &d);
    while (status == CLCONV_OK && *in.at) {
        if (*in.at != '_')
            return fail_at(&in, "_ before a flag, or the end");
        ++in.at;
        status = parse_flag(&in, &d);
    }
    if (status == CLCONV_OK)
        status = clconv_desc_validate(&d);
    if (status == CLCONV_OK)
        *desc = d;
    return status;
}
