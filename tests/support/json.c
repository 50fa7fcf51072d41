/*
 * Every take_ function moves *at behind one thing, or returns false.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static bool take_value(const char **at);

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool take_char(const char **at, char wanted)
{
    if (**at != wanted)
        return false;
    ++*at;
    skip_blanks(at);
    return true;
}

static bool take_word(const char **at, const char *word)
{
    if (strncmp(*at, word, strlen(word)) != 0)
        return false;
    *at += strlen(word);
    return true;
}

static bool take_digits(const char **at)
{
    const char *first = *at;

    while (isdigit((unsigned char)**at))
        ++*at;
    return *at > first;
}

static bool take_number(const char **at)
{
    const char *first;

    if (**at == '-')
        ++*at;
    first = *at;
    if (!take_digits(at) || (*first == '0' && *at - first > 1))
        return false;
    if (**at == '.' && (++*at, !take_digits(at)))
        return false;
    if (**at == 'e' || **at == 'E') {
        ++*at;
        if (**at == '+' || **at == '-')
            ++*at;
        return take_digits(at);
    }
    return true;
}

static bool take_escape(const char **at)
{
    ++*at;
    if (**at == 'u') {
        for (int i = 0; i < 4; ++i) {
            if (!isxdigit((unsigned char)*++*at))
                return false;
        }
    } else if (**at == '\0' || !strchr("\"\\/bfnrt", **at)) {
        return false;
    }
    ++*at;
    return true;
}

static bool take_string(const char **at)
{
    if (**at != '"')
        return false;
    for (++*at; **at != '"';) {
        if ((unsigned char)**at < 0x20)
            return false;
        if (**at != '\\')
            ++*at;
        else if (!take_escape(at))
            return false;
    }
    return take_char(at, '"');
}

static bool take_member(const char **at)
{
    return take_string(at) && take_char(at, ':') && take_value(at);
}

/* Items between open, which is next, and close. */
static bool take_items(const char **at, char open, char close,
                       bool (*take_item)(const char **))
{
    if (!take_char(at, open))
        return false;
    if (take_char(at, close))
        return true;
    do {
        if (!take_item(at))
            return false;
    } while (take_char(at, ','));
    return take_char(at, close);
}

static bool take_value(const char **at)
{
    bool ok;

    skip_blanks(at);
    switch (**at) {
    case '{': ok = take_items(at, '{', '}', take_member); break;
    case '[': ok = take_items(at, '[', ']', take_value); break;
    case '"': ok = take_string(at); break;
    case 't': ok = take_word(at, "true"); break;
    case 'f': ok = take_word(at, "false"); break;
    case 'n': ok = take_word(at, "null"); break;
    default: ok = take_number(at);
    }
    skip_blanks(at);
    return ok;
}

bool json_is_valid(const char *text)
{
    return take_value(&text) && *text == '\0';
}
