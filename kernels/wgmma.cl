/*
 * Hopper's asynchronous parts as functions: barriers in local memory, copies
 * to it, and what surrounds the products of a warpgroup. An address is that of
 * a byte in local memory, as PTX counts them. Lines that sm_90a alone knows
 * carry the mark that src/ptx.h takes away.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint shared_address(__local const void *p)
{
    uint address;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
        : "=r"(address) : "l"((ulong)p));
    return address;
}

static void barrier_init(uint address, uint arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(address), "r"(arrivals) : "memory");
}

static void barrier_arrive(uint address)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :: "r"(address) : "memory");
}

/* Waits until the phase of this parity has ended. */
static void barrier_wait(uint address, uint parity)
{
    asm volatile("{ .reg .pred done; WAIT: "
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
                 "@done bra DONE; bra WAIT; DONE: }"
                 :: "r"(address), "r"(parity) : "memory");
}

/* What this work-item wrote to local memory shows to later products. */
static void publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Eight halves, or zeros. Both addresses are multiples of 16. */
static void copy16(__local uchar *tiles, uint to, __global const half *from,
                   int exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

static void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* ---- The copy unit ------------------------------------------------------- */

/* A tensor map, but for word 0: the tensor's address. */
typedef struct {
    ulong word[16];
} map_t;

/* The map of this tensor, written to memory that no other work-group uses, for
 * the work-item that calls. */
static __global const ulong *map_source(__global ulong *memory,
                                        const map_t *map,
                                        __global const half *tensor)
{
    memory[0] = (ulong)tensor;
    for (int i = 1; i < 16; ++i)
        memory[i] = map->word[i];
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
                 :: "l"(memory) : "memory");
    return memory;
}

/* The barrier's phase ends when so many bytes have come. */
static void barrier_expect(uint address, uint bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(address), "r"(bytes) : "memory");
}

/* A box from channel, column, row, image on. */
static void load_tiled(__local uchar *tiles, uint to,
                       __global const ulong *source, uint full, int4 from,
                       int lane)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile."
                 "mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(source), "r"(full), "r"(from.x), "r"(from.y),
                    "r"(from.z), "r"(from.w) : "memory");
}

/* Pixels of the window from column, row, image on, moved by a tap. */
static void load_im2col(__local uchar *tiles, uint to,
                        __global const ulong *source, uint full, int4 from,
                        int2 tap, int lane)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col."
                 "mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
                 :: "r"(to), "l"(source), "r"(full), "r"(from.x), "r"(from.y),
                    "r"(from.z), "r"(from.w), "h"((ushort)tap.x),
                    "h"((ushort)tap.y) : "memory");
}

/* ---- Products ------------------------------------------------------------ */

static void products_begin(void)
{
    asm volatile("//@@wgmma.fence.sync.aligned;" ::: "memory");
}

/* Waits for the products since products_begin(). */
static void products_end(void)
{
    asm volatile("//@@wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("//@@wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
