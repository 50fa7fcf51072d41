/*
 * What OpenCL says of a device and its context, as plain facts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_QUERY_H
#define CLCONV_CL_QUERY_H

#include "device.h"
#include "status.h"

/*
 * INVALID_ARGUMENT if either is NULL or the device is not one of the
 * context's, UNSUPPORTED if we cannot compile for it, unless it is offline and
 * nothing shall be compiled, or it is big-endian. A fact that the device does
 * not answer gets a careful value.
 */
clconv_status clconv_query_device(cl_context context, cl_device_id device,
                                  bool offline, clconv_device *out);

/*
 * Does this driver compile at the first launch, and freeze a program's binary
 * when it is first asked for it? Asked before a launch, PoCL 3.1 gives a
 * binary with which every later process compiles again (0.2 s a kernel).
 */
bool clconv_query_compiles_late(cl_device_id device);

/* Device, platform, driver and compiler, a line each: whatever makes another
 * binary of the same source. Yours to free(); NULL: no memory. */
char *clconv_query_identity(cl_device_id device);

#endif
