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
    b->columns = s->r * s->s * ((s->group_c + 63) / 64 * 64);
    int column_tiles = (b->columns + 192 - 1) / 192;
    int k_tiles = (s->group_k + 128 - 1) / 128;
    b->column0 = number % column_tiles * 192;
    number /= column_tiles;
    b->k0 = number % k_tiles * 128;
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
    int tap = column / ((s->group_c + 63) / 64 * 64);
    int channel = column % ((s->group_c + 63) / 64 * 64);
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
    return b->column0 + n < b->columns && column.x < s->group_c ? at : -1;
}

__attribute__((always_inline))
long part_row(const block_t *b, const sizes_t *s, int m) {
    return dw_row(b, s, m);
}

__attribute__((always_inline))
long part_column(const block_t *b, const sizes_t *s, int n) {
    int3 column = column_at(s, b->column0 + n);
    int tap = column.y * s->s + column.z;
    return b->column0 + n < b->columns && column.x < s->group_c ? tap * s->group_c + column.x : -1;
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

/* How the steps of all tiles are shared out. */
typedef struct {
    int steps; /* of a tile */
    int each;  /* of a work-group with one tile */
    int parts; /* of a tile, before the sharers' */
    int rest;  /* of a tile, for the sharers */
} shares_t;

__attribute__((always_inline))
shares_t get_shares(const sizes_t *s) {
    shares_t h;
    h.steps = (s->n * s->p * s->q + 64 - 1) / 64;
    h.each = (int)96 * h.steps / 132;
    h.parts = h.each ? min(1, (h.steps + h.each - 1) / h.each) : 0;
    h.rest = h.steps - 1 * h.each;
    return h;
}

__attribute__((always_inline))
int sharer_of(const shares_t *h, int at) {
    return ((at + 1) * 36 - 1) / ((int)96 * h->rest);
}

__attribute__((always_inline))
int block_share(block_t *b, const sizes_t *s, int number) {
    const shares_t h = get_shares(s);
    const int share = number % 132;
    const int piece = number / 132;
    int tile = share % 96;
    int part = share / 96;
    int begin = part * h.each;
    int end = piece ? begin : min(begin + h.each, h.steps);
    if (share >= 1 * 96) {
        const int sharer = share - 1 * 96;
        const int rests = (int)96 * h.rest;
        const int first = sharer * rests / 36;
        const int last = (sharer + 1) * rests / 36;
        if (first == last)
            return 0;
        tile = first / h.rest + piece;
        const int from = (int)tile * h.rest;
        if (from >= last)
            return 0;
        part = h.parts + sharer - sharer_of(&h, from);
        begin = 1 * h.each + (int)(max(first, from) - from);
        end = 1 * h.each + (int)(min(last, from + h.rest) - from);
    }
    block_place(b, s, 1, tile);
    b->part = part;
    b->end = min(end * 64, b->end);
    b->begin = begin * 64;
    return b->begin < b->end;
}

__attribute__((always_inline))
int block_count(const sizes_t *s) {
    return 132 * 4;
}

__attribute__((always_inline))
int tile_with(const sizes_t *s, long i) {
    int3 element = element_at(s, i);
    int column = element.y * ((s->group_c + 63) / 64 * 64) + element.z;
    int column_tiles = (s->r * s->s * ((s->group_c + 63) / 64 * 64) + 192 - 1) / 192;
    int k_tiles = (s->group_k + 128 - 1) / 128;
    int k_tile = element.x / s->group_k * k_tiles + element.x % s->group_k / 128;
    return k_tile * column_tiles + column / 192;
}

__attribute__((always_inline))
int parts_of(const sizes_t *s, int tile) {
    const shares_t h = get_shares(s);
    const int from = (int)tile * h.rest;
    if (h.rest)
        return h.parts + 1 + sharer_of(&h, from + h.rest - 1) - sharer_of(&h, from);
    return h.parts;
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
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
        "{"
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7, "
        "%8, %9, %10, %11, "
        "%12, %13, %14, %15, "
        "%16, %17, %18, %19, "
        "%20, %21, %22, %23, "
        "%24, %25, %26, %27, "
        "%28, %29, %30, %31, "
        "%32, %33, %34, %35, "
        "%36, %37, %38, %39, "
        "%40, %41, %42, %43, "
        "%44, %45, %46, %47, "
        "%48, %49, %50, %51, "
        "%52, %53, %54, %55, "
        "%56, %57, %58, %59, "
        "%60, %61, %62, %63, "
        "%64, %65, %66, %67, "
        "%68, %69, %70, %71, "
        "%72, %73, %74, %75, "
        "%76, %77, %78, %79, "
        "%80, %81, %82, %83, "
        "%84, %85, %86, %87, "
        "%88, %89, %90, %91, "
        "%92, %93, %94, %95"
        "}, "
        "%96, %97, add, 1, 1, 1, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
          "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
          "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]),
          "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]),
          "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
          "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
          "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
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
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
          "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
          "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]),
          "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]),
          "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
          "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
          "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
        :: "memory");
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at_a, uint at_b, float sum[1][96], int lane) {
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

typedef struct {
    int image, row, column; /* of dY */
    int images, rows, columns; /* of a step */
    int4 tap[3]; /* of B: channel, column, row */
} cursor_t;

void cursor_begin(cursor_t *c, const block_t *b, const sizes_t *s) {
    int3 pixel = pixel_at(s, b->begin);
    int3 step = pixel_at(s, 64);
    c->image = pixel.x;
    c->row = pixel.y;
    c->column = pixel.z;
    c->images = step.x;
    c->rows = step.y;
    c->columns = step.z;
    #pragma unroll
    for (int i = 0; i < 3; ++i) {
        int3 column = column_at(s, min(b->column0 + 64 * i, b->columns - 64));
        c->tap[i] = (int4)(b->group * ((s->group_c + 7) / 8 * 8) + column.x, column.z * s->dilation_w, column.y * s->dilation_h, 0);
    }
}

__attribute__((always_inline))
void load_step(__local uchar *tiles, uint at, uint full, __global const ulong *a_source, __global const ulong *b_source, const block_t *block, const sizes_t *sizes, cursor_t *cursor, int lane) {
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        load_im2col(tiles, at + 8192 * i, a_source, full,
            (int4)(block->group * ((sizes->group_k + 7) / 8 * 8) + block->k0 + 64 * i, cursor->column, cursor->row, cursor->image), (int2)(0), lane);
    const int4 pixel = (int4)(0, cursor->column * sizes->stride_w - sizes->pad_left, cursor->row * sizes->stride_h - sizes->pad_top, cursor->image);
    #pragma unroll
    for (int i = 0; i < 3; ++i)
        load_im2col(tiles, at + 16384 + 8192 * i, b_source, full,
            pixel + (int4)(cursor->tap[i].x, 0, 0, 0), cursor->tap[i].yz, lane);
    cursor->column += cursor->columns;
    cursor->row += cursor->rows;
    cursor->image += cursor->images;
    if (cursor->column >= sizes->q) {
        cursor->column -= sizes->q;
        ++cursor->row;
    }
    if (cursor->row >= sizes->p) {
        cursor->row -= sizes->p;
        ++cursor->image;
    }
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
__attribute__((reqd_work_group_size(288, 1, 1)))
void bwd_weight_wgmma(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    map_t dy_map,
    map_t x_map) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 2097152,
        .dy_channel = 1,
        .dy_row = 32768,
        .dy_column = 512,
        .x_image = 2097152,
        .x_channel = 1,
        .x_row = 32768,
        .x_column = 512,
        .w_image = 4608,
        .w_channel = 1,
        .w_row = 1536,
        .w_column = 512,
        .n = batch,
        .c = 512,
        .h = 64,
        .w = 64,
        .k = 512,
        .r = 3,
        .s = 3,
        .p = 64,
        .q = 64,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 512,
        .group_k = 512,
    };
    __local uchar tiles[164864] __attribute__((aligned(16)));
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
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 8);
        }
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 256) {
        const int copier = item - 256;
        if (copier > 0)
            return;
        __global ulong *maps = (__global ulong *)(scratch + 7077888) + 32 * get_group_id(0);
        __global const ulong *a_source = map_source(maps, &dy_map, dy);
        __global const ulong *b_source = map_source(maps + 16, &x_map, x);
        int stage = 0;
        uint phase = 1;
        for (int number = (int)get_group_id(0) * 1; number < blocks; number = number_after(number, 1)) {
            block_t block;
            if (!block_share(&block, &sizes, number)) continue;
            cursor_t cursor;
            cursor_begin(&cursor, &block, &sizes);
            for (int k0 = block.begin; k0 < block.end; k0 += 64) {
                const uint at = base + stage * 40960;
                barrier_wait(empty + 8 * stage, phase);
                barrier_expect(full + 8 * stage, 40960);
                load_step(tiles, at, full + 8 * stage, a_source, b_source, &block, &sizes, &cursor, copier);
                if (++stage == 4) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
        return;
    }
    int stage = 0;
    uint phase = 0;
    for (int number = (int)get_group_id(0) * 1; number < blocks; number = number_after(number, 1)) {
        float sum[1][96];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 96; ++reg)
                sum[i][reg] = 0.0f;
        block_t block;
        if (!block_share(&block, &sizes, number)) continue;
        for (int k0 = block.begin; k0 < block.end; k0 += 64) {
            const uint at = base + stage * 40960;
            barrier_wait(full + 8 * stage, phase);
            #pragma unroll
            for (int i = 0; i < 1; ++i)
                hold(sum[i]);
            products_begin();
            multiply(tiles, at + 8192 * warpgroup, at + 16384 + 0 * warpgroup, sum, lane);
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
        __global float *partial = scratch + block.part * (sizes.k * sizes.w_image);
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = part_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
            #pragma unroll
            for (int reg = first; reg < 96; reg += 4) {
                const float *s = sum[i / 2] + reg;
                const long column = part_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                if (row >= 0 && column >= 0)
                    *(__global float2 *)(partial + row + column) = (float2)(s[0] * 0x1p0f, s[1] * 0x1p0f);
            }
        }
    }
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
void bwd_weight_wgmma_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta_dw,
    int batch,
    __global const float *bias_sums, long bias_sums_offset, int bias_count, int bias_run,
    __global float *db, long db_offset,
    float beta_db) {
    scratch += scratch_offset;
    dw += dw_offset;
    bias_sums += bias_sums_offset;
    db += db_offset;
    const sizes_t sizes = {
        .dy_image = 2097152,
        .dy_channel = 1,
        .dy_row = 32768,
        .dy_column = 512,
        .x_image = 2097152,
        .x_channel = 1,
        .x_row = 32768,
        .x_column = 512,
        .w_image = 4608,
        .w_channel = 1,
        .w_row = 1536,
        .w_column = 512,
        .n = batch,
        .c = 512,
        .h = 64,
        .w = 64,
        .k = 512,
        .r = 3,
        .s = 3,
        .p = 64,
        .q = 64,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 512,
        .group_k = 512,
    };
    __local int parts_of_tile[96];
    for (int i = (int)get_local_id(0); i < 96; i += 256)
        parts_of_tile[i] = parts_of(&sizes, i);
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float4 bias_shares[256 / 4];
    const int k = (int)get_group_id(0);
    const int bias_wanted = db && k < sizes.k;
    ((__local float *)bias_shares)[get_local_id(0)] = bias_share(bias_sums, bias_wanted ? bias_count : 0, bias_run, sizes.k, k);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (bias_wanted && get_local_id(0) == 0) {
        store_db(db, k, bias_total(bias_shares), beta_db);
    }
    long count = sizes.k * sizes.w_image;
    long i = ((long)k - sizes.k) * 256 + get_local_id(0);
    if (dw && k >= sizes.k && i < count) {
        long place = i;
        int parts = parts_of_tile[tile_with(&sizes, i)];
        float value = 0.0f;
        #pragma unroll 8
        for (int part = 0; part < 3; ++part)
            value += part < parts ? scratch[part * count + place] : 0.0f;
        store_dw(dw, i, value, beta_dw);
    }
}
