/*
 * Ctrl-C, a closed terminal, a request to end: the first is remembered, so that
 * what was found is kept; a second one of its kind ends the program at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_INTERRUPT_H
#define CLCONV_TUNE_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void);
bool interrupt_seen(void);

#endif
