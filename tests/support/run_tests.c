/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run_tests.h"

#include <criterion/criterion.h>

int run_tests(int argc, char **argv)
{
    struct criterion_test_set *tests = criterion_initialize();
    int status = 0;
    if (criterion_handle_args(argc, argv, true))
        status = criterion_run_all_tests(tests) ? 0 : 1;
    criterion_finalize(tests);
    return status;
}
