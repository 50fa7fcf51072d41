#!/bin/sh
# test.sh [--all]: builds what is missing and runs the tests; --all adds the
# slow ones. Exits as ctest does.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

preset=fast
case "$#:${1:-}" in
0:) ;;
1:--all) preset=all ;;
*)
    echo "usage: $0 [--all]" >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/build.sh"
cd "$root"
# Two at a time: while one compiles kernels, another computes.
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-2}"
exec ctest --preset "$preset"
