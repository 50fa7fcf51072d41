/*
 * Programs from source and from binaries, for one device. No state, no cache:
 * see cl_cache.h for that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_BUILD_H
#define CLCONV_CL_BUILD_H

#include "log.h"
#include "status.h"

/* What every program of ours is built with. Not fast-math: it drops NaN. */
#define CLCONV_BUILD_OPTIONS "-cl-std=CL1.2 -w"

/* BUILD_FAILED with the first lines of the compiler's log in the sentence;
 * all of it goes to the log. name is the kernel's, for the messages. Source
 * with instructions for sm_90a (ptx.h) gives a program that has them. */
clconv_status clconv_build_source(cl_context context, cl_device_id device,
                                  const char *name, const char *source,
                                  const clconv_log *log, cl_program *out);

/* False if the driver does not take the binary: build from source then. */
bool clconv_build_binary(cl_context context, cl_device_id device,
                         const unsigned char *data, size_t size,
                         cl_program *out);

/* Bytes of the program's binary for this device as it is now; 0: none. */
size_t clconv_build_binary_size(cl_program program, cl_device_id device);

/* That binary, yours to free(); false if there is none. */
bool clconv_build_get_binary(cl_program program, cl_device_id device,
                             unsigned char **data, size_t *size);

#endif
