#!/bin/sh
# format.sh [--check]: formats every C file with clang-format 14, or with
# --check changes nothing and fails if a file would change.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

case "$#:${1:-}" in
0:) mode=-i ;;
1:--check) mode="--dry-run -Werror" ;;
*)
    echo "usage: $0 [--check]" >&2
    exit 2
    ;;
esac

for tool in clang-format-14 clang-format; do
    command -v "$tool" > /dev/null && break
done
case $("$tool" --version 2> /dev/null) in
*"version 14."*) ;;
*)
    echo "$0: needs clang-format 14 (Debian: clang-format-14)" >&2
    exit 1
    ;;
esac

cd "$(dirname "$0")/.."
# Word splitting of the mode is meant.
# shellcheck disable=SC2086
find bench examples include kernelgen src tests tools -name '*.[ch]' -type f \
    -exec "$tool" $mode {} +
