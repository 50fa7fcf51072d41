/*
 * A thread of its own waits, so that the process also ends while a driver hangs
 * or compiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parent.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_for_end(void *unused)
{
    (void)unused;
    struct pollfd in = {STDIN_FILENO, 0, 0};
    for (;;)
        if (poll(&in, 1, -1) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
            _exit(EXIT_SUCCESS);
}

bool parent_watch(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, wait_for_end, NULL) == 0 &&
           pthread_detach(thread) == 0;
}
