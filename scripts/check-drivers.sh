#!/bin/sh
# check-drivers.sh rusticl|oclgrind CLCONV-CHECK [clconv-check option]...
#
# A second opinion on the emitted OpenCL C: a sample of problems, each kind
# once, by clconv-check on another implementation. rusticl is Mesa's, on its
# CPU driver llvmpipe; oclgrind is a simulator that checks every access and
# finds data races; each of its messages is a failure. Options, such as
# --plan, go to clconv-check.
#
# oclgrind's search for values that nobody wrote reports clean programs, too,
# when it sees them as clconv-check makes them: tests/device/uninitialized.sh
# goes round that.
#
# Exit status: 0, 1, or 77 where the implementation is missing.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

usage="usage: check-drivers.sh rusticl|oclgrind CLCONV-CHECK [option]..."
driver=${1:?$usage}
check=${2:?$usage}
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "check-drivers: skipped: $1"
    exit 77
}

# The arguments, each as a --problem.
problems() {
    for problem in "$@"; do
        printf -- '--problem %s ' "$problem"
    done
}

# 3x3, 1x1, stem, stride 2, dilated, grouped, depthwise, asymmetric padding,
# odd sizes, strides that skip inputs, padding alone, long filters.
small=$(problems n2c16h8w16k16r3s3p1 n2c33h6w6k20r1s1 n1c3h30w30k16r7s7u2p3 \
    n2c8h14w14k16r3s3u2p1 n2c5h13w13k6r3s3p2d2 n2c12h7w9k20r3s3p1g4 \
    n2c17h9w9k17r3s3u2p1g17 n2c8h7w10k8r3s3p1g8 n2c7h9w11k5r3s3p1x0x2x1 \
    n3c5h7w13k9r3s3p1 n1c8h14w14k9r1s1u3 n1c2h2w2k3r2s2u2p1d2 \
    n1c4h14w11k5r7s1u3x1p3x0)
tiny=$(problems n1c4h4w5k5r3s3p1 n2c5h2w2k3r1s1 n1c3h9w9k2r7s7u2p3 \
    n1c2h6w6k3r3s3u2p1 n1c2h6w6k2r3s3p2d2 n2c4h3w4k6r3s3p1g2 \
    n1c5h5w5k5r3s3u2p1g5 n2c3h4w6k3r3s3p1g3 n1c3h4w5k2r3s3p1x0x2x1 \
    n1c1h1w1k1r1s1 n1c2h5w5k3r1s1u3 n1c1h2w2k1r2s2u2p1d2 \
    n1c2h6w3k2r5s1u3x1p2x0)

on_rusticl() {
    export RUSTICL_ENABLE=llvmpipe
    if ! "$check" --device llvmpipe --problem n1c1h1w1k1r1s1 \
        --judgements integers "$@" > "$work/first" 2>&1 &&
        grep -q 'no OpenCL device' "$work/first"
    then
        skip "no device of Mesa's rusticl"
    fi
    # shellcheck disable=SC2086 # several words are meant
    "$check" --device llvmpipe --layout both --math both $small "$@"
}

# Unoptimised: each access as it stands in the text.
on_oclgrind() {
    command -v oclgrind > /dev/null || skip "no oclgrind"
    # shellcheck disable=SC2086 # several words are meant
    oclgrind --log "$work/log" --build-options -cl-opt-disable --data-races \
        "$check" --device oclgrind --layout both --math both \
        --judgements integers $tiny "$@"
    if [ -s "$work/log" ]; then
        head -n 60 "$work/log" >&2
        echo "check-drivers: oclgrind found the above" >&2
        exit 1
    fi
}

case $driver in
rusticl) on_rusticl "$@" ;;
oclgrind)
    # Its binaries are of no use to others.
    CLCONV_CACHE_DIR=$work/cache
    export CLCONV_CACHE_DIR
    on_oclgrind "$@"
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
