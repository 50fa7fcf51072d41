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
    ${PROJECT_SOURCE_DIR}/kernelgen/grouped
    ${PROJECT_SOURCE_DIR}/kernelgen/panel
    ${PROJECT_SOURCE_DIR}/kernelgen/tile
    ${PROJECT_SOURCE_DIR}/kernelgen/wgmma
    ${PROJECT_SOURCE_DIR}/tuning
)

function(clconv_add_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${clconv_layer_dirs})
    target_include_directories(${name} SYSTEM PRIVATE
        ${OpenCL_INCLUDE_DIRS} ${XXHASH_INCLUDE_DIR})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# clconv_add_embedded(NAME HEADER TABLE COUNT file...): a layer that is a table
# of the files' texts, written at build time (cmake/EmbedParts.cmake).
function(clconv_add_embedded name header table count)
    set(files ${ARGN})
    list(TRANSFORM files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(JOIN files "," files_argument)
    set(code ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
    set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedParts.cmake)
    add_custom_command(OUTPUT ${code}
        COMMAND ${CMAKE_COMMAND} -DOUT=${code} -DHEADER=${header}
            -DTABLE=${table} -DCOUNT=${count} -DPARTS=${files_argument}
            -P ${script}
        DEPENDS ${files} ${script}
        COMMENT "Embedding ${table}" VERBATIM)
    clconv_add_objects(${name} ${code})
    if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
        # A text may be longer than the 4095 bytes that C11 promises.
        target_compile_options(${name} PRIVATE -Wno-overlength-strings)
    endif()
endfunction()
