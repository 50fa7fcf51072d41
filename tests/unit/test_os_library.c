/*
 * Shared libraries found at run time; OpenCL's is one that is always there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <CL/cl.h>
#include <criterion/criterion.h>

#include "os.h"

typedef cl_int platforms_fn(cl_uint count, cl_platform_id *out, cl_uint *found);

Test(os_library, a_function_is_found_by_its_name)
{
    clconv_os_library *library = clconv_os_library_get("libOpenCL.so.1");
    platforms_fn *found = NULL;
    cr_assert_not_null(library);
    cr_assert(clconv_os_function(library, "clGetPlatformIDs", &found));
    cr_assert(found == clGetPlatformIDs);
}

Test(os_library, what_is_not_there_is_not_found)
{
    clconv_os_library *library = clconv_os_library_get("libOpenCL.so.1");
    platforms_fn *found = clGetPlatformIDs;
    cr_assert_null(clconv_os_library_get("libno-such-library.so.1"));
    cr_assert_not(clconv_os_function(library, "clNoSuchFunction", &found));
    cr_assert(found == clGetPlatformIDs, "it must stay untouched");
}
