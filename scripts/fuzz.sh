#!/bin/sh
# fuzz.sh [SECONDS [TARGET...]]: builds the fuzz targets with clang's libFuzzer
# and sanitizers in build/fuzz, and runs each for SECONDS (600). What is found
# stays there: corpus/TARGET, and crashes as found/TARGET-*.
#
# Exit status: 0, 1 if something was found, or 77 where clang's libFuzzer
# (Debian: clang) is missing.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

seconds="${1:-600}"
[ "$#" -eq 0 ] || shift
[ "$#" -gt 0 ] || set -- bundle npy problem record store

root=$(cd "$(dirname "$0")/.." && pwd)
build="${BUILD_DIR:-$root/build/fuzz}"
clang="${CLANG:-clang}"
mkdir -p "$build/found"

probe="$build/probe"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n);
int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)
{ return d && n > 1u << 30; }' >"$probe.c"
if ! "$clang" -fsanitize=fuzzer,address "$probe.c" -o "$probe" 2>/dev/null; then
    echo "$0: skipped: $clang with libFuzzer is not there" >&2
    exit 77
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_COMPILER="$clang" -DCLCONV_LIBFUZZER=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_C_FLAGS="-O1 -fno-omit-frame-pointer \
        -fsanitize=fuzzer-no-link,address,undefined \
        -fno-sanitize-recover=undefined" >"$build/configure.log"

status=0
for target in "$@"; do
    ninja -C "$build" "fuzz_$target" "libfuzz_$target" >"$build/build.log" ||
        { cat "$build/build.log" >&2; exit 1; }
    corpus="$build/corpus/$target"
    mkdir -p "$corpus"
    "$build/tests/fuzz/fuzz_$target" --write "$corpus"
    "$build/tests/fuzz/libfuzz_$target" -max_total_time="$seconds" \
        -artifact_prefix="$build/found/$target-" -print_final_stats=1 \
        -rss_limit_mb=1024 -max_len=4096 "$corpus" \
        2>"$build/found/$target.log" || status=1
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' \
        "$build/found/$target.log") inputs, $(find "$build/found" \
        -name "$target-*" | wc -l) found"
done
exit "$status"
