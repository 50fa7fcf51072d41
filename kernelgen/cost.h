/*
 * Terms of a kernel's cost (kernel.h), in multiply-adds at the device's peak,
 * from what devices have in common: a CPU core does 16 multiply-adds a cycle
 * and moves 5 bytes to or from memory, a GPU's unit 128 and 16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_COST_H
#define CLCONV_COST_H

#include "device.h"
#include "problem.h"

/* Those of one gradient, nothing wasted. */
double clconv_cost_multiply(const clconv_problem *p);

/* Moving so many bytes from or to memory. */
double clconv_cost_move(const clconv_device *d, double bytes);

/* So many launches. */
double clconv_cost_launch(const clconv_device *d, int launches);

/* The factor on a CPU's inner loop that keeps so many float16s alive: 1 if its
 * registers hold them. */
double clconv_cost_spill(const clconv_device *d, int live);

/* How many times count is exceeded by whole tiles of it: 1 for none. */
double clconv_cost_waste(int64_t count, int64_t tile);

#endif
