#!/bin/sh
# Installs those packages of packages.txt that are missing, if any: without
# one missing it asks nobody, needs no network and says nothing.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages=$(sed 's/#.*//' "$here/packages.txt")

explain() {
    # Word splitting is meant: the list on one line.
    # shellcheck disable=SC2086
    echo "$0: $1. Needed, by Debian's names:" $packages >&2
    exit 1
}

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null
then
    explain "no apt here: install by hand, then build with cmake --preset release"
fi

missing=
for package in $packages; do
    # shellcheck disable=SC2016 # dpkg-query's own variable
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) ||
        state=absent
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null ||
        explain "missing:$missing, and neither root nor sudo to install them"
    as_root=sudo
fi

echo "installing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An update that fails is no reason to stop: the lists at hand may do.
# shellcheck disable=SC2086 # one argument a package
if ! { $as_root apt-get update
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $missing; } \
    > "$log" 2>&1 < /dev/null
then
    tail -n 20 "$log" >&2
    explain "apt-get could not install:$missing"
fi
