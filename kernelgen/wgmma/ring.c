/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ring.h"

#include "tensor_map.h"

size_t clconv_ring_local_memory(const clconv_device *d)
{
    return d->unit_emulated ? d->local_memory : d->wgmma_memory;
}

size_t clconv_ring_map_bytes(const clconv_device *d)
{
    return (size_t)d->compute_units * 2 * CLCONV_TENSOR_MAP_WORDS *
           sizeof(uint64_t);
}

void clconv_ring_emit_barriers(clconv_emit *e, bool ready)
{
    clconv_emit_line(e, ready ? "__local ulong barriers[2 * $stages + 1];"
                              : "__local ulong barriers[2 * $stages];");
    clconv_emit_line(e, "const uint base = (shared_address(tiles) + 1023) & "
                        "~1023u;");
    clconv_emit_line(e, "const uint full = shared_address(barriers);");
    clconv_emit_line(e, "const uint empty = full + 8 * $stages;");
    if (ready)
        clconv_emit_line(e, "const uint ready = empty + 8 * $stages;");
    clconv_emit_open(e, "if (item == 0)");
    clconv_emit_open(e, "for (int i = 0; i < $stages; ++i)");
    clconv_emit_line(e, "barrier_init(full + 8 * i, $copiers);");
    clconv_emit_line(e, "barrier_init(empty + 8 * i, $worker_warps);");
    clconv_emit_close(e);
    if (ready)
        clconv_emit_line(e, "barrier_init(ready, 1);");
    clconv_emit_line(e, "publish();");
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

void clconv_ring_emit_next(clconv_emit *e)
{
    clconv_emit_open(e, "if (++stage == $stages)");
    clconv_emit_line(e, "stage = 0;");
    clconv_emit_line(e, "phase ^= 1;");
    clconv_emit_close(e);
}

void clconv_ring_emit_sums(clconv_emit *e)
{
    clconv_emit_line(e, "float sum[$blocks_m][$sums];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "    #pragma unroll");
    clconv_emit_line(e, "    for (int reg = 0; reg < $sums; ++reg)");
    clconv_emit_line(e, "        sum[i][reg] = 0.0f;");
}

void clconv_ring_emit_hold(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "    hold(sum[i]);");
}
