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

/* nohup and shells have some signals ignored: they stay so. */
static void catch_one(int number)
{
    struct sigaction action = {.sa_handler = remember}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void interrupt_catch(void)
{
    catch_one(SIGINT);
    catch_one(SIGTERM);
    catch_one(SIGHUP);
}

bool interrupt_seen(void)
{
    return seen != 0;
}
