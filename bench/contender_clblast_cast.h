/*
 * fp32 to fp16 and back on the device, as a user of CLBlast's half-precision
 * routines would write it: to nearest even, times a power of two.
 *
 *     clblast_cast cast;
 *     clblast_cast_open(&h, &cast)                      // compiles
 *     clblast_cast_to_half(&cast, from, to, count, 1024)
 *     clblast_cast_from_half(&cast, from, to, count, 1.0F / 1024)
 *     clblast_cast_close(&cast);
 *
 * Each is enqueued on the host's queue. False: said on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_CLBLAST_CAST_H
#define CONTENDER_CLBLAST_CAST_H

#include "host.h"

typedef struct clblast_cast {
    cl_command_queue queue;
    cl_program program;
    cl_kernel to_half, from_half;
} clblast_cast;

bool clblast_cast_open(const host *h, clblast_cast *out);
void clblast_cast_close(clblast_cast *cast);

bool clblast_cast_to_half(clblast_cast *cast, cl_mem from, cl_mem to,
                          size_t count, float scale);
bool clblast_cast_from_half(clblast_cast *cast, cl_mem from, cl_mem to,
                            size_t count, float scale);

#endif
