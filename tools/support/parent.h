/*
 * A program that another one started, and whose stdin is a pipe from it: it
 * shall not outlive its parent, however that ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_PARENT_H
#define CLCONV_TOOLS_PARENT_H

#include <stdbool.h>

/* From now on this process ends when the other end of stdin is closed, as it is
 * by the kernel when the parent is killed; at once if that was before. Reads
 * nothing. False: no thread could be started. */
bool parent_watch(void);

#endif
