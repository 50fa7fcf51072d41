/*
 * NVIDIA's matrix units through mma.sync in OpenCL C: 8 independent tiles of
 * 16 x 8 sums a warp, each += a[16][16] * b[16][8] from registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "probe_product.h"

enum { WARP = 32, LOCAL = 256, TILES = 8 };

#define FLOP_PER_TILE (2.0 * 16 * 8 * 16)

static const char text[] =
    "void multiply(float *c, uint a, uint b)\n"
    "{\n"
    "    asm volatile(\n"
    "        \"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \"\n"
    "        \"{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, \"\n"
    "        \"{%0, %1, %2, %3};\"\n"
    "        : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
    "        : \"r\"(a), \"r\"(b));\n"
    "}\n"
    "\n"
    "__kernel __attribute__((reqd_work_group_size(256, 1, 1)))\n"
    "void peak(__global float *out, uint operand, int rounds)\n"
    "{\n"
    "    float c[8][4] = {{0}};\n"
    "    float sum = 0;\n"
    "    for (int i = 0; i < rounds; ++i) {\n"
    "        multiply(c[0], operand, operand);\n"
    "        multiply(c[1], operand, operand);\n"
    "        multiply(c[2], operand, operand);\n"
    "        multiply(c[3], operand, operand);\n"
    "        multiply(c[4], operand, operand);\n"
    "        multiply(c[5], operand, operand);\n"
    "        multiply(c[6], operand, operand);\n"
    "        multiply(c[7], operand, operand);\n"
    "    }\n"
    "    #pragma unroll\n"
    "    for (int t = 0; t < 8; ++t)\n"
    "        sum += c[t][0] + c[t][1] + c[t][2] + c[t][3];\n"
    "    out[get_global_id(0)] = sum;\n"
    "}\n";

static bool open_text(const host *h, probe_kernel *out)
{
    return probe_kernel_open(h, text, "peak", out);
}

/* A round adds 16 products of 2^-8 to each of a work-item's four sums a tile. */
const probe_product probe_mma = {
    .name = "mma.sync",
    .local = LOCAL,
    .groups_per_unit = 8,
    .flop = FLOP_PER_TILE * TILES * LOCAL / WARP,
    .growth = TILES * 4 * 0x1p-4F,
    .open = open_text,
};
