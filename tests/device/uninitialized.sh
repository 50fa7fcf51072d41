#!/bin/sh
# uninitialized.sh UNINITIALIZED_CALLS KERNEL [--option VALUE]... PROBLEM...
#
# oclgrind's search for values that nobody wrote, over calls of the library
# (uninitialized_calls.c): each of its messages is a failure. So is silence
# where KERNEL, from whose result a later kernel reads, loses a work-group:
# then the search is blind.
#
# Unoptimised, so that each access is as it stands in the text; and without
# fused multiply-adds, which for oclgrind 21.10 spread one element that nobody
# wrote to the whole vector.
#
# Exit status: 0, 1, or 77 where oclgrind is missing.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

calls=$1
lost_kernel=$2
shift 2

if ! command -v oclgrind > /dev/null; then
    echo "uninitialized: skipped: no oclgrind"
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

search() {
    oclgrind --uninitialized --log "$log" \
        --build-options "-cl-opt-disable -ffp-contract=off" "$calls" "$@"
}

search "$@"
if [ -s "$log" ]; then
    head -n 60 "$log"
    echo "uninitialized: oclgrind found the above"
    exit 1
fi
search --lose "$lost_kernel" "$@"
if ! grep -q '^Uninitialized value written' "$log"; then
    echo "uninitialized: $lost_kernel lost a work-group, and nothing was found"
    exit 1
fi
