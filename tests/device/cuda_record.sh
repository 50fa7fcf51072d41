#!/bin/sh
# cuda_record.sh CC CLCONV-BENCH
#
# Builds scripts/cuda_replay/record.c and records a backward, which holds all
# passes of its plan. Exit status: 0, 1, or 77 without an OpenCL device.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

cc=${1:?usage: cuda_record.sh CC CLCONV-BENCH}
bench=${2:?usage: cuda_record.sh CC CLCONV-BENCH}
here=$(cd "$(dirname "$0")/../../scripts/cuda_replay" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "cuda_record: $1" >&2
    cat "$work/launches.txt" >&2
    exit 1
}

expect() {
    grep -q "$1" "$work/launches.txt" || fail "no line $1"
}

"$cc" -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -shared -fPIC \
    "$here/record.c" -o "$work/record.so" -ldl
status=0
RECORD_DIR="$work" LD_PRELOAD="$work/record.so" "$bench" --only fp32 \
    --no-peaks --seconds 0 --repeats 1 \
    --plan 'bwd_data_generic;bwd_weight_generic' n2c3h6w5k4r3s3p1 \
    >"$work/table" || status=$?
[ "$status" -eq 0 ] || exit "$status"

expect '^program 0 program-0.bin$'
expect '^buffer [0-9]* 720 buffer-[0-9]*.bin$' # x: 2 * 3 * 6 * 5 floats
expect '^launch [0-9]* bwd_data_generic[a-z_]* [0-9]* [0-9]* b[0-9]* x'
expect '^launch [0-9]* bwd_weight_generic[a-z_]* [0-9]* [0-9]* b[0-9]* x'
[ -s "$work/program-0.bin" ] || fail "an empty program"

# A loop of calls is recorded once.
sed -n 's/ b[0-9]*/ b/g; s/^launch //p' "$work/launches.txt" | sort | uniq -d |
    grep -q . && fail "a launch stands twice"
exit 0
