# cmake -DOUT=FILE.c -DPARTS=a.cl,b.cl -P EmbedParts.cmake
#
# Writes the OpenCL C parts into one C file as the table that
# kernelgen/parts.h declares, sorted by name (the file name without its
# ending). Every byte arrives as it stands in the part.
#
# SPDX-License-Identifier: Apache-2.0

# One C string literal a line of text. A question mark is escaped too, or two
# of them could begin a trigraph.
function(clconv_quote text out)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}")
    string(REPLACE "\t" "\\t" text "${text}")
    string(REPLACE "\n" "\\n\"\n      \"" text "${text}")
    set(${out} "\"${text}\"" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" paths "${PARTS}")
set(rows "")
set(names "")
foreach(path IN LISTS paths)
    get_filename_component(name "${path}" NAME_WE)
    list(APPEND names "${name}")
    set(path_of_${name} "${path}")
endforeach()
list(SORT names)

set(code "/* Generated from kernels/ by EmbedParts.cmake. */\n")
string(APPEND code "#include \"parts.h\"\n\n")
string(APPEND code "const clconv_part clconv_parts[] = {\n")
foreach(name IN LISTS names)
    file(READ "${path_of_${name}}" text)
    clconv_quote("${text}" literal)
    string(APPEND code "    { \"${name}\",\n      ${literal} },\n")
endforeach()
string(APPEND code "};\n\nconst size_t clconv_part_count =\n"
    "    sizeof(clconv_parts) / sizeof(clconv_parts[0]);\n")
file(WRITE "${OUT}" "${code}")
