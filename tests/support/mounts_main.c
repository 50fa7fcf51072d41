/*
 * main() of test programs that mount: where that is forbidden it says so and
 * returns 77, which ctest reads as "skipped".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "mounts.h"
#include "run_tests.h"

int main(int argc, char **argv)
{
    if (!mounts_allow()) {
        fprintf(stderr, "skipped: no file system can be mounted here: %s\n",
                strerror(errno));
        return HOST_EXIT_SKIP;
    }
    return run_tests(argc, argv);
}
