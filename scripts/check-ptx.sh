#!/bin/sh
# check-ptx.sh CLCONV-GEN PRINT-PROBE
#
# Compiles the matrix-unit kernels for NVIDIA devices without such a device:
# clconv-gen -> clang -> PTX -> ptxas, for wgmma by way of sm_90a. Asserts that
# the unit's instruction is there, that ptxas takes it, that nothing spills or
# waits for each product, and that scaling the gradient costs no instruction
# but the epilogue's multiplications. Where a disassembler is found, that the
# machine code has the instruction too. Of the kernels that keep much in
# registers, by default values, that nothing spills either. PRINT-PROBE prints
# the PTX by which clconv-bench measures wgmma's peak: the same of that.
#
# Exit status: 0, 1, or 77 where clang (16 or newer) or ptxas is missing.
# CLANG, PTXAS and CUOBJDUMP name other programs than those found.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

usage="usage: check-ptx.sh CLCONV-GEN PRINT-PROBE"
gen=${1:?$usage}
print_probe=${2:?$usage}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The first of the arguments that is a program.
find_program() {
    for program in "$@"; do
        if command -v "$program"; then
            return
        fi
    done
}

clang=${CLANG:-$(find_program clang-22 clang-21 clang-20 clang-19 clang-18 \
    clang-17 clang-16 clang)}
ptxas=${PTXAS:-$(find_program ptxas /usr/local/cuda/bin/ptxas)}
cuobjdump=${CUOBJDUMP:-$(find_program cuobjdump /usr/local/cuda/bin/cuobjdump)}

skip() {
    echo "check-ptx: skipped: $1"
    exit 77
}

fail() {
    echo "check-ptx: $name: $1" >&2
    exit 1
}

[ -n "$clang" ] || skip "no clang"
[ -n "$ptxas" ] || skip "no ptxas"
major=$("$clang" -dumpversion | cut -d. -f1)
[ "$major" -ge 16 ] || skip "clang $major is older than 16"

# emit KERNEL SM PROBLEM VALUES: $work/kernel.cl, and the name for messages.
emit() {
    name="$1:$4 sm_$2 $3"
    "$gen" --device "sm_$2" --only "$1" "$3" "$1:$4" >"$work/kernel.cl" ||
        fail "clconv-gen failed"
}

# to_ptx SM FILE
to_ptx() {
    "$clang" -x cl -cl-std=CL1.2 -target nvptx64-nvidia-nvcl \
        -Xclang -target-cpu -Xclang "sm_$1" \
        -Xclang -target-feature -Xclang +ptx78 \
        -include "$here/ptx-shim.h" -nogpulib -O3 -S -o "$2" \
        "$work/kernel.cl" || fail "clang refuses it"
}

# retarget FROM TO: as src/ptx.c does. Beyond what the device's compiler takes,
# ptxas wants a later version of PTX, and no more than 48 KiB of static memory.
retarget() {
    sed 's|^[[:space:]]*//@@||
         s/^\.target sm_90/&a/
         s/^\.version 7.*/.version 8.0/
         s/tiles\[[0-9]*\]/tiles[32768]/' "$1" >"$2"
}

# expect_instruction FILE TEXT: an instruction begins like this.
expect_instruction() {
    grep -q "^[^/]*$2" "$1" || fail "no $2 in the PTX"
}

# expect_no_stack: nor is an array of the last that was assembled in memory.
expect_no_stack() {
    if grep 'bytes stack frame' "$work/log" | grep -qv ' 0 bytes stack frame'; then
        cat "$work/log" >&2
        fail "registers are in memory"
    fi
}

# assemble SM FILE MACHINE-INSTRUCTION: nothing spills.
assemble() {
    "$ptxas" "-arch=sm_$1" -v -o "$work/kernel.cubin" "$2" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "ptxas refuses it"; }
    grep -q 'bytes spill stores' "$work/log" ||
        fail "ptxas says nothing about spills"
    if grep 'bytes stack frame' "$work/log" |
        grep -qv ', 0 bytes spill stores, 0 bytes spill loads'; then
        cat "$work/log" >&2
        fail "registers spill"
    fi
    if grep -i 'C75[0-9][0-9]\|serialized' "$work/log" >&2; then
        fail "products are serialized"
    fi
    if [ -n "$cuobjdump" ]; then
        "$cuobjdump" --dump-sass "$work/kernel.cubin" 2>>"$work/log" |
            grep -q "$3" || fail "no $3 in the machine code"
    fi
}

# check KERNEL SM PROBLEM VALUES: copies go on by themselves from sm_80 on.
check() {
    emit "$@"
    to_ptx "$2" "$work/kernel.ptx"
    expect_instruction "$work/kernel.ptx" ldmatrix.sync.aligned
    if [ "$2" -ge 80 ]; then
        expect_instruction "$work/kernel.ptx" mma.sync.aligned.m16n8k16
        expect_instruction "$work/kernel.ptx" cp.async.cg.shared.global
        assemble "$2" "$work/kernel.ptx" HMMA.16816.F32
    else
        expect_instruction "$work/kernel.ptx" mma.sync.aligned.m16n8k8
        assemble "$2" "$work/kernel.ptx" HMMA.1688.F32
    fi
    expect_no_stack
    echo "ok   $name"
}

check_wgmma() {
    emit "$1" 90 "$2" "$3"
    to_ptx 90 "$work/kernel.ptx"
    retarget "$work/kernel.ptx" "$work/kernel_a.ptx"
    expect_instruction "$work/kernel_a.ptx" wgmma.mma_async.sync.aligned
    assemble 90a "$work/kernel_a.ptx" HGMMA
    echo "ok   $name, for sm_90a"
}

# check_registers KERNEL SM PROBLEM VALUES
check_registers() {
    emit "$@"
    to_ptx "$2" "$work/kernel.ptx"
    assemble "$2" "$work/kernel.ptx" FFMA
    echo "ok   $name"
}

# Their sums are an array in memory once a chain of terms ends.
check_local() {
    emit "$@"
    to_ptx "$2" "$work/kernel.ptx"
    expect_instruction "$work/kernel.ptx" cp.async.cg.shared.global
    assemble "$2" "$work/kernel.ptx" LDGSTS
    echo "ok   $name"
}

# How often each instruction occurs, but for the epilogue's multiplication.
instructions() {
    sed -n 's/^\t\(@%p[0-9]* \)\{0,1\}\([a-z][a-z0-9_.]*\)[ ;\t].*/\2/p' "$1" |
        grep -v '^mul\(\.rn\)\{0,1\}\.f32$' | sort | uniq -c
}

# compare_scales KERNEL PROBLEM VALUES INSTRUCTION: beside a cast, 2^10 is free.
compare_scales() {
    for scale in 0 10; do
        emit "$1" 90 "$2_scale$scale" "$3"
        to_ptx 90 "$work/kernel.ptx"
        retarget "$work/kernel.ptx" "$work/scale$scale.ptx"
        expect_instruction "$work/scale$scale.ptx" "$4"
        instructions "$work/scale$scale.ptx" >"$work/scale$scale.txt"
    done
    grep -q 'st.global' "$work/scale10.txt" || fail "no instructions counted"
    cmp -s "$work/scale0.ptx" "$work/scale10.ptx" &&
        fail "the scale makes no difference at all"
    diff "$work/scale0.txt" "$work/scale10.txt" ||
        fail "the scale adds instructions"
    echo "ok   $name: as many instructions as without scale"
}

for kernel in bwd_data_mma bwd_weight_mma; do
    for sm in 75 80 86 89 90; do
        check $kernel $sm n64c256h28w28k256r3s3p1 shape=arguments
        check $kernel $sm n64c256h28w28k256r3s3p1_nhwc shape=baked
        check $kernel $sm n8c3h224w224k64r7s7u2p3_nhwc shape=arguments
        check $kernel $sm n8c40h14w14k24r3s3d2p2g2_x16_w16_dy16_dw16_dx16 \
            tile_m=64,tile_n=32
    done
    compare_scales $kernel n32c64h28w28k64r3s3p1 shape=arguments \
        mma.sync.aligned.m16n8k16
done

for kernel in bwd_data_wgmma bwd_weight_wgmma; do
    check_wgmma $kernel n32c64h28w28k64r3s3p1_nhwc shape=arguments
    check_wgmma $kernel n8c64h56w56k128r3s3u2p1_nhwc shape=baked
    check_wgmma $kernel n8c64h28w28k256r3s3p1_nhwc_x16_w16_dy16_dw16_dx16 \
        tile_m=128,tile_n=256,warpgroups=2,stages=3
    compare_scales $kernel n32c64h28w28k64r3s3p1_nhwc shape=baked \
        wgmma.mma_async.sync.aligned
done
check_wgmma bwd_data_wgmma n64c128h56w56k128r3s3u2p1 shape=baked
check_wgmma bwd_data_wgmma n64c256h28w28k256r3s3p1g32 shape=baked
check_wgmma bwd_weight_wgmma n64c256h28w28k256r3s3p1g32 shape=baked
check_wgmma bwd_weight_wgmma n32c512h64w64k512r3s3p1 shape=baked,split=shared
check_wgmma bwd_data_halo n32c64h28w28k64r3s3p1_nhwc shape=arguments
check_wgmma bwd_data_halo n32c32h32w32k32r3s3p1_x16_w16_dy16_dw16_dx16 \
    tile_w=32,tile_h=8,shape=baked
for problem in n64c3h224w224k64r7s7u2p3_nhwc_x16_w16_dy16_dx16 \
    n256c3h32w32k32r3s3p1; do
    check_wgmma bwd_data_stem $problem shape=arguments
    check_wgmma bwd_data_stem $problem shape=baked,warpgroups=2
    check_wgmma bwd_weight_stem $problem shape=arguments
done

for layout in "" _nhwc; do
    for kernel in bwd_data_strip bwd_weight_strip; do
        check_registers $kernel 90 n64c128h56w56k128r3s3p1g128$layout \
            shape=arguments
        check_registers $kernel 90 n64c96h112w112k96r3s3u2p1g96${layout}_x16_dy16 \
            shape=baked
        check_registers $kernel 90 n8c64h28w28k64r5s5p2g64${layout}_x16_dy16_dx16 \
            cast=fused
        check_registers $kernel 90 n8c64h14w14k64r7s7p3g64$layout cast=fused
        check_registers $kernel 75 n64c96h112w112k96r3s3u2p1g96${layout}_x16_dy16_dx16 \
            shape=baked
    done
    for kernel in bwd_data_grouped bwd_weight_grouped; do
        check_registers $kernel 90 n64c256h28w28k256r3s3p1g32$layout \
            shape=arguments
        check_registers $kernel 90 \
            n8c128h28w28k128r3s3u2p1g4${layout}_x16_w16_dy16_dx16 shape=baked
    done
done

name="the probe of wgmma"
"$print_probe" >"$work/probe.ptx" || fail "it is not printed"
assemble 90a "$work/probe.ptx" HGMMA
expect_no_stack
echo "ok   $name"

check_wgmma bwd_fused n256c32h32w32k32r3s3p1 rows=192
check_wgmma bwd_fused n256c64h16w16k64r3s3p1_nhwc at_once=1,reads=after
for values in reads=ahead,at_once=1,shape=baked \
    reads=ahead,at_once=2,shape=baked; do
    check_wgmma bwd_fused n256c64h32w32k64r3s3p1 $values
    check_wgmma bwd_fused n64c64h56w56k64r3s3p1_nhwc $values
    check_wgmma bwd_fused n256c32h32w32k32r3s3p1 $values
    check_wgmma bwd_fused n256c3h32w32k32r3s3p1 $values
    check_wgmma bwd_fused n256c64h32w32k64r3s3p1_x16_w16_dy16_dx16 $values
done

for kernel in bwd_data_local bwd_weight_local; do
    for sm in 80 90; do
        check_local $kernel $sm n64c128h28w28k128r3s3p1_nhwc_fp32 \
            shape=arguments
        check_local $kernel $sm n8c256h56w56k64r1s1u2_nhwc_fp32 \
            tile_m=128,tile_n=64,reg_m=8,reg_n=8,shape=baked
    done
done
check_local bwd_data_local 90 n64c128h28w28k128r3s3p1_fp32 weights=prepared
