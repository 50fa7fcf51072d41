/* Step 2: bwd_data_stem */

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
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
        "{"
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7"
        "}, "
        "%8, %9, add, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "l"(a), "l"(b));
}

__attribute__((always_inline))
static void hold(float *d) {
    asm volatile(""
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        :: "memory");
}

int2 first_position(const sizes_t *s) {
    return (int2)((s->pad_left + 1) / 2, (s->pad_top + 1) / 2);
}

int2 positions(const sizes_t *s) {
    return (int2)((s->pad_left + 1 + s->w - 1) / 2, (s->pad_top + 1 + s->h - 1) / 2) - first_position(s) + 1;
}

/* One work-group's tile. */
typedef struct {
    int image, y0, x0;
} block_t;

int block_count(const sizes_t *s) {
    return s->n * ((positions(s).y + 16 - 1) / 16) * ((positions(s).x + 16 - 1) / 16);
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    int across = (positions(s).x + 16 - 1) / 16;
    int down = (positions(s).y + 16 - 1) / 16;
    b->x0 = number % across * 16;
    number /= across;
    b->y0 = number % down * 16;
    b->image = number / down;
}

__attribute__((always_inline))
int2 position(const block_t *b, const sizes_t *s, int m) {
    int y = b->y0 + m / 64 / 2 * 8 + m % 64 / 8;
    int x = b->x0 + m / 64 % 2 * 8 + m % 8;
    return first_position(s) + (int2)(x, y);
}

__attribute__((always_inline))
long dx_at(const block_t *b, const sizes_t *s, int m, int n) {
    int2 at = position(b, s, m);
    int3 place = fold_place(n);
    int h = at.y * 2 + place.y - 1 - s->pad_top;
    int w = at.x * 2 + place.z - 1 - s->pad_left;
    int exists = n < 3 * 4 && h >= 0 && h < s->h && w >= 0 && w < s->w;
    return exists ? b->image * s->x_image + place.x * s->x_channel + h * s->x_row + w * s->x_column : -1;
}

static float load_w(__global const half *p, long i) {
    return vload_half(i, p);
}

__attribute__((always_inline))
int4 weight_place(int i) {
    return (int4)(i / (7 * 7 * 3), i % 3, i / (7 * 3) % 7, i / 3 % 7);
}

__attribute__((always_inline))
void put_weight(__local uchar *weights, __global const half *w, int i) {
    const int4 at = weight_place(i);
    const int y = at.z + 1, x = at.w + 1;
    const int tap = y / 2 * 4 + x / 2;
    const uint to = 2048 * tap + 2 * (16 * at.x + fold_channel(at.y, y % 2, x % 2));
    vstore_half(load_w(w, i), 0, (__local half *)(weights + swizzled(to, 2 * 16)));
}

__attribute__((always_inline))
void load_tile(__local uchar *tiles, uint at, uint full, __global const ulong *dy_source, const block_t *b, const sizes_t *s, int lane) {
    int2 first = first_position(s);
    load_tiled(tiles, at, dy_source, full, (int4)(0, first.x + b->x0 - (4 - 1), first.y + b->y0 - (4 - 1), b->image), lane);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at, uint base, float sum[1][8], int warpgroup, int lane) {
    const ulong w = matrix_at(base, 2 * 16, 16);
    ulong dy[1];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        const int block = 1 * warpgroup + i;
        const int pixel = block / 2 * 8 * 19 + block % 2 * 8;
        dy[i] = matrix_of(at + pixel * 128, 128, 16, 19 * 128);
    }
    #pragma unroll
    for (int tap = 0; tap < 16; ++tap) {
        const int pixel = (4 - 1 - tap / 4) * 19 + 4 - 1 - tap % 4;
        #pragma unroll
        for (int k = 0; k < 4; ++k)
        #pragma unroll
            for (int i = 0; i < 1; ++i)
                product(tiles, sum[i], dy[i] + pixel * (128 / 16) + 2 * k,
                        w + tap * (2048 / 16) + 2 * 16 * k, lane);
    }
}

static float load_dy(__global const half *p, long i) {
    return vload_half(i, p);
}

__attribute__((always_inline))
float dx_sum(__global const half *dy, __global const half *w, const block_t *b, const sizes_t *s, int m, int n) {
    int2 at = position(b, s, m);
    int3 place = fold_place(n);
    float sum = 0.0f;
    for (int tap = 0; tap < 16; ++tap) {
        int a = tap / 4, b_w = tap % 4;
        int p = at.y - a, q = at.x - b_w;
        int r = a * 2 + place.y - 1;
        int column = b_w * 2 + place.z - 1;
        if (p < 0 || p >= s->p || q < 0 || q >= s->q || r < 0 || r >= 7 || column < 0 || column >= 7)
            continue;
        long pixel = ((long)b->image * s->p + p) * s->q + q;
        long tap_at = place.x * s->w_channel + r * s->w_row + column * s->w_column;
        for (int k = 0; k < s->k; ++k)
            sum += load_dy(dy, pixel * ((s->k + 7) / 8 * 8) + k) * load_w(w, k * s->w_image + tap_at);
    }
    return sum;
}

static float round_dx(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int)(0x477fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

/*
 * What rounding did to elements of one tensor: a work-item's own sums, then
 * added to the report. Fields as in clconv_counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef struct {
    uint nonzero, zeroed, subnormal, saturated, nan, inf;
} counts_t;

/* Adds to a 64-bit count, two uints, low first. */
static void counts_add(volatile __global uint *count, uint amount)
{
    if (amount == 0)
        return;
    uint old = atomic_add(count, amount);
    if (old + amount < old)
        atomic_inc(count + 1);
}

/* No report, no work. */
static void counts_flush(volatile __global uint *counts, counts_t *tally)
{
    if (!counts)
        return;
    counts_add(counts, tally->nonzero);
    counts_add(counts + 2, tally->zeroed);
    counts_add(counts + 4, tally->subnormal);
    counts_add(counts + 6, tally->saturated);
    counts_add(counts + 8, tally->nan);
    counts_add(counts + 10, tally->inf);
}

/* Classes of an element as five-bit fields, so that one sum over a vector of
 * up to 16 elements counts all six: nonzero, zeroed, subnormal, saturated,
 * nan, inf from the lowest. */
static void counts_take(counts_t *tally, int classes)
{
    tally->nonzero += classes & 31;
    tally->zeroed += classes >> 5 & 31;
    tally->subnormal += classes >> 10 & 31;
    tally->saturated += classes >> 15 & 31;
    tally->nan += classes >> 20 & 31;
    tally->inf += classes >> 25 & 31;
}

static void count_dx(counts_t *tally, float before, float after) {
    int b = as_int(before) & 0x7fffffff;
    int a = as_int(after) & 0x7fffffff;
    int is_nan = b > 0x7f800000;
    int is_inf = b == 0x7f800000;
    int nonzero = (b > 0) & (b <= 0x7f800000);
    int zeroed = nonzero & (a == 0);
    int subnormal = (a > 0) & (a < 0x38800000);
    int saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int one = packed;
    counts_take(tally, one);
}

static void store_dx(__global half *p, long i,
    float value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dx(value);
    count_dx(tally, before, value);
    vstore_half(value, i, p);
}

static void store_pair(__global half *p, long row,
    long first, long second, float2 pair,
    float beta, counts_t *tally) {
    if (first >= 0)
        store_dx(p, row + first, pair.x, beta, tally);
    if (second >= 0)
        store_dx(p, row + second, pair.y, beta, tally);
}

static uint half_pair(float x, float y) {
    x = isfinite(x) ? clamp(x, -65504.0f, 65504.0f) : x;
    y = isfinite(y) ? clamp(y, -65504.0f, 65504.0f) : y;
    return halves2(x, y);
}

__kernel
__attribute__((reqd_work_group_size(544, 1, 1)))
void bwd_data_stem(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    sizes_t sizes,
    __global uint *dx_counts, long dx_counts_offset,
    __global float *scratch, long scratch_offset,
    map_t dy_map) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    scratch += scratch_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    __local uchar tiles[175104] __attribute__((aligned(16)));
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
            barrier_init(empty + 8 * i, 16);
        }
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local uchar *weights = tiles + (base - shared_address(tiles));
    for (int i = item; i < 32768 / 16; i += 544)
        *(__local uint4 *)(weights + 16 * i) = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 4
    for (int i = item; i < sizes.k * 3 * 7 * 7; i += 544)
        put_weight(weights, w, i);
    publish();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 512) {
        if (item > 512)
            return;
        __global ulong *maps = (__global ulong *)scratch + 32 * get_group_id(0);
        __global const ulong *dy_source = map_source(maps, &dy_map, dy);
        int stage = 0;
        uint phase = 1;
        for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
            block_t block;
            block_place(&block, &sizes, number);
            const uint at = base + 32768 + stage * 47104;
            barrier_wait(empty + 8 * stage, phase);
            barrier_expect(full + 8 * stage, 46208);
            load_tile(tiles, at, full + 8 * stage, dy_source, &block, &sizes, 0);
            if (++stage == 3) {
                stage = 0;
                phase ^= 1;
            }
        }
        return;
    }
    int stage = 0;
    uint phase = 0;
    for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
        block_t block;
        block_place(&block, &sizes, number);
        const uint at = base + 32768 + stage * 47104;
        float sum[1][8];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 8; ++reg)
                sum[i][reg] = 0.0f;
        barrier_wait(full + 8 * stage, phase);
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            hold(sum[i]);
        products_begin();
        multiply(tiles, at, base, sum, warpgroup, lane);
        products_end();
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            hold(sum[i]);
        if (lane % 32 == 0)
            barrier_arrive(empty + 8 * stage);
        if (++stage == 3) {
            stage = 0;
            phase ^= 1;
        }
        ulong odd = 0;
        #pragma unroll
        for (int i = 0; i < 1 * 8; ++i)
            odd |= isfinite(sum[i / 8][i % 8]) ? 0ul : 1ul << i;
        #pragma unroll 1
        for (int j = 0; odd && j < 1 * 8; ++j) {
            if (!(odd >> j & 1))
                continue;
            const int reg = j % 8;
            const float value = dx_sum(dy, w, &block, &sizes, 64 * (1 * warpgroup + j / 8) + d_row(lane, reg, 0), d_column(lane, reg, 0));
            #pragma unroll
            for (int i = 0; i < 1 * 8; ++i)
                sum[i / 8][i % 8] = i == j ? value : sum[i / 8][i % 8];
        }
        if (beta == 0.0f && !dx_counts) {
            #pragma unroll
            for (int i = 0; i < 1 * 8; i += 2) {
                const int reg = i % 8;
                const int m = 64 * (1 * warpgroup + i / 8) + d_row(lane, reg, 0);
                const int n = d_column(lane, reg, 0);
                const float *s = sum[i / 8] + reg;
                const long left = dx_at(&block, &sizes, m, n);
                if (left >= 0)
                    *(__global uint *)(dx + left) = half_pair(s[0] * 0x1p0f, s[1] * 0x1p0f);
            }
        } else {
            #pragma unroll
            for (int i = 0; i < 1 * 8; i += 2) {
                const int reg = i % 8;
                const int m = 64 * (1 * warpgroup + i / 8) + d_row(lane, reg, 0);
                const int n = d_column(lane, reg, 0);
                const float *s = sum[i / 8] + reg;
                const long left = dx_at(&block, &sizes, m, n);
                const long right = dx_at(&block, &sizes, m, n + 1);
                store_pair(dx, 0, left, right, (float2)(s[0], s[1]), beta, &tally);
            }
        }
    }
    counts_flush(dx_counts, &tally);
}
