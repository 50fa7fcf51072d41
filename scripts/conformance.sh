#!/bin/bash
# conformance.sh [clconv-check option...]: every list of tests/problems at
# batch 1, in both layouts and both maths, held against the fp64 reference by
# clconv-check; rows of more than 2 GFLOP a gradient are skipped. One process
# per list, layout and math, as many at once as there are cores. Options such
# as --device TEXT, --emulate UNIT, --batch 2 or --max-gflop X go to all of
# them, and the last one of a kind counts.
#
# Environment: BUILD, the build directory (default: build/release, built if
# need be); LISTS, the lists (default: all of tests/problems); MATHS (default:
# "mixed fp32"); JOBS, processes at once.
#
# SPDX-License-Identifier: Apache-2.0
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${BUILD:-}" ]; then
    BUILD=$root/build/release
    "$root/scripts/build.sh" clconv-check || exit 1
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# check_one LIST LAYOUT MATH OPTION...: its output goes to a log of that name.
check_one() {
    local list=$1 layout=$2 math=$3
    shift 3
    "$BUILD/tools/clconv-check" --cases "$list" --batch 1 --max-gflop 2 \
        --layout "$layout" --math "$math" "$@" \
        > "$logs/$(basename "$list" .csv) $layout $math" 2>&1 < /dev/null
}

jobs=${JOBS:-$(nproc)}
for list in ${LISTS:-"$root"/tests/problems/*.csv}; do
    for layout in nchw nhwc; do
        for math in ${MATHS:-mixed fp32}; do
            while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
                wait -n
            done
            check_one "$list" "$layout" "$math" "$@" &
        done
    done
done
wait

# Failures whole, then one line a process, then the sum.
passed=0 failed=0 skipped=0
for log in "$logs"/*; do
    read -r p _ f _ s _ < <(tail -n 1 "$log" | grep -E '^[0-9]+ passed')
    if [ -z "${p:-}" ] || [ "$f" != 0 ]; then
        head -n 60 "$log"
        : "${p:=0}" "${f:=1}" "${s:=0}"
    fi
    printf '%-40s %s\n' "$(basename "$log")" "$(tail -n 1 "$log")"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    unset p f s
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
