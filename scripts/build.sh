#!/bin/sh
# build.sh [TARGET]: installs what is missing, configures the preset "release"
# once, and builds TARGET, or everything. What compiler and CMake say is shown
# only when they fail. CC and CFLAGS count when it configures.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-all}
jobs=$(nproc 2> /dev/null || echo 1)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a command; its output is shown only if it fails.
quietly() {
    "$@" > "$log" 2>&1 < /dev/null && return
    cat "$log" >&2
    echo "failed: $*" >&2
    exit 1
}

"$root/scripts/install-packages.sh"
cd "$root"
if ! [ -f build/release/build.ninja ]; then
    echo "configuring build/release ..." >&2
    quietly cmake --preset release
fi
echo "building $target ($jobs jobs) ..." >&2
quietly cmake --build --preset release --target "$target" -j "$jobs"
