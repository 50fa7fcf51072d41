/*
 * Hopper's matrix units through wgmma: a warpgroup's 64 x 256 sums, +=
 * a[64][64] * b[64][256] a round, in four products of 16 terms, from lines of
 * 128 bytes in local memory. Two work-groups keep a compute unit busy, one while
 * the other's products end.
 *
 * In PTX, since OpenCL C's compiler refuses the instruction. Nothing but the
 * products stands in the loop, and those of a round are waited for in the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "probe_wgmma.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "probe_product.h"

enum {
    WARPGROUP = 128,
    M = 64,
    N = 256,
    K = 64, /* of a round: a line */
    SUMS = M * N / WARPGROUP
};

#define A_BYTES (M * K * 2)
#define TILE_BYTES ((M + N) * K * 2)

/* ---- The text ----------------------------------------------------------- */

/* Of which a line is 20 bytes at most, and there are a few for each sum. */
#define TEXT_SIZE 32768

typedef struct writer {
    char *text;
    size_t length;
} writer;

static void put(writer *w, const char *form, ...)
{
    va_list arguments;

    va_start(arguments, form);
    w->length += (size_t)vsnprintf(w->text + w->length, TEXT_SIZE - w->length,
                                   form, arguments);
    va_end(arguments);
}

static void put_head(writer *w)
{
    put(w,
        ".version 8.0\n"
        ".target sm_90a, texmode_independent\n"
        ".address_size 64\n"
        ".entry peak(\n"
        "    .param .u64 .ptr .global .align 4 out,\n"
        "    .param .u32 operand,\n"
        "    .param .u32 rounds)\n"
        ".reqntid %d, 1, 1\n"
        "{\n"
        "    .shared .align 1024 .b8 tiles[%d];\n"
        "    .reg .pred more, adds;\n"
        "    .reg .b32 item, value, count, at, end, group;\n"
        "    .reg .b64 a, b, to, offset;\n"
        "    .reg .f32 sum<%d>;\n",
        WARPGROUP, TILE_BYTES, SUMS);
}

/* Both matrices are operand throughout, and visible to the unit. */
static void put_fill(writer *w)
{
    put(w,
        "    ld.param.u32 value, [operand];\n"
        "    mov.u32 item, %%tid.x;\n"
        "    mov.u32 at, tiles;\n"
        "    add.u32 end, at, %d;\n"
        "    mad.lo.u32 at, item, 4, at;\n"
        "FILL:\n"
        "    st.shared.u32 [at], value;\n"
        "    add.u32 at, at, %d;\n"
        "    setp.lt.u32 more, at, end;\n"
        "    @more bra FILL;\n"
        "    fence.proxy.async.shared::cta;\n"
        "    bar.sync 0;\n",
        TILE_BYTES, 4 * WARPGROUP);
    for (int i = 0; i < SUMS; ++i)
        put(w, "    mov.f32 sum%d, 0f00000000;\n", i);
}

/* Descriptors: the address in units of 16 bytes, 1024 bytes from 8 lines to the
 * next, 128 bytes a line with swizzle. */
static void put_matrices(writer *w)
{
    put(w,
        "    mov.u32 at, tiles;\n"
        "    shr.u32 at, at, 4;\n"
        "    cvt.u64.u32 a, at;\n"
        "    or.b64 a, a, 0x4000004000010000;\n"
        "    add.u64 b, a, %d;\n",
        A_BYTES / 16);
}

/* The k-th 16 terms of a round are 32 bytes on in each line. */
static void put_product(writer *w, int k)
{
    put(w,
        "    { .reg .b64 x, y; add.u64 x, a, %d; add.u64 y, b, %d;\n"
        "    wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {",
        2 * k, 2 * k);
    for (int i = 0; i < SUMS; ++i)
        put(w, "%ssum%d", i ? "," : "", i);
    put(w, "}, x, y, adds, 1, 1, 0, 0; }\n");
}

static void put_rounds(writer *w)
{
    put(w, "    ld.param.u32 count, [rounds];\n"
           "    setp.eq.u32 adds, 0, 0;\n"
           "ROUND:\n"
           "    wgmma.fence.sync.aligned;\n");
    for (int k = 0; k < K / 16; ++k)
        put_product(w, k);
    put(w, "    wgmma.commit_group.sync.aligned;\n"
           "    wgmma.wait_group.sync.aligned 1;\n"
           "    sub.u32 count, count, 1;\n"
           "    setp.ne.u32 more, count, 0;\n"
           "    @more bra ROUND;\n"
           "    wgmma.wait_group.sync.aligned 0;\n");
}

static void put_store(writer *w)
{
    for (int i = 1; i < SUMS; ++i)
        put(w, "    add.f32 sum0, sum0, sum%d;\n", i);
    put(w,
        "    ld.param.u64 to, [out];\n"
        "    mov.u32 group, %%ctaid.x;\n"
        "    mad.lo.u32 at, group, %d, item;\n"
        "    mul.wide.u32 offset, at, 4;\n"
        "    add.u64 to, to, offset;\n"
        "    st.global.f32 [to], sum0;\n"
        "    ret;\n"
        "}\n",
        WARPGROUP);
}

char *probe_wgmma_text(void)
{
    writer w = {.text = malloc(TEXT_SIZE)};

    if (!w.text)
        return NULL;
    put_head(&w);
    put_fill(&w);
    put_matrices(&w);
    put_rounds(&w);
    put_store(&w);
    return w.text;
}

/* ---- The product -------------------------------------------------------- */

static bool open_text(const host *h, probe_kernel *out)
{
    char *text = probe_wgmma_text();
    bool ok = text && probe_kernel_open_binary(h, text, "peak", out);

    free(text);
    return ok;
}

/* A round adds K products of 2^-8 to each of a work-item's sums. */
const probe_product probe_wgmma = {
    .name = "wgmma",
    .local = WARPGROUP,
    .groups_per_unit = 2,
    .flop = 2.0 * M * N * K,
    .growth = SUMS * K * 0x1p-8F,
    .open = open_text,
};
