/*
 * How an OpenCL call fails: return clconv_cl_fail("clCreateBuffer", error).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_ERROR_H
#define CLCONV_CL_ERROR_H

#include "status.h"

/* "CL_OUT_OF_RESOURCES"; "unknown OpenCL error" for what we do not know. */
const char *clconv_cl_error_name(cl_int error);

/* OPENCL_ERROR, or OUT_OF_MEMORY where OpenCL says so, with a sentence that
 * names the call and the error. */
clconv_status clconv_cl_fail(const char *call, cl_int error);

#endif
