#!/bin/sh
# golden-update.sh [--check] CLCONV-GEN
#
# Writes tests/golden/NAME.cl, the text that the generator emits for each line
# of tests/golden/cases.txt. With --check nothing is written: the texts are
# compared, and the first line that differs is shown. CLCONV-GEN is the
# program clconv-gen of a build.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

check=false
if [ "${1:-}" = --check ]; then
    check=true
    shift
fi
gen=${1:?usage: golden-update.sh [--check] CLCONV-GEN}
golden=$(cd "$(dirname "$0")/../tests/golden" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
cases=0

show_difference() {
    line=$(cmp "$1" "$2" | sed 's/.*line //')
    line=${line:-$(($(wc -l <"$1") + 1))}
    echo "golden: $name.cl differs first at line $line"
    echo "  expected: $(sed -n "${line}p" "$1")"
    echo "  emitted:  $(sed -n "${line}p" "$2")"
    failed=$((failed + 1))
}

while read -r name kernel device problem plan; do
    case $name in '' | '#'*) continue ;; esac
    cases=$((cases + 1))
    emulate=
    case $device in *+*) emulate="--emulate ${device#*+}" ;; esac
    # shellcheck disable=SC2086 # --emulate and its value are two words
    "$gen" --device "${device%%+*}" $emulate --only "$kernel" "$problem" \
        "$plan" >"$work/$name.cl"
    if ! $check; then
        cp "$work/$name.cl" "$golden/$name.cl"
    elif [ ! -f "$golden/$name.cl" ]; then
        echo "golden: $name.cl is missing"
        failed=$((failed + 1))
    elif ! cmp -s "$golden/$name.cl" "$work/$name.cl"; then
        show_difference "$golden/$name.cl" "$work/$name.cl"
    fi
done <"$golden/cases.txt"

if [ "$failed" -ne 0 ]; then
    echo "golden: $failed of $cases texts differ. Where the change is meant," \
        "run scripts/golden-update.sh CLCONV-GEN, read the difference and" \
        "commit it; raise the kernel's revision if values mean something else."
    exit 1
fi
echo "golden: $cases texts"
