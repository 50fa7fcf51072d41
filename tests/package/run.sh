#!/bin/sh
# run.sh CMAKE CC BUILD_DIR LIBDIR
#
# Installs the build into a new directory and builds user.c against it, once
# by CMake's package and once by pkg-config, where there is one.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

cmake=$1
cc=$2
build=$3
libdir=$4
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap '[ $? -eq 0 ] || cat "$dir/log"; rm -rf "$dir"' EXIT

"$cmake" --install "$build" --prefix "$dir/installed" > "$dir/log"

"$cmake" -S "$here" -B "$dir/user" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$dir/installed" > "$dir/log"
"$cmake" --build "$dir/user" > "$dir/log"
by_cmake=$("$dir/user/user")

lib=$dir/installed/$libdir
version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/clconv.pc")
if [ "$version" != "$by_cmake" ]; then
    echo "clconv.pc says version $version, the library $by_cmake"
    exit 1
fi
if command -v pkg-config > /dev/null; then
    flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs clconv)
    # Word splitting of the flags is meant.
    # shellcheck disable=SC2086
    "$cc" "$here/user.c" -o "$dir/by_pkg_config" $flags -Wl,-rpath,"$lib"
    "$dir/by_pkg_config" > "$dir/log"
fi
