/*
 * Four 8 x 8 matrices of halves from local memory by the 32 lanes of a warp
 * together (ldmatrix, sm_75 and later): lane 8 i + j gives the address of line
 * j of matrix i, 16 bytes; to register i comes of matrix i, with g = lane / 4
 * and t = lane % 4, (g, 2t) and (g, 2t + 1), or transposed (2t, g) and
 * (2t + 1, g), the first in the low half.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void load_matrices(uint *m, uint line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(line) : "memory");
}

static void load_transposed(uint *m, uint line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(line) : "memory");
}
