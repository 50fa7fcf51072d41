/*
 * Emits what all kernels of this family do alike: the ring of stages through
 * which a copier hands operands to the warpgroups that multiply, and the sums
 * that these keep.
 *
 *     const uint base        where a tile array in local memory starts, rounded
 *     full + 8 * stage       barrier: the stage has come
 *     empty + 8 * stage      barrier: the stage may be filled again
 *     int stage, uint phase  each side's own; phase 1 for the copier at first,
 *                            0 for the others
 *
 * Holes: $stages, $copiers (arrivals that fill a stage), $worker_warps,
 * $blocks_m and $sums (of float sum[$blocks_m][$sums]).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_RING_H
#define CLCONV_WGMMA_RING_H

#include "device.h"
#include "emit.h"

/* Local memory beside the stages: room to start at a multiple of 1024, and
 * barriers. */
#define CLCONV_RING_ALIGNMENT 1024
#define CLCONV_RING_BARRIERS 128

/* Bytes of local memory that a work-group may have. */
size_t clconv_ring_local_memory(const clconv_device *d);

/* Bytes of scratch in which work-groups, one a compute unit at most, complete
 * two tensor maps each. */
size_t clconv_ring_map_bytes(const clconv_device *d);

/* Declares base, full, empty and, for what comes once, ready; after the part
 * wgmma, with uchar tiles[] and int item declared. All work-items. */
void clconv_ring_emit_barriers(clconv_emit *e, bool ready);

/* On to the next stage. */
void clconv_ring_emit_next(clconv_emit *e);

/* Declares the sums, all 0. */
void clconv_ring_emit_sums(clconv_emit *e);

/* Before and after products. */
void clconv_ring_emit_hold(clconv_emit *e);

#endif
