/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"

#include "integers.h"

#define CPU_PER_BYTE 3
#define GPU_PER_BYTE 8

/* 7 us of a core, 5 us of a GPU's unit. */
#define CPU_PER_LAUNCH 0.4e6
#define GPU_PER_LAUNCH 1e6

double clconv_cost_multiply(const clconv_problem *p)
{
    return clconv_problem_flops(p) / 2;
}

double clconv_cost_move(const clconv_device *d, double bytes)
{
    return bytes * (d->is_cpu ? CPU_PER_BYTE : GPU_PER_BYTE);
}

double clconv_cost_launch(const clconv_device *d, int launches)
{
    return launches * (d->is_cpu ? CPU_PER_LAUNCH : GPU_PER_LAUNCH) *
           d->compute_units;
}

/* Measured with AVX2: sums that leave the registers are loaded and stored once
 * a multiply-add. */
#define SPILLED 2.2

double clconv_cost_spill(const clconv_device *d, int live)
{
    return live > d->vector_registers ? SPILLED : 1;
}

double clconv_cost_waste(int64_t count, int64_t tile)
{
    return (double)clconv_round_up(count, tile) / (double)count;
}
