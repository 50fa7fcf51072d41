#!/bin/sh
# readme.sh README.md first_program.c
#
# Fails unless the first C block of the README is the program, byte for byte.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

block=$(mktemp)
trap 'rm -f "$block"' EXIT

awk '/^```c$/ && !seen { inside = seen = 1; next }
     /^```$/ { inside = 0 }
     inside' "$1" > "$block"
if ! [ -s "$block" ]; then
    echo "$1 has no block that begins with \`\`\`c"
    exit 1
fi
diff -u "$2" "$block"
