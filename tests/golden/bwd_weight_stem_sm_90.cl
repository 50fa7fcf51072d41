/* Step 3: bwd_weight_stem */

typedef struct {
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long w_image;
    long w_channel;
    long w_row;
    long w_column;
    int n;
    int c;
    int h;
    int w;
    int k;
    int r;
    int s;
    int p;
    int q;
    int stride_h;
    int stride_w;
    int pad_top;
    int pad_left;
    int dilation_h;
    int dilation_w;
    int groups;
    int group_c;
    int group_k;
} sizes_t;

int3 fold_place(int n) {
    return (int3)(n % 3, n / (3 * 2), n / 3 % 2);
}

int fold_channel(int c, int i, int j) {
    return (i * 2 + j) * 3 + c;
}

/*
 * Lines of 64, 32 or 16 halves in local memory, line bytes each, whose 16-byte
 * pieces are permuted among 8 lines so that reads across lines meet no bank
 * twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint swizzled(uint address, uint line)
{
    return address ^ ((address >> 3) & (line - 16));
}

/*
 * What copies to local memory need that go on by themselves (cp.async): an
 * address, that of a byte in local memory as PTX counts them, and the end of a
 * group of copies, which is waited for as a whole.
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

static void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/*
 * A piece of 16 bytes from registers to local memory, in NVIDIA's PTX. An
 * address is that of a byte in local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* The address is a multiple of 16. */
static void put16(__local uchar *tiles, uint to, uint4 v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/*
 * A copy of 16 bytes to local memory that goes on by itself (cp.async, sm_80
 * and later), in groups: see copy_group.cl.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* Eight halves, or zeros. Both addresses are multiples of 16. */
static void copy16(__local uchar *tiles, uint to, __global const half *from,
                   int exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/*
 * Two halves in a word, the first low, rounded to nearest: one instruction from
 * sm_80 on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint halves2(float x, float y)
{
    uint halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(y), "f"(x));
    return halves;
}

/*
 * Matrices in local memory as wgmma reads them and the copy unit writes them:
 * lines as in swizzle.cl. A line holds neighbours along k, or neighbours along
 * m or n; wider matrices of the latter kind are chunks, one after the other.
 * Matrices start at multiples of 8 lines; a descriptor may be moved on by
 * lines, or by halves within one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* The descriptor: start, bytes from chunk to chunk, bytes from 8 lines to the
 * next 8, kind of swizzle. All but the kind in units of 16. */
static ulong matrix_of(uint address, uint line, uint chunk, uint eight)
{
    ulong kind = line == 128 ? 1 : line == 64 ? 2 : 3;
    return (ulong)(address >> 4 & 0x3fff) | (ulong)(chunk >> 4) << 16 |
           (ulong)(eight >> 4) << 32 | kind << 62;
}

/* One whose lines follow each other. */
static ulong matrix_at(uint address, uint line, uint chunk)
{
    return matrix_of(address, line, chunk, 8 * line);
}

/* One that starts so many times 16 bytes on from address 0: moves of a start are
 * sums of 32 bits. */
static ulong matrix_from(uint start, uint line, uint chunk)
{
    return matrix_at(0, line, chunk) | start;
}

/* The address of the half at (mn, k) that a descriptor leads to. */
static uint matrix_half(ulong matrix, int along_k, int mn, int k)
{
    uint start = (uint)(matrix & 0x3fff) << 4;
    uint chunk = (uint)(matrix >> 16 & 0x3fff) << 4;
    uint eight = (uint)(matrix >> 32 & 0x3fff) << 4;
    uint line = 256 >> (uint)(matrix >> 62);
    uint in_k = line * (mn & 7) + eight * (mn >> 3) + 2 * k;
    uint in_mn = 2 * (mn % (line / 2)) + chunk * (mn / (line / 2)) +
                 line * (k & 7) + eight * (k >> 3);
    return swizzled(start + (along_k ? in_k : in_mn), line);
}

/*
 * Hopper's asynchronous parts as functions: barriers in local memory, copies
 * to it, and what surrounds the products of a warpgroup. An address is that of
 * a byte in local memory, as PTX counts them. Lines that sm_90a alone knows
 * carry the mark that src/ptx.h takes away.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* The same for all of a warp, which the compiler cannot know. */
static int uniform(int value)
{
    int same;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;"
                 : "=r"(same) : "r"(value));
    return same;
}

/* The value, worked out where it stands, not before a loop. */
static uint here(uint value)
{
    asm volatile("" : "+r"(value));
    return value;
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

/* Arrives once all copies by the work-item so far have. */
static void barrier_arrive_copies(uint address)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                 :: "r"(address) : "memory");
}

/* ---- By registers ----------------------------------------------------- */

static void put2(__local uchar *tiles, uint to, ushort v)
{
    asm volatile("st.shared.b16 [%0], %1;" :: "r"(to), "h"(v) : "memory");
}

static uint4 get16(__local const uchar *tiles, uint from)
{
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from) : "memory");
    return v;
}

static uint get2(__local const uchar *tiles, uint from)
{
    ushort v;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(v) : "r"(from) : "memory");
    return v;
}

static float get_float(__local const uchar *tiles, uint from)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}

/* Rounded to nearest, in order. */
static uint4 halves8(float8 v)
{
    return (uint4)(halves2(v.s0, v.s1), halves2(v.s2, v.s3),
                   halves2(v.s4, v.s5), halves2(v.s6, v.s7));
}

static float2 floats2(uint halves)
{
    float x, y;
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; "
        "cvt.f32.f16 %1, b; }" : "=f"(x), "=f"(y) : "r"(halves));
    return (float2)(x, y);
}

static float8 floats8(uint4 v)
{
    return (float8)(floats2(v.x), floats2(v.y), floats2(v.z), floats2(v.w));
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

/* Bytes that follow each other. Addresses and the number are multiples of 16. */
static void load_bytes(__local uchar *tiles, uint to, __global const void *from,
                       uint bytes, uint full)
{
    asm volatile("cp.async.bulk.shared::cluster.global."
                 "mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(full) : "memory");
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

/* No products belong to these that come later. */
static void products_commit(void)
{
    asm volatile("//@@wgmma.commit_group.sync.aligned;" ::: "memory");
}

static void products_wait(void)
{
    asm volatile("//@@wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Waits for the products since products_begin(). */
static void products_end(void)
{
    products_commit();
    products_wait();
}

/* Where a work-item's registers of D are. */
int d_row(int lane, int reg, int part) {
    return 16 * (lane / 32) + lane % 32 / 4 + 8 * (reg / 2 % 2);
}

int d_column(int lane, int reg, int part) {
    return 8 * (reg / 4) + 2 * (lane % 4) + reg % 2;
}

__attribute__((always_inline))
static void product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane) {
    asm volatile("//@@{ .reg .pred add; setp.eq.u32 add, 0, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{"
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7, "
        "%8, %9, %10, %11, "
        "%12, %13, %14, %15, "
        "%16, %17, %18, %19, "
        "%20, %21, %22, %23, "
        "%24, %25, %26, %27, "
        "%28, %29, %30, %31"
        "}, "
        "%32, %33, add, 1, 1, 1, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

__attribute__((always_inline))
static void hold(float *d) {
    asm volatile(""
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        :: "memory");
}

/* One work-group's tile. */
typedef struct {
    int image, y0, x0;
} block_t;

int block_count(const sizes_t *s) {
    return s->n * ((s->p + 16 - 1) / 16) * ((s->q + 16 - 1) / 16);
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    int across = (s->q + 16 - 1) / 16;
    int down = (s->p + 16 - 1) / 16;
    b->x0 = number % across * 16;
    number /= across;
    b->y0 = number % down * 16;
    b->image = number / down;
}

static float load_x(__global const half *p, long i) {
    return vload_half(i, p);
}

__kernel
__attribute__((reqd_work_group_size(256, 1, 1)))
void bwd_weight_stem_fold(
    __global const half *x, long x_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    x += x_offset;
    scratch += scratch_offset;
    const int across = sizes.q + (4 - 1) * 1;
    const int down = sizes.p + (4 - 1) * 1;
    const int number = (int)(get_group_id(0) * 256 + get_local_id(0));
    if (number >= sizes.n * down * across)
        return;
    const int image = number / across / down;
    const int h0 = number / across % down * 2 - sizes.pad_top;
    const int w0 = number % across * 2 - sizes.pad_left;
    ushort line[16] = { 0 };
    #pragma unroll
    for (int n = 0; n < 12; ++n) {
        const int3 place = fold_place(n);
        const int h = h0 + place.y, w = w0 + place.z;
        if (h >= 0 && h < sizes.h && w >= 0 && w < sizes.w)
            vstore_half(load_x(x, image * sizes.x_image + place.x * sizes.x_channel + h * sizes.x_row + w * sizes.x_column), n, (half *)line);
    }
    __global ushort *to = (__global ushort *)(scratch + 2171136) + (long)number * 16;
    for (int i = 0; i < 16; i += 8)
        *(__global uint4 *)(to + i) = as_uint4(vload8(0, line + i));
}

__attribute__((always_inline))
void load_tile(__local uchar *tiles, uint at, uint full, __global const ulong *dy_source, __global const ulong *x_source, const block_t *b, const sizes_t *s, int lane) {
    const int4 from = (int4)(0, b->x0, b->y0, b->image);
    load_tiled(tiles, at, dy_source, full, from, lane);
    load_tiled(tiles, at + 32768, x_source, full, from, lane);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at, uint base, float sum[4][32], int warpgroup, int lane) {
    const ulong dy = matrix_of(at, 128, 0, 16 * 128);
    const ulong x = matrix_of(at + 32768, 2 * 16, 2 * 16 * 1, 2 * 16 * 19);
    #pragma unroll
    for (int i = 0; i < 16 / 8 * (16 / 2); ++i) {
        const int row = i / (16 / 8) * 2, column = i % (16 / 8) * 8;
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int a = min(4 * warpgroup + j, 4 - 1);
            const int position = (row + a * 1) * 19 + column;
            product(tiles, sum[j], dy + (row * 16 + column) * (128 / 16), x + position * (2 * 16 / 16), lane);
        }
    }
}

__kernel
__attribute__((reqd_work_group_size(160, 1, 1)))
void bwd_weight_stem(
    __global const half *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes,
    map_t dy_map,
    map_t x_map) {
    dy += dy_offset;
    scratch += scratch_offset;
    __global const half *folded = (__global const half *)(scratch + 2171136);
    __local uchar tiles[136192] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int blocks = block_count(&sizes);
    __local ulong barriers[2 * 3];
    const uint base = (shared_address(tiles) + 1023) & ~1023u;
    const uint full = shared_address(barriers);
    const uint empty = full + 8 * 3;
    if (item == 0) {
        for (int i = 0; i < 3; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 4);
        }
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 128) {
        if (item > 128)
            return;
        __global ulong *maps = (__global ulong *)scratch + 32 * get_group_id(0);
        __global const ulong *dy_source = map_source(maps, &dy_map, dy);
        __global const ulong *x_source = map_source(maps + 16, &x_map, folded);
        int stage = 0;
        uint phase = 1;
        for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
            block_t block;
            block_place(&block, &sizes, number);
            const uint at = base + 0 + stage * 45056;
            barrier_wait(empty + 8 * stage, phase);
            barrier_expect(full + 8 * stage, 44320);
            load_tile(tiles, at, full + 8 * stage, dy_source, x_source, &block, &sizes, 0);
            if (++stage == 3) {
                stage = 0;
                phase ^= 1;
            }
        }
        return;
    }
    int stage = 0;
    uint phase = 0;
    float sum[4][32];
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        #pragma unroll
        for (int reg = 0; reg < 32; ++reg)
            sum[i][reg] = 0.0f;
    for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
        block_t block;
        block_place(&block, &sizes, number);
        const uint at = base + 0 + stage * 45056;
        barrier_wait(full + 8 * stage, phase);
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            hold(sum[i]);
        products_begin();
        multiply(tiles, at, base, sum, warpgroup, lane);
        products_end();
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            hold(sum[i]);
        if (lane % 32 == 0)
            barrier_arrive(empty + 8 * stage);
        if (++stage == 3) {
            stage = 0;
            phase ^= 1;
        }
    }
    if (item < 128) {
        __global float *part = scratch + 8448 + get_group_id(0) * 16384;
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = 4 * warpgroup + j;
            #pragma unroll
            for (int reg = 0; reg < 32; reg += 2) {
                const int k = d_row(lane, reg, 0);
                const int column = 16 * 4 * row + d_column(lane, reg, 0);
                if (row < 4 && k < sizes.k)
                    *(__global float2 *)(part + k * 256 + column) = (float2)(sum[j][reg], sum[j][reg + 1]);
            }
        }
    }
}

int part_index(int i) {
    int k = i / (3 * 7 * 7);
    int c = i % 3;
    int r = i / (7 * 3) % 7;
    int s = i / 3 % 7;
    int tap = r / 2 * 4 + s / 2;
    return k * 256 + tap * 16 + fold_channel(c, r % 2, s % 2);
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static float bias_share(__global const float *sums, int count, int run,
    int channels, int k) {
    float total = 0.0f;
    for (int i = (int)get_local_id(0); i < count;) {
        float sum = 0.0f;
        const int end = min(count, i + 16384);
        for (; i < end; i += 256)
            sum += sums[((long)(i / run) * channels + k) * run + i % run];
        total += sum;
    }
    return total;
}

static float bias_total(__local const float4 *shares) {
    float4 sum = 0.0f;
    for (int i = 0; i < 256 / 4; ++i)
        sum += shares[i];
    return (sum.x + sum.y) + (sum.z + sum.w);
}

static void store_db(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
__attribute__((reqd_work_group_size(256, 1, 1)))
void bwd_weight_stem_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta_dw,
    sizes_t sizes,
    __global const float *bias_sums, long bias_sums_offset, int bias_count, int bias_run,
    __global float *db, long db_offset,
    float beta_db) {
    scratch += scratch_offset;
    dw += dw_offset;
    bias_sums += bias_sums_offset;
    db += db_offset;
    __local float4 bias_shares[256 / 4];
    const int k = (int)get_group_id(0);
    const int bias_wanted = db && k < sizes.k;
    ((__local float *)bias_shares)[get_local_id(0)] = bias_share(bias_sums, bias_wanted ? bias_count : 0, bias_run, sizes.k, k);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (bias_wanted && get_local_id(0) == 0) {
        store_db(db, k, bias_total(bias_shares), beta_db);
    }
    __local float sums[8][32];
    const int item = (int)get_local_id(0);
    const int slice = item / 32;
    const int i = (int)((long)k - sizes.k) * 32 + item % 32;
    const int count = sizes.k * 3 * 7 * 7;
    __global const float *part = scratch + 8448 + part_index(clamp(i, 0, count - 1));
    float sum = 0.0f;
    #pragma unroll 8
    for (int j = dw && k >= sizes.k && i < count ? slice : 132; j < 132; j += 8)
        sum += part[j * 16384];
    sums[slice][item % 32] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice == 0 && dw && k >= sizes.k && i < count) {
        for (int j = 1; j < 8; ++j)
            sum += sums[j][item];
        store_dw(dw, i, sum, beta_dw);
    }
}
