/*
 * What main() of a test program does that has a reason of its own to be
 * skipped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

/* Criterion's own main(): options, tests, exit status. */
int run_tests(int argc, char **argv);

#endif
