/*
 * Prints the kernel by which clconv-bench measures wgmma's peak.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "probe_wgmma.h"

int main(void)
{
    char *text = probe_wgmma_text();
    bool printed = text && fputs(text, stdout) >= 0 && fflush(stdout) == 0;

    free(text);
    return printed ? EXIT_SUCCESS : EXIT_FAILURE;
}
