# What must be there before anything is built. Debian's names for all of it
# stand in scripts/packages.txt.
#
# SPDX-License-Identifier: Apache-2.0

# clconv_need(VARIABLE what debian-package)
function(clconv_need variable what package)
    if(NOT ${variable})
        message(FATAL_ERROR "${what} not found; on Debian: ${package}")
    endif()
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_package(OpenCL)
clconv_need(OpenCL_FOUND "OpenCL loader and headers" ocl-icd-opencl-dev)

# Header only: nothing of xxHash is linked.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
clconv_need(XXHASH_INCLUDE_DIR "xxHash's header" libxxhash-dev)

if(CLCONV_BUILD_EXAMPLES OR CLCONV_BUILD_TESTS)
    find_package(ZLIB)
    clconv_need(ZLIB_FOUND "zlib" zlib1g-dev)
endif()

if(CLCONV_BUILD_TESTS)
    find_path(CRITERION_INCLUDE_DIR criterion/criterion.h)
    find_library(CRITERION_LIBRARY criterion)
    clconv_need(CRITERION_LIBRARY "Criterion (or set CLCONV_BUILD_TESTS=OFF)"
        libcriterion-dev)
endif()

# What clconv-bench compares with: one that is missing is a column fewer.
if(CLCONV_BUILD_BENCH OR CLCONV_BUILD_TESTS)
    find_path(CLBLAST_INCLUDE_DIR clblast_c.h)
    find_library(CLBLAST_LIBRARY clblast)
    find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
    find_library(ONEDNN_LIBRARY dnnl)
    if(ONEDNN_INCLUDE_DIR)
        file(STRINGS ${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h
            onednn_major REGEX "define DNNL_VERSION_MAJOR")
        string(REGEX REPLACE "[^0-9]" "" onednn_major "${onednn_major}")
    endif()
endif()
