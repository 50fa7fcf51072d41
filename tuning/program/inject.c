/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"

/* ---- Deeds ------------------------------------------------------------- */

static void crash(clconv_trial *trial)
{
    (void)trial;
    abort();
}

static void hang(clconv_trial *trial)
{
    (void)trial;
    for (;;)
        pause();
}

static void quit(clconv_trial *trial)
{
    (void)trial;
    exit(EXIT_SUCCESS);
}

static void spoil(clconv_trial *trial)
{
    *trial = trial_failed(CLCONV_TRIAL_WRONG, "injected: wrong");
}

static const struct {
    const char *word;
    void (*deed)(clconv_trial *trial);
    command_verb verb;
} deeds[INJECT_DEEDS] = {
    [INJECT_CRASH] = {"crash", crash, COMMAND_PREPARE},
    [INJECT_CRASH_TIMED] = {"crash-timed", crash, COMMAND_TIME},
    [INJECT_HANG] = {"hang", hang, COMMAND_PREPARE},
    [INJECT_HANG_TIMED] = {"hang-timed", hang, COMMAND_TIME},
    [INJECT_QUIT] = {"quit", quit, COMMAND_PREPARE},
    [INJECT_WRONG] = {"wrong", spoil, COMMAND_PREPARE},
};

static bool is_meant(const inject *i, command_verb verb, const char *plan)
{
    return i->deed != INJECT_NOTHING && deeds[i->deed].verb == verb &&
           strstr(plan, i->text);
}

bool inject_do(const inject *i, command_verb verb, const char *plan,
               clconv_trial *trial)
{
    if (!is_meant(i, verb, plan))
        return false;
    fprintf(stderr, "injected: %s\n", deeds[i->deed].word);
    deeds[i->deed].deed(trial);
    return true;
}

/* ---- Option ------------------------------------------------------------ */

bool inject_parse(const char *option, const char *value, inject *out)
{
    size_t length = strcspn(value, ":");
    for (int i = 1; value[length] && i < INJECT_DEEDS; ++i)
        if (strlen(deeds[i].word) == length &&
            strncmp(deeds[i].word, value, length) == 0) {
            *out = (inject){(inject_deed)i, value + length + 1};
            return true;
        }
    clconv_text words = CLCONV_TEXT_EMPTY;
    for (int i = 1; i < INJECT_DEEDS; ++i)
        clconv_text_printf(&words, "%s%s", i == 1 ? "" : ", ", deeds[i].word);
    message_error("%s %s: must be DEED:TEXT, where DEED is one of %s", option,
                  value, words.data ? words.data : "");
    clconv_text_free(&words);
    return false;
}
