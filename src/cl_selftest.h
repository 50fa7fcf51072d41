/*
 * Matrix units that a device's names do not tell: whether the driver takes the
 * kernels' way to them is found out by multiplying once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_SELFTEST_H
#define CLCONV_CL_SELFTEST_H

#include "cl_cache.h"

/* Does wgmma give the right product? If not, the log says why. The program
 * comes from the cache: later contexts compile nothing. */
bool clconv_selftest_wgmma(cl_context context, cl_device_id device,
                           clconv_cache *cache, const clconv_log *log);

#endif
