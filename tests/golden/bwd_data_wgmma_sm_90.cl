/* Step 2: bwd_data_wgmma */

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

/*
 * The first filter tap from r on that a stride lets meet the input at
 * position x (counted from the padding's edge): x - r * dilation must be a
 * multiple of the stride. taps if there is none; r is at most that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
int tap_from(int r, int x, int dilation, int stride, int taps)
{
    if (stride == 1)
        return r;
    while (r < taps && (x - r * dilation) % stride != 0)
        ++r;
    return r;
}

/* One work-group's tile of dX. */
typedef struct {
    int group;
    int pixel0, c0; /* of the tile */
    int h0, w0; /* of the phase: h = h0 + stride_h * line */
    int lines, columns; /* of the phase in an image */
    int r0, s0, r_step, s_step; /* taps that the phase meets */
    int taps_s, taps; /* of them in a filter row, in all */
    int begin, end; /* terms */
} block_t;

__attribute__((always_inline))
void block_taps(block_t *b, const sizes_t *s) {
    int y = b->h0 + s->pad_top;
    int x = b->w0 + s->pad_left;
    b->r0 = tap_from(0, y, s->dilation_h, s->stride_h, s->r);
    b->s0 = tap_from(0, x, s->dilation_w, s->stride_w, s->s);
    b->r_step = tap_from(b->r0 + 1, y, s->dilation_h, s->stride_h, s->r) - b->r0;
    b->s_step = tap_from(b->s0 + 1, x, s->dilation_w, s->stride_w, s->s) - b->s0;
    int taps_r = (s->r - b->r0 + b->r_step - 1) / b->r_step;
    b->taps_s = (s->s - b->s0 + b->s_step - 1) / b->s_step;
    b->taps = taps_r * b->taps_s;
    b->begin = 0;
    b->end = b->taps * ((s->group_k + 63) / 64 * 64);
}

__attribute__((always_inline))
int block_run(const sizes_t *s) {
    return s->x_column == 1 ? min(s->stride_w, s->w) : 1;
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    b->lines = (s->h - 1) / s->stride_h + 1;
    b->columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * b->lines * b->columns + 192 - 1) / 192;
    int c_tiles = (s->group_c + 128 - 1) / 128;
    int run = block_run(s);
    b->w0 = number % run;
    number /= run;
    b->c0 = number % c_tiles * 128;
    number /= c_tiles;
    b->pixel0 = number % pixel_tiles * 192;
    number /= pixel_tiles;
    b->group = number % s->groups;
    number /= s->groups;
    int runs_w = min(s->stride_w, s->w) / run;
    b->w0 += number % runs_w;
    b->h0 = number / runs_w;
    block_taps(b, s);
}

__attribute__((always_inline))
int3 pixel_at(const block_t *b, const sizes_t *s, int row) {
    int pixel = b->pixel0 + row;
    int column = pixel % b->columns;
    pixel /= b->columns;
    int line = pixel % b->lines;
    int image = pixel / b->lines;
    int inside = image < s->n && b->h0 + line * s->stride_h < s->h &&
                 b->w0 + column * s->stride_w < s->w;
    return (int3)(inside ? image : -1, line, column);
}

__attribute__((always_inline))
int3 term_at(const block_t *b, const sizes_t *s, int k) {
    int tap = k / ((s->group_k + 63) / 64 * 64);
    int channel = k % ((s->group_k + 63) / 64 * 64);
    int r = b->r0 + tap / b->taps_s * b->r_step;
    int t = b->s0 + tap % b->taps_s * b->s_step;
    return (int3)(channel, r, t);
}

__attribute__((always_inline))
long dx_row(const block_t *b, const sizes_t *s, int m) {
    int3 pixel = pixel_at(b, s, m);
    int h = b->h0 + pixel.y * s->stride_h;
    int w = b->w0 + pixel.z * s->stride_w;
    long at = pixel.x * s->x_image + h * s->x_row + w * s->x_column;
    return pixel.x >= 0 ? at : -1;
}

__attribute__((always_inline))
long dx_column(const block_t *b, const sizes_t *s, int n) {
    int c = b->c0 + n;
    long at = (b->group * s->group_c + c) * s->x_channel;
    return c < s->group_c ? at : -1;
}

__attribute__((always_inline))
int block_count(const sizes_t *s) {
    int lines = (s->h - 1) / s->stride_h + 1;
    int columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * lines * columns + 192 - 1) / 192;
    int c_tiles = (s->group_c + 128 - 1) / 128;
    return min(s->stride_h, s->h) * min(s->stride_w, s->w) * s->groups * pixel_tiles * c_tiles;
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
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
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
        "%60, %61, %62, %63"
        "}, "
        "%64, %65, add, 1, 1, 0, 1; }"
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
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
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
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        :: "memory");
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at_a, uint at_b, float sum[1][64], int lane) {
    const ulong a = matrix_at(at_a, 128, 24576);
    const ulong b = matrix_at(at_b, 128, 8192);
    #pragma unroll
    for (int k = 0; k < 4; ++k)
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            product(tiles, sum[i], a + 512 * i + 2 * k, b + 128 * k, lane);
}

int number_after(int number, int run) {
    const int others = run * ((int)get_num_groups(0) - 1);
    return number + 1 + (number % run == run - 1 ? others : 0);
}

int lower(int pad, int taps, int dilation, int stride) {
    int reach = pad - (taps - 1) * dilation;
    return reach >= 0 ? reach / stride : -((stride - 1 - reach) / stride);
}

typedef struct {
    int4 pixel; /* of A: channel of the group, column, row, image */
    int k, r, s; /* of B */
    int2 tap, step, first; /* column, row: now, from tap to tap, at first */
} cursor_t;

void cursor_begin(cursor_t *c, const block_t *b, const sizes_t *s) {
    int row = b->pixel0 / b->columns;
    int2 corner = (int2)(
        lower(s->pad_left, s->s, s->dilation_w, s->stride_w),
        lower(s->pad_top, s->r, s->dilation_h, s->stride_h));
    c->pixel = (int4)(b->group * ((s->group_k + 7) / 8 * 8), b->pixel0 % b->columns + corner.x,
        row % b->lines + corner.y, row / b->lines);
    c->k = 0;
    c->r = b->r0;
    c->s = b->s0;
    c->first = (int2)(
        (b->w0 + s->pad_left - b->s0 * s->dilation_w) / s->stride_w,
        (b->h0 + s->pad_top - b->r0 * s->dilation_h) / s->stride_h) - corner;
    c->step = (int2)(b->s_step * s->dilation_w / s->stride_w, b->r_step * s->dilation_h / s->stride_h);
    c->tap = c->first;
}

__attribute__((always_inline))
void load_step(__local uchar *tiles, uint at, uint full, __global const ulong *a_source, __global const ulong *b_source, const block_t *block, const sizes_t *sizes, cursor_t *cursor, int lane) {
    load_im2col(tiles, at, a_source, full, cursor->pixel + (int4)(cursor->k, 0, 0, 0), cursor->tap, lane);
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        load_tiled(tiles, at + 24576 + 8192 * i, b_source, full,
            (int4)(block->c0 + 64 * i, cursor->s, cursor->r, block->group * sizes->group_k + cursor->k), lane);
    cursor->k += 64;
    if (cursor->k >= sizes->group_k) {
        cursor->k = 0;
        cursor->s += block->s_step;
        cursor->tap.x -= cursor->step.x;
    }
    if (cursor->s >= sizes->s) {
        cursor->s = block->s0;
        cursor->tap.x = cursor->first.x;
        cursor->r += block->r_step;
        cursor->tap.y -= cursor->step.y;
    }
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

/*
 * A 4 x 4 transpose over the four work-items of a quad, t being 0 to 3: each
 * gives four words and ends with the t-th word of all four, in order. All 32
 * of a warp must call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint lane_xor(uint value, uint mask)
{
    uint other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other) : "r"(value), "r"(mask));
    return other;
}

static uint4 quad_transpose(uint4 v, int t)
{
    int odd = t & 1, high = t & 2;
    uint a = lane_xor(odd ? v.x : v.y, 1);
    uint b = lane_xor(odd ? v.z : v.w, 1);
    v = odd ? (uint4)(a, v.y, b, v.w) : (uint4)(v.x, a, v.z, b);
    a = lane_xor(high ? v.x : v.z, 2);
    b = lane_xor(high ? v.y : v.w, 2);
    return high ? (uint4)(a, b, v.z, v.w) : (uint4)(v.x, v.y, a, b);
}

__kernel
__attribute__((reqd_work_group_size(416, 1, 1)))
void bwd_data_wgmma(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    int batch,
    __global uint *dx_counts, long dx_counts_offset,
    __global float *scratch, long scratch_offset,
    map_t dy_map,
    map_t w_map) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 100352,
        .dy_channel = 1,
        .dy_row = 3584,
        .dy_column = 128,
        .x_image = 100352,
        .x_channel = 1,
        .x_row = 3584,
        .x_column = 128,
        .w_image = 1152,
        .w_channel = 1,
        .w_row = 384,
        .w_column = 128,
        .n = batch,
        .c = 128,
        .h = 28,
        .w = 28,
        .k = 128,
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
        .group_c = 128,
        .group_k = 128,
    };
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
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
            barrier_init(empty + 8 * i, 12);
        }
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 384) {
        const int copier = item - 384;
        if (copier > 0)
            return;
        __global ulong *maps = (__global ulong *)(scratch + 0) + 32 * get_group_id(0);
        __global const ulong *a_source = map_source(maps, &dy_map, dy);
        __global const ulong *b_source = map_source(maps + 16, &w_map, w);
        int stage = 0;
        uint phase = 1;
        for (int number = (int)get_group_id(0) * block_run(&sizes); number < blocks; number = number_after(number, block_run(&sizes))) {
            block_t block;
            block_place(&block, &sizes, number);
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
    for (int number = (int)get_group_id(0) * block_run(&sizes); number < blocks; number = number_after(number, block_run(&sizes))) {
        float sum[1][64];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 64; ++reg)
                sum[i][reg] = 0.0f;
        block_t block;
        block_place(&block, &sizes, number);
        for (int k0 = block.begin; k0 < block.end; k0 += 64) {
            const uint at = base + stage * 40960;
            barrier_wait(full + 8 * stage, phase);
            #pragma unroll
            for (int i = 0; i < 1; ++i)
                hold(sum[i]);
            products_begin();
            multiply(tiles, at + 8192 * warpgroup, at + 24576 + 0 * warpgroup, sum, lane);
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
        if (beta == 0.0f && !dx_counts) {
            #pragma unroll
            for (int i = 0; i < 2 * 1; ++i) {
                const int first = 2 * (i % 2);
                const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                #pragma unroll
                for (int reg = first; reg < 64; reg += 16) {
                    const float *s = sum[i / 2] + reg;
                    const uint4 words = quad_transpose((uint4)(
                        half_pair(s[0] * 0x1p0f, s[1] * 0x1p0f),
                        half_pair(s[4] * 0x1p0f, s[5] * 0x1p0f),
                        half_pair(s[8] * 0x1p0f, s[9] * 0x1p0f),
                        half_pair(s[12] * 0x1p0f, s[13] * 0x1p0f)), lane % 4);
                    const long column = dx_column(&block, &sizes, 0 * warpgroup + 2 * (reg - first) + 8 * (lane % 4));
                    if (row >= 0 && column >= 0)
                        *(__global uint4 *)(dx + row + column) = words;
                }
            }
        } else {
            #pragma unroll
            for (int i = 0; i < 2 * 1; ++i) {
                const int first = 2 * (i % 2);
                const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                #pragma unroll 1
                for (int reg = 0; reg < 64; reg += 4) {
                    const long left = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                    const long right = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0) + 1);
                    const float2 pair = (float2)(sum[i / 2][first], sum[i / 2][first + 1]);
                    if (row >= 0)
                        store_pair(dx, row, left, right, pair, beta, &tally);
                    float kept[4];
                    #pragma unroll
                    for (int j = 0; j < 4; ++j)
                        kept[j] = sum[i / 2][j];
                    #pragma unroll
                    for (int j = 0; j < 64 - 4; ++j)
                        sum[i / 2][j] = sum[i / 2][j + 4];
                    #pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sum[i / 2][64 - 4 + j] = kept[j];
                }
            }
        }
    }
    counts_flush(dx_counts, &tally);
}
