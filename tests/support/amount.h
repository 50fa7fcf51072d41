/*
 * How often a test repeats what chance decides: more in the slow set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TESTS_AMOUNT_H
#define CLCONV_TESTS_AMOUNT_H

/* few; many where CLCONV_TEST_LONG is set, as the slow set has it. */
int amount(int few, int many);

#endif
