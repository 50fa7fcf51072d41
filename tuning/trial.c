/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "trial.h"

#define OUTCOME_WORD(name, word) [name] = word,
static const char *const words[] = {CLCONV_OUTCOME_LIST(OUTCOME_WORD)};
#undef OUTCOME_WORD

const char *clconv_outcome_word(clconv_outcome outcome)
{
    if ((unsigned)outcome >= CLCONV_OUTCOMES)
        return "unknown";
    return words[outcome];
}
