#!/bin/sh
# demo.sh [OPTION...]: builds what is missing and runs the demo, which shows on
# real images what becomes of small gradients. Options go to the demo;
# --help lists them.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/build.sh" gradients
exec "$root/build/release/examples/gradients" "$@"
