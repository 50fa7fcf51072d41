/* Step 3: bwd_weight_wgmma */

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

/* One work-group's tile of dW. */
typedef struct {
    int group;
    int k0, column0; /* of the tile */
    int columns; /* taps * channels of a group */
    int part; /* of the split sum */
    int begin, end; /* its pixels */
} block_t;

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int split, int number) {
    b->columns = s->r * s->s * s->group_c;
    int column_tiles = (b->columns + 192 - 1) / 192;
    int k_tiles = (s->group_k + 64 - 1) / 64;
    b->column0 = number % column_tiles * 192;
    number /= column_tiles;
    b->k0 = number % k_tiles * 64;
    number /= k_tiles;
    b->group = number % s->groups;
    b->part = number / s->groups;
    int pixels = s->n * s->p * s->q;
    int tiles = (pixels + split * 64 - 1) / (split * 64);
    b->begin = min(b->part * tiles * 64, pixels);
    b->end = min(b->begin + tiles * 64, pixels);
}

__attribute__((always_inline))
int3 pixel_at(const sizes_t *s, int pixel) {
    int row = pixel / s->q;
    return (int3)(row / s->p, row % s->p, pixel % s->q);
}

__attribute__((always_inline))
int3 column_at(const sizes_t *s, int column) {
    int tap = column / s->group_c;
    int channel = column % s->group_c;
    return (int3)(channel, tap / s->s, tap % s->s);
}

__attribute__((always_inline))
long dw_row(const block_t *b, const sizes_t *s, int m) {
    int k = b->k0 + m;
    long at = (b->group * s->group_k + k) * s->w_image;
    return k < s->group_k ? at : -1;
}

__attribute__((always_inline))
long dw_column(const block_t *b, const sizes_t *s, int n) {
    int3 column = column_at(s, b->column0 + n);
    long at = column.x * s->w_channel + column.y * s->w_row + column.z * s->w_column;
    return b->column0 + n < b->columns ? at : -1;
}

/*
 * Where a row or a term of an implicit matrix product lies in a tensor: an
 * index (x, y: low and high half) and the row (z) and column (w) that the
 * tensor bounds. The element of a row and a term is at the sum of both spots,
 * if that is inside. A vector, not a struct: one load from local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef int4 spot_t;

/* What does not exist gets a row that no other spot brings back inside. */
spot_t spot(int exists, long at, int y, int x)
{
    return (spot_t)(as_int2(at), exists ? y : -0x40000000, x);
}

int spot_inside(spot_t row, spot_t term, int limit_y, int limit_x)
{
    return (uint)(row.z + term.z) < (uint)limit_y &
           (uint)(row.w + term.w) < (uint)limit_x;
}

long spot_index(spot_t row, spot_t term)
{
    return as_long(row.xy) + as_long(term.xy);
}

/* The same with an index in units that are so many times smaller. */
spot_t spot_scaled(spot_t s, int times)
{
    return (spot_t)(as_int2(as_long(s.xy) * times), s.z, s.w);
}

__attribute__((always_inline))
spot_t dy_row(const block_t *b, const sizes_t *s, int row) {
    int k = b->k0 + row;
    long at = (b->group * s->group_k + k) * s->dy_channel;
    return spot(k < s->group_k, at, 0, 0);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    long at = pixel.x * s->dy_image + pixel.y * s->dy_row + pixel.z * s->dy_column;
    return spot(k < b->end, at, 0, 0);
}

__attribute__((always_inline))
spot_t x_row(const block_t *b, const sizes_t *s, int row) {
    if (b->column0 + row >= b->columns)
        return spot(0, 0, 0, 0);
    int3 column = column_at(s, b->column0 + row);
    int y = column.y * s->dilation_h - s->pad_top;
    int x = column.z * s->dilation_w - s->pad_left;
    long at = (b->group * s->group_c + column.x) * s->x_channel + y * s->x_row + x * s->x_column;
    return spot(1, at, y, x);
}

__attribute__((always_inline))
spot_t x_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    int y = pixel.y * s->stride_h;
    int x = pixel.z * s->stride_w;
    long at = pixel.x * s->x_image + y * s->x_row + x * s->x_column;
    return spot(k < b->end, at, y, x);
}

__attribute__((always_inline))
long part_row(const block_t *b, const sizes_t *s, int m) {
    return dw_row(b, s, m);
}

__attribute__((always_inline))
long part_column(const block_t *b, const sizes_t *s, int n) {
    return b->column0 + n < b->columns ? b->column0 + n : -1;
}

__attribute__((always_inline))
int3 element_at(const sizes_t *s, long i) {
    int k = i / s->w_image;
    int rest = (int)(i - k * s->w_image);
    int taps = s->r * s->s;
    return s->w_channel == 1 ? (int3)(k, rest / s->group_c, rest % s->group_c)
                             : (int3)(k, rest % taps, rest / taps);
}

__attribute__((always_inline))
long part_place(const sizes_t *s, long i) {
    int3 element = element_at(s, i);
    int own = element.x / s->group_k % 1;
    long tap = (long)element.x * (s->r * s->s) + element.y;
    return tap * (1 * s->group_c) + own * s->group_c + element.z;
}

__attribute__((always_inline))
int block_count(const sizes_t *s) {
    int columns = s->r * s->s * s->group_c;
    return 1 * s->groups * ((s->group_k + 64 - 1) / 64) * ((columns + 192 - 1) / 192);
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

__attribute__((always_inline))
void a_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        rows[i] = dy_row(block, sizes, 64 * i + 8 * (item % 8));
}

__attribute__((always_inline))
void a_stage(__local uchar *tiles, uint at, __global const half *dy, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        const spot_t term = dy_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const uint to = at + 2048 * j + 8192 * i;
            const int exists = spot_inside(rows[i], term, 1, 1);
            copy16(tiles, to, dy + (exists ? spot_index(rows[i], term) : 0), exists);
        }
    }
}

__attribute__((always_inline))
void b_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 3; ++i)
        rows[i] = x_row(block, sizes, 64 * i + 8 * (item % 8));
}

__attribute__((always_inline))
void b_stage(__local uchar *tiles, uint at, __global const half *x, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        const spot_t term = x_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 3; ++i) {
            const uint to = at + 2048 * j + 8192 * i;
            const int exists = spot_inside(rows[i], term, sizes->h, sizes->w);
            copy16(tiles, to, x + (exists ? spot_index(rows[i], term) : 0), exists);
        }
    }
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at_a, uint at_b, float sum[1][32], int lane) {
    const ulong a = matrix_at(at_a, 128, 8192);
    const ulong b = matrix_at(at_b, 128, 8192);
    #pragma unroll
    for (int k = 0; k < 4; ++k)
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            product(tiles, sum[i], a + 512 * i + 128 * k, b + 128 * k, lane);
}

int number_after(int number, int run) {
    const int others = run * ((int)get_num_groups(0) - 1);
    return number + 1 + (number % run == run - 1 ? others : 0);
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_pair(__global float *p, long row,
    long first, long second, float2 pair,
    float beta) {
    if (first >= 0)
        store_dw(p, row + first, pair.x, beta);
    if (second >= 0)
        store_dw(p, row + second, pair.y, beta);
}

__kernel
__attribute__((reqd_work_group_size(512, 1, 1)))
void bwd_weight_wgmma(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
    __global float *dw, long dw_offset,
    float beta,
    int batch) {
    dy += dy_offset;
    x += x_offset;
    dw += dw_offset;
    const sizes_t sizes = {
        .dy_image = 50176,
        .dy_channel = 1,
        .dy_row = 1792,
        .dy_column = 64,
        .x_image = 50176,
        .x_channel = 1,
        .x_row = 1792,
        .x_column = 64,
        .w_image = 576,
        .w_channel = 1,
        .w_row = 192,
        .w_column = 64,
        .n = batch,
        .c = 64,
        .h = 28,
        .w = 28,
        .k = 64,
        .r = 3,
        .s = 3,
        .p = 28,
        .q = 28,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 64,
        .group_k = 64,
    };
    __local uchar tiles[132096] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int blocks = block_count(&sizes);
    __local ulong barriers[2 * 4];
    const uint base = (shared_address(tiles) + 1023) & ~1023u;
    const uint full = shared_address(barriers);
    const uint empty = full + 8 * 4;
    if (item == 0) {
        for (int i = 0; i < 4; ++i) {
            barrier_init(full + 8 * i, 128);
            barrier_init(empty + 8 * i, 12);
        }
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 384) {
        const int copier = item - 384;
        int stage = 0, steps = 0;
        uint phase = 1;
        for (int number = (int)get_group_id(0) * 1; number < blocks; number = number_after(number, 1)) {
            block_t block;
            block_place(&block, &sizes, 1, number);
            spot_t a_rows[1], b_rows[3];
            a_begin(&block, &sizes, copier, a_rows);
            b_begin(&block, &sizes, copier, b_rows);
            for (int k0 = block.begin; k0 < block.end; k0 += 64) {
                const uint at = base + stage * 32768;
                barrier_wait(empty + 8 * stage, phase);
                a_stage(tiles, at, dy, &block, &sizes, a_rows, k0, copier);
                b_stage(tiles, at + 8192, x, &block, &sizes, b_rows, k0, copier);
                copies_commit();
                if (++steps > 2) {
                    asm volatile("cp.async.wait_group 2;" ::: "memory");
                    publish();
                    barrier_arrive(full + 8 * ((stage + 2) % 4));
                }
                if (++stage == 4) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        publish();
        for (int i = min(steps, 2); i > 0; --i)
            barrier_arrive(full + 8 * ((stage + 4 - i) % 4));
        return;
    }
    int stage = 0;
    uint phase = 0;
    for (int number = (int)get_group_id(0) * 1; number < blocks; number = number_after(number, 1)) {
        float sum[1][32];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 32; ++reg)
                sum[i][reg] = 0.0f;
        block_t block;
        block_place(&block, &sizes, 1, number);
        for (int k0 = block.begin; k0 < block.end; k0 += 64) {
            const uint at = base + stage * 32768;
            barrier_wait(full + 8 * stage, phase);
            #pragma unroll
            for (int i = 0; i < 1; ++i)
                hold(sum[i]);
            products_begin();
            multiply(tiles, at + 0 * warpgroup, at + 8192 + 8192 * warpgroup, sum, lane);
            products_end();
            #pragma unroll
            for (int i = 0; i < 1; ++i)
                hold(sum[i]);
            if (lane % 32 == 0)
                barrier_arrive(empty + 8 * stage);
            if (++stage == 4) {
                stage = 0;
                phase ^= 1;
            }
        }
        if (beta == 0.0f) {
            #pragma unroll
            for (int i = 0; i < 2 * 1; ++i) {
                const int first = 2 * (i % 2);
                const long row = dw_row(&block, &sizes, 0 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                #pragma unroll
                for (int reg = first; reg < 32; reg += 4) {
                    const float *s = sum[i / 2] + reg;
                    const long column = dw_column(&block, &sizes, 64 * warpgroup + d_column(lane, reg, 0));
                    if (row >= 0 && column >= 0)
                        *(__global float2 *)(dw + row + column) = (float2)(s[0] * 0x1p-10f, s[1] * 0x1p-10f);
                }
            }
        } else {
            #pragma unroll
            for (int i = 0; i < 2 * 1; ++i) {
                const int first = 2 * (i % 2);
                const long row = dw_row(&block, &sizes, 0 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                #pragma unroll 1
                for (int reg = 0; reg < 32; reg += 4) {
                    const long left = dw_column(&block, &sizes, 64 * warpgroup + d_column(lane, reg, 0));
                    const long right = dw_column(&block, &sizes, 64 * warpgroup + d_column(lane, reg, 0) + 1);
                    const float2 pair = (float2)(sum[i / 2][first], sum[i / 2][first + 1]);
                    if (row >= 0)
                        store_pair(dw, row, left, right, pair, beta);
                    float kept[4];
                    #pragma unroll
                    for (int j = 0; j < 4; ++j)
                        kept[j] = sum[i / 2][j];
                    #pragma unroll
                    for (int j = 0; j < 32 - 4; ++j)
                        sum[i / 2][j] = sum[i / 2][j + 4];
                    #pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sum[i / 2][32 - 4 + j] = kept[j];
                }
            }
        }
    }
}
