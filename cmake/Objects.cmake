# clconv_add_objects(NAME SOURCE...): a layer of the library, compiled once
# into objects that several libraries bundle. All layers see the public header
# and each other's headers by bare name; which may use which is a rule for
# people (CONTRIBUTING.md), and a test holds OpenCL out of the lower ones.
#
# SPDX-License-Identifier: Apache-2.0

set(clconv_layer_dirs
    ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/kernelgen
    ${PROJECT_SOURCE_DIR}/kernelgen/depthwise
    ${PROJECT_SOURCE_DIR}/kernelgen/gemm
    ${PROJECT_SOURCE_DIR}/kernelgen/generic
    ${PROJECT_SOURCE_DIR}/kernelgen/panel
    ${PROJECT_SOURCE_DIR}/kernelgen/tile
)

function(clconv_add_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${clconv_layer_dirs})
    target_include_directories(${name} SYSTEM PRIVATE
        ${OpenCL_INCLUDE_DIRS} ${XXHASH_INCLUDE_DIR})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
