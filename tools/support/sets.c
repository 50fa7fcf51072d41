/*
 * resnet50: shape facts from oneDNN's benchdnn inputs (Apache-2.0), its
 * paddings as listed there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sets.h"

static const set_row seed_cifar_rows[] = {
    {"seed1_32", "n256c3h32w32k32r3s3p1"},
    {"seed2_32", "n256c32h32w32k32r3s3p1"},
    {"seed3_16", "n256c32h16w16k64r3s3p1"},
    {"seed4_16", "n256c64h16w16k64r3s3p1"},
    {"seed5_8", "n256c64h8w8k128r3s3p1"},
    {"seed6_8", "n256c128h8w8k128r3s3p1"},
    {"seed1_64", "n256c3h64w64k32r3s3p1"},
    {"seed2_64", "n256c32h64w64k32r3s3p1"},
    {"seed3_32", "n256c32h32w32k64r3s3p1"},
    {"seed4_32", "n256c64h32w32k64r3s3p1"},
    {"seed5_16", "n256c64h16w16k128r3s3p1"},
    {"seed6_16", "n256c128h16w16k128r3s3p1"},
};

static const set_row resnet50_rows[] = {
    {"conv1", "n50c3h224w224k64r7s7u2p3x2x3x2"},
    {"res2a_branch1", "n50c64h56w56k256r1s1"},
    {"res2a_branch2a", "n50c64h56w56k64r1s1"},
    {"res2a_branch2b", "n50c64h56w56k64r3s3p1"},
    {"res2b_branch2a", "n50c256h56w56k64r1s1"},
    {"res3a_branch1", "n50c256h56w56k512r1s1u2"},
    {"res3a_branch2a", "n50c256h56w56k128r1s1u2"},
    {"res3a_branch2b", "n50c128h28w28k128r3s3p1"},
    {"res3a_branch2c", "n50c128h28w28k512r1s1"},
    {"res3b_branch2a", "n50c512h28w28k128r1s1"},
    {"res4a_branch1", "n50c512h28w28k1024r1s1u2"},
    {"res4a_branch2a", "n50c512h28w28k256r1s1u2"},
    {"res4a_branch2b", "n50c256h14w14k256r3s3p1"},
    {"res4a_branch2c", "n50c256h14w14k1024r1s1"},
    {"res4b_branch2a", "n50c1024h14w14k256r1s1"},
    {"res5a_branch1", "n50c1024h14w14k2048r1s1u2"},
    {"res5a_branch2a", "n50c1024h14w14k512r1s1u2"},
    {"res5a_branch2b", "n50c512h7w7k512r3s3p1"},
    {"res5a_branch2c", "n50c512h7w7k2048r1s1"},
    {"res5b_branch2a", "n50c2048h7w7k512r1s1"},
};

static const set_row cpu_rows[] = {
    {"stem_32", "n32c3h32w32k32r3s3p1"},
    {"c32_32", "n32c32h32w32k32r3s3p1"},
    {"c32k64_16", "n32c32h16w16k64r3s3p1"},
    {"c64_16", "n32c64h16w16k64r3s3p1"},
    {"c128_8", "n32c128h8w8k128r3s3p1"},
    {"c64_32", "n32c64h32w32k64r3s3p1"},
    {"c64_56", "n4c64h56w56k64r3s3p1"},
    {"c256_14", "n4c256h14w14k256r3s3p1"},
    {"c512_7", "n4c512h7w7k512r3s3p1"},
    {"1x1_56", "n4c256h56w56k64r1s1"},
    {"stride2_56", "n4c128h56w56k128r3s3u2p1"},
    {"stem_224", "n2c3h224w224k64r7s7u2p3"},
    {"grouped_28", "n4c256h28w28k256r3s3p1g32"},
    {"depthwise_56", "n4c128h56w56k128r3s3p1g128"},
    {"depthwise2_112", "n4c96h112w112k96r3s3u2p1g96"},
    {"dilated_32", "n2c64h32w32k128r3s3p2d2"},
    {"odd_40", "n4c45h40w40k90r3s3p1"},
    {"c32_96", "n4c32h96w96k32r3s3p1"},
};

static const set_row gpu_rows[] = {
    {"seed1_32", "n256c3h32w32k32r3s3p1"},
    {"seed2_32", "n256c32h32w32k32r3s3p1"},
    {"seed3_16", "n256c32h16w16k64r3s3p1"},
    {"seed4_16", "n256c64h16w16k64r3s3p1"},
    {"seed5_8", "n256c64h8w8k128r3s3p1"},
    {"seed6_8", "n256c128h8w8k128r3s3p1"},
    {"seed2_64", "n256c32h64w64k32r3s3p1"},
    {"seed4_32", "n256c64h32w32k64r3s3p1"},
    {"seed6_16", "n256c128h16w16k128r3s3p1"},
    {"seed2_96", "n256c32h96w96k32r3s3p1"},
    {"seed4_32_b1024", "n1024c64h32w32k64r3s3p1"},
    {"r50_c1", "n64c3h224w224k64r7s7u2p3"},
    {"r50_56", "n64c64h56w56k64r3s3p1"},
    {"r50_28", "n64c128h28w28k128r3s3p1"},
    {"r50_14", "n64c256h14w14k256r3s3p1"},
    {"r50_7", "n64c512h7w7k512r3s3p1"},
    {"r50_1x1a", "n64c256h56w56k64r1s1"},
    {"r50_1x1b", "n64c1024h14w14k256r1s1"},
    {"r50_s2", "n64c128h56w56k128r3s3u2p1"},
    {"big", "n32c512h64w64k512r3s3p1"},
    {"grouped", "n64c256h28w28k256r3s3p1g32"},
    {"depthwise", "n64c128h56w56k128r3s3p1g128"},
    {"depthwise_s2", "n64c96h112w112k96r3s3u2p1g96"},
    {"dilated", "n16c256h64w64k256r3s3p2d2"},
    {"odd_c", "n64c45h40w40k90r3s3p1"},
    {"unet_up", "n8c192h128w128k64r3s3p1"},
};

#define ROWS(rows) rows, sizeof(rows) / sizeof(rows[0])

const problem_set problem_sets[] = {
    {"seed-cifar",
     "a small network's 3x3 layers at batch 256, and at twice the size",
     ROWS(seed_cifar_rows)},
    {"resnet50", "the distinct convolutions of ResNet-50 at batch 50",
     ROWS(resnet50_rows)},
    {"cpu", "small batches of every kind of layer", ROWS(cpu_rows)},
    {"gpu", "large batches of every kind of layer", ROWS(gpu_rows)},
};

const size_t problem_set_count = sizeof(problem_sets) / sizeof(problem_sets[0]);
