#!/bin/sh
# symbols.sh NM PURE_ARCHIVE RUNTIME_ARCHIVE
#
# Fails if the pure archive (generator, planner) names any OpenCL function,
# defined or not; and if none is found in the runtime's archive, because then
# this script could not have found one in the other.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

nm=$1
pure=$2
runtime=$3

# "object: symbol" of each OpenCL function that an archive names.
opencl_symbols() {
    "$nm" -A -P "$1" | sed 's/^.*\[\(.*\)\]: /\1: /' |
        awk '$2 ~ /^cl[A-Z]/ { print $1, $2 }'
}

found=$(opencl_symbols "$pure")
if [ -n "$found" ]; then
    echo "OpenCL symbols where there must be none:"
    echo "$found"
    exit 1
fi
if ! "$nm" -P "$pure" | grep -q '^clconv_'; then
    echo "no clconv_ symbol in $pure: nothing was checked"
    exit 1
fi
if ! opencl_symbols "$runtime" | grep -q '^cl_build'; then
    echo "no OpenCL symbol found in cl_build of $runtime: the check is blind"
    exit 1
fi
