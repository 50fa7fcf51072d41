/*
 * What a device's names do not tell, and the kernels for Hopper rely on: whether
 * the driver takes their way to its matrix unit and its copy unit, and how much
 * local memory it lets them have. Each is found out by a small program that does
 * it once; where one fails, the log says why. Programs come from the cache:
 * later contexts compile nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_SELFTEST_H
#define CLCONV_CL_SELFTEST_H

#include "cl_trial.h"
#include "cuda_maps.h"

/* Bytes of local memory that a work-group may have with which wgmma gives the
 * right product; 0: none. */
size_t clconv_selftest_wgmma(const clconv_trial_place *place,
                             const clconv_log *log);

/* Does the copy unit read by maps of clconv_cuda_samples, as encoded, what it
 * should? */
bool clconv_selftest_maps(const clconv_trial_place *place,
                          const clconv_map_template maps[CLCONV_CUDA_SAMPLES],
                          const clconv_log *log);

#endif
