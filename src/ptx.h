/*
 * Instructions that NVIDIA's OpenCL compiler refuses because it compiles for
 * sm_90, not sm_90a. A kernel hides such an instruction from the compiler
 * behind a mark, which makes it a comment of the assembly,
 *
 *     asm volatile("//@@wgmma.fence.sync.aligned;" ::: "memory");
 *
 * and the PTX that the compiler returns, operands filled in, is made one for
 * sm_90a. Pure text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PTX_H
#define CLCONV_PTX_H

#include <stdbool.h>

#include "status.h"

#define CLCONV_PTX_MARK "//@@"

/* Stands in the key of every cached program: bump it when the same source comes
 * to be retargeted to another program. */
#define CLCONV_PTX_REVISION 1

/* Does this OpenCL C hold such instructions? */
bool clconv_ptx_wants_retarget(const char *source);

/* The PTX with the mark gone from every line that it begins, and for sm_90a in
 * place of sm_90; *out is yours to free(). ptx may end with a terminator.
 * BUILD_FAILED if it is no PTX for either with marked lines. */
clconv_status clconv_ptx_retarget(const char *ptx, size_t length, char **out);

#endif
