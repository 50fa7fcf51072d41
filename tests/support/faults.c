/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "faults.h"

#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

int faults_of(int (*body)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
