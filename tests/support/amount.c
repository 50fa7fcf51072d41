/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "amount.h"

#include <stdlib.h>

int amount(int few, int many)
{
    return getenv("CLCONV_TEST_LONG") ? many : few;
}
