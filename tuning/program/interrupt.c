/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void remember(int number)
{
    seen = 1;
    signal(number, SIG_DFL);
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = remember};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool interrupt_seen(void)
{
    return seen != 0;
}
