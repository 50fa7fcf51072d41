# clconv_add_objects(NAME SOURCE...): a layer of the library, compiled once
# into objects that several libraries bundle. All layers see the public header
# and each other's headers by bare name; which may use which is a rule for
# people (CONTRIBUTING.md), and a test holds OpenCL out of the lower ones.
#
# SPDX-License-Identifier: Apache-2.0

function(clconv_add_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/include
        ${PROJECT_SOURCE_DIR}/src
        ${PROJECT_SOURCE_DIR}/kernelgen)
    target_include_directories(${name} SYSTEM PRIVATE
        ${OpenCL_INCLUDE_DIRS} ${XXHASH_INCLUDE_DIR})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
