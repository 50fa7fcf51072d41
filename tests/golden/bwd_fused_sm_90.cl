/* Step 1: bwd_fused */

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
        "%32, %33, add, 1, 1, 0, 1; }"
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
static void dw_product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane) {
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
static void dw_hold(float *d) {
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

/* Positions: of a row, rows of an image, of all. */
typedef struct {
    int pitch, rows, end;
} line_t;

__attribute__((always_inline))
line_t line_of(const sizes_t *s) {
    const int right = s->q - s->w - s->pad_left + (3 - 1) * 1;
    const int bottom = s->p - s->h - s->pad_top + (3 - 1) * 1;
    line_t line;
    line.pitch = s->w + max(s->pad_left, right);
    line.rows = s->h + max(s->pad_top, bottom);
    line.end = s->n * line.rows * line.pitch;
    return line;
}

typedef struct {
    int image, row, column;
} place_t;

__attribute__((always_inline))
place_t place_at(const line_t *line, int v) {
    const int row = v / line->pitch;
    place_t place;
    place.image = row / line->rows;
    place.row = row % line->rows;
    place.column = v % line->pitch;
    return place;
}

__attribute__((always_inline))
void place_move(place_t *place, const place_t *by, const line_t *line) {
    place->column += by->column;
    place->row += by->row;
    place->image += by->image;
    if (place->column >= line->pitch) {
        place->column -= line->pitch;
        ++place->row;
    }
    if (place->row >= line->rows) {
        place->row -= line->rows;
        ++place->image;
    }
}

__attribute__((always_inline))
long dy_at(const sizes_t *s, const place_t *place, int group) {
    const int row = place->row + s->pad_top - (3 - 1) * 1;
    const int column = place->column + s->pad_left - (3 - 1) * 1;
    if (place->image >= s->n || row < 0 || row >= s->p || column < 0 || column >= s->q)
        return -1;
    return place->image * s->dy_image + row * s->dy_row + column * s->dy_column + group * s->group_k * s->dy_channel;
}

__attribute__((always_inline))
long x_at(const sizes_t *s, const place_t *place, int group) {
    if (place->image >= s->n || place->row >= s->h || place->column >= s->w)
        return -1;
    return place->image * s->x_image + place->row * s->x_row + place->column * s->x_column + group * s->group_c * s->x_channel;
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

static void counts_share(const counts_t *tally, volatile __local uint *sums) {
    if (tally->nonzero > 0)
        atomic_add(sums + 0, tally->nonzero);
    if (tally->zeroed > 0)
        atomic_add(sums + 1, tally->zeroed);
    if (tally->subnormal > 0)
        atomic_add(sums + 2, tally->subnormal);
    if (tally->saturated > 0)
        atomic_add(sums + 3, tally->saturated);
    if (tally->nan > 0)
        atomic_add(sums + 4, tally->nan);
    if (tally->inf > 0)
        atomic_add(sums + 5, tally->inf);
}

static void counts_flush_shared(volatile __global uint *counts,
    volatile __local uint *sums) {
    const uint id = get_local_id(0);
    if (counts && id < 6)
        counts_add(counts + 2 * id, sums[id]);
}

static void counts_flush_group(volatile __global uint *counts,
    const counts_t *tally, volatile __local uint *sums) {
    counts_share(tally, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    counts_flush_shared(counts, sums);
}

/*
 * Sums over the elements of a vector, pairwise, in a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static int isum(int v)
{
    return v;
}

static int isum4(int4 v)
{
    int2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static int isum16(int16 v)
{
    int8 eight = v.lo + v.hi;
    return isum4(eight.lo + eight.hi);
}

static float fsum(float v)
{
    return v;
}

static float fsum4(float4 v)
{
    float2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static float fsum16(float16 v)
{
    float8 eight = v.lo + v.hi;
    return fsum4(eight.lo + eight.hi);
}

typedef struct {
    int nonzero, zeroed, subnormal, saturated, nan, inf;
} seen_t;

static void fold(counts_t *tally, const seen_t *seen) {
    tally->nonzero += (uint)isum(seen->nonzero);
    tally->zeroed += (uint)isum(seen->zeroed);
    tally->subnormal += (uint)isum(seen->subnormal);
    tally->saturated += (uint)isum(seen->saturated);
    tally->nan += (uint)isum(seen->nan);
    tally->inf += (uint)isum(seen->inf);
}

/* A work-item's next position, on the line and in local memory, and how far it moves. */
typedef struct {
    place_t place, step;
    int to;
} stream_t;

static void see_dy(seen_t *seen, float before) {
    const int b = as_int(before) & 0x7fffffff;
    seen->nonzero += b != 0;
    const int other = (b != 0) & ((b < 0x337fe000) | (b > 0x427fe000));
    if (!other)
        return;
    seen->zeroed += (b != 0) & (b <= 0x2e000000);
    seen->subnormal += (b > 0x2e000000) & (b < 0x337fe000);
    seen->saturated += (b > 0x427fe000) & (b < 0x7f800000);
    const int is_nan = b > 0x7f800000;
    seen->nan += is_nan;
    seen->nonzero -= is_nan;
    seen->inf += b == 0x7f800000;
}

__attribute__((always_inline))
uint4 halves_of_dy(float8 v) {
    const float limit = as_float(0x427fe000);
    const float4 four = fmax(fabs(v.lo), fabs(v.hi));
    const float2 two = fmax(four.lo, four.hi);
    if (fmax(two.x, two.y) > limit) {
        float each[8];
        vstore8(v, 0, each);
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            each[i] = isfinite(each[i]) ? clamp(each[i], -limit, limit) : each[i];
        v = vload8(0, each);
    }
    return halves8(v * 0x1p10f);
}

__attribute__((always_inline))
void see_octet_dy(float8 raw, seen_t *seen) {
    float v[8];
    vstore8(raw, 0, v);
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        see_dy(seen, v[j]);
}

__attribute__((always_inline))
void begin_dy(stream_t *stream, const line_t *line, int v, int item) {
    const int lane = item / 8;
    stream->place = place_at(line, v + lane);
    stream->step = place_at(line, 48);
    stream->to = lane;
}

__attribute__((always_inline))
int dy_pixel(const sizes_t *s, const place_t *place) {
    const int row = place->row + s->pad_top - (3 - 1) * 1;
    const int column = place->column + s->pad_left - (3 - 1) * 1;
    if (place->image >= s->n || row < 0 || row >= s->p || column < 0 || column >= s->q)
        return -1;
    return (place->image * s->p + row) * s->q + column;
}

__attribute__((always_inline))
int dy_before(const sizes_t *s, const line_t *line, int v) {
    const place_t place = place_at(line, v);
    const int row = place.row + s->pad_top - (3 - 1) * 1;
    const int column = place.column + s->pad_left - (3 - 1) * 1;
    if (place.image >= s->n)
        return s->n * s->p * s->q;
    const int inside = row >= 0 && row < s->p;
    return (place.image * s->p + clamp(row, 0, s->p)) * s->q + (inside ? clamp(column, 0, s->q) : 0);
}

__attribute__((always_inline))
int2 dy_range(const sizes_t *s, const line_t *line, int v) {
    const int from = dy_before(s, line, v);
    const int end = dy_before(s, line, v + 48);
    return (int2)(from / 1, (end + 1 - 1) / 1) * 1;
}

__attribute__((always_inline))
void ask_dy(__local uchar *tiles, uint to, uint full, __global const float *p, int2 range, const sizes_t *s, int group, int item) {
    const int bytes = p ? 4 * s->group_k * (range.y - range.x) : 0;
    if (item > 0)
        return;
    barrier_expect(full, bytes);
    if (bytes > 0)
        load_bytes(tiles, to, p + (long)range.x * s->group_k, bytes, full);
}

__attribute__((always_inline))
float8 take_dy(__local const uchar *tiles, uint at, int pixel, int channel, const sizes_t *s, int item) {
    const uint from = at + 4 * (pixel * s->group_k + channel);
    const int swapped = item & 4;
    const uint first = from + 4 * swapped;
    const float4 a = as_float4(get16(tiles, first));
    const float4 b = as_float4(get16(tiles, first ^ 16));
    return (float8)(swapped ? b : a, swapped ? a : b);
}

__attribute__((always_inline))
void read_dy(float8 raw[1], int exists, __local const uchar *tiles, uint at, int origin, stream_t *stream, int item, const line_t *line, const sizes_t *s) {
    const int octet = item % 8;
    exists = exists && 8 * octet < s->group_k;
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        const int pixel = exists ? dy_pixel(s, &stream->place) : -1;
        raw[i] = (float8)(0);
        if (pixel >= 0)
            raw[i] = take_dy(tiles, at, pixel - origin, 8 * octet, s, item);
        place_move(&stream->place, &stream->step, line);
    }
}

__attribute__((always_inline))
void write_dy(const float8 raw[1], __local uchar *tiles, uint at, stream_t *stream, int own, int item, int counting, __local uint *tally, float8 *sum) {
    const int octet = item % 8;
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        const uint piece = at + stream->to * 128 + 16 * octet;
        const uint4 halves = halves_of_dy(raw[i]);
        put16(tiles, swizzled(piece, 128), halves);
        if (stream->to < 66)
            put16(tiles, swizzled(piece + 240 * 128, 128), halves);
        stream->to += 48;
        stream->to -= stream->to >= 240 ? 240 : 0;
    }
    if (!own)
        return;
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        *sum += raw[i];
    if (counting) {
        seen_t seen = { 0 };
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            see_octet_dy(raw[i], &seen);
        counts_t found = { 0 };
        fold(&found, &seen);
        counts_share(&found, tally);
    }
}

static void see_x(seen_t *seen, float before) {
    const int b = as_int(before) & 0x7fffffff;
    seen->nonzero += b != 0;
    const int other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!other)
        return;
    seen->zeroed += (b != 0) & (b <= 0x33000000);
    seen->subnormal += (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated += (b > 0x477fe000) & (b < 0x7f800000);
    const int is_nan = b > 0x7f800000;
    seen->nan += is_nan;
    seen->nonzero -= is_nan;
    seen->inf += b == 0x7f800000;
}

__attribute__((always_inline))
uint4 halves_of_x(float8 v) {
    const float limit = as_float(0x477fe000);
    const float4 four = fmax(fabs(v.lo), fabs(v.hi));
    const float2 two = fmax(four.lo, four.hi);
    if (fmax(two.x, two.y) > limit) {
        float each[8];
        vstore8(v, 0, each);
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            each[i] = isfinite(each[i]) ? clamp(each[i], -limit, limit) : each[i];
        v = vload8(0, each);
    }
    return halves8(v);
}

__attribute__((always_inline))
void see_octet_x(float8 raw, seen_t *seen) {
    float v[8];
    vstore8(raw, 0, v);
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        see_x(seen, v[j]);
}

__attribute__((always_inline))
void begin_x(stream_t *stream, const line_t *line, int v, int item) {
    const int lane = item / 8;
    stream->place = place_at(line, v + lane);
    stream->step = place_at(line, 48);
    stream->to = lane;
}

__attribute__((always_inline))
int x_pixel(const sizes_t *s, const place_t *place) {
    const int row = place->row;
    const int column = place->column;
    if (place->image >= s->n || row < 0 || row >= s->h || column < 0 || column >= s->w)
        return -1;
    return (place->image * s->h + row) * s->w + column;
}

__attribute__((always_inline))
int x_before(const sizes_t *s, const line_t *line, int v) {
    const place_t place = place_at(line, v);
    const int row = place.row;
    const int column = place.column;
    if (place.image >= s->n)
        return s->n * s->h * s->w;
    const int inside = row >= 0 && row < s->h;
    return (place.image * s->h + clamp(row, 0, s->h)) * s->w + (inside ? clamp(column, 0, s->w) : 0);
}

__attribute__((always_inline))
int2 x_range(const sizes_t *s, const line_t *line, int v) {
    const int from = x_before(s, line, v);
    const int end = x_before(s, line, v + 48);
    return (int2)(from / 1, (end + 1 - 1) / 1) * 1;
}

__attribute__((always_inline))
void ask_x(__local uchar *tiles, uint to, uint full, __global const float *p, int2 range, const sizes_t *s, int group, int item) {
    const int bytes = p ? 4 * s->group_c * (range.y - range.x) : 0;
    if (item > 0)
        return;
    barrier_expect(full, bytes);
    if (bytes > 0)
        load_bytes(tiles, to, p + (long)range.x * s->group_c, bytes, full);
}

__attribute__((always_inline))
float8 take_x(__local const uchar *tiles, uint at, int pixel, int channel, const sizes_t *s, int item) {
    const uint from = at + 4 * (pixel * s->group_c + channel);
    const int swapped = item & 4;
    const uint first = from + 4 * swapped;
    const float4 a = as_float4(get16(tiles, first));
    const float4 b = as_float4(get16(tiles, first ^ 16));
    return (float8)(swapped ? b : a, swapped ? a : b);
}

__attribute__((always_inline))
void read_x(float8 raw[1], int exists, __local const uchar *tiles, uint at, int origin, stream_t *stream, int item, const line_t *line, const sizes_t *s) {
    const int octet = item % 8;
    exists = exists && 8 * octet < s->group_c;
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        const int pixel = exists ? x_pixel(s, &stream->place) : -1;
        raw[i] = (float8)(0);
        if (pixel >= 0)
            raw[i] = take_x(tiles, at, pixel - origin, 8 * octet, s, item);
        place_move(&stream->place, &stream->step, line);
    }
}

__attribute__((always_inline))
void write_x(const float8 raw[1], __local uchar *tiles, uint at, stream_t *stream, int own, int item, int counting, __local uint *tally) {
    const int octet = item % 8;
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        const uint piece = at + stream->to * 128 + 16 * octet;
        const uint4 halves = halves_of_x(raw[i]);
        put16(tiles, swizzled(piece, 128), halves);
        stream->to += 48;
        stream->to -= stream->to >= 192 ? 192 : 0;
    }
    if (!own)
        return;
    if (counting) {
        seen_t seen = { 0 };
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            see_octet_x(raw[i], &seen);
        counts_t found = { 0 };
        fold(&found, &seen);
        counts_share(&found, tally);
    }
}

static void see_w(seen_t *seen, float before) {
    const int b = as_int(before) & 0x7fffffff;
    seen->nonzero += b != 0;
    const int other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!other)
        return;
    seen->zeroed += (b != 0) & (b <= 0x33000000);
    seen->subnormal += (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated += (b > 0x477fe000) & (b < 0x7f800000);
    const int is_nan = b > 0x7f800000;
    seen->nan += is_nan;
    seen->nonzero -= is_nan;
    seen->inf += b == 0x7f800000;
}

__attribute__((always_inline))
uint4 halves_of_w(float8 v) {
    const float limit = as_float(0x477fe000);
    const float4 four = fmax(fabs(v.lo), fabs(v.hi));
    const float2 two = fmax(four.lo, four.hi);
    if (fmax(two.x, two.y) > limit) {
        float each[8];
        vstore8(v, 0, each);
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            each[i] = isfinite(each[i]) ? clamp(each[i], -limit, limit) : each[i];
        v = vload8(0, each);
    }
    return halves8(v);
}

__attribute__((always_inline))
void see_octet_w(float8 raw, seen_t *seen) {
    float v[8];
    vstore8(raw, 0, v);
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        see_w(seen, v[j]);
}

__attribute__((always_inline))
float8 fetch_w(__global const float *p, long at, int channel, const sizes_t *s) {
    if (at < 0 || channel >= s->group_c)
        return (float8)(0);
    __global const float4 *from = (__global const float4 *)(p + at + channel);
    return (float8)(from[0], from[1]);
}

__attribute__((always_inline))
void load_w(__local uchar *tiles, uint at, __global const float *p, int item, const sizes_t *s, int group, int counting, seen_t *seen) {
    const int octets = 9 * 64 * 8;
    #pragma unroll 1
    for (int first = item; first < octets; first += 4 * 384) {
        float8 raw[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = first + j * 384;
            const int k = i / 8 % 64;
            const int tap = i / (8 * 64);
            const long from = (group * s->group_k + k) * s->w_image + tap / 3 * s->w_row + tap % 3 * s->w_column;
            raw[j] = fetch_w(p, p && i < octets && k < s->group_k ? from : -1, 8 * (i % 8), s);
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = first + j * 384;
            if (counting)
                see_octet_w(raw[j], seen);
            if (i < octets)
                put16(tiles, swizzled(at + 16 * i, 128), halves_of_w(raw[j]));
        }
    }
}

__attribute__((always_inline))
int range_slot(int number) {
    return number < 1 ? number : 1 + (number - 1) % (2 * 8);
}

__attribute__((always_inline))
int is_x_turn(int number) {
    return number >= 1 && (number - 1) % 8 < 4;
}

__attribute__((always_inline))
int2 range_of(int number, int begin, int end, const line_t *line, const sizes_t *s) {
    const int after = number - 1;
    const int tile = begin + max(after, 0) / 8;
    const int turn = after % 8;
    if (tile >= end)
        return (int2)(0);
    if (is_x_turn(number))
        return x_range(s, line, tile * 192 + turn * 48);
    const int behind = after < 0 ? number * 48 : 48 + (turn - 4) * 48;
    return dy_range(s, line, tile * 192 + behind);
}

__attribute__((always_inline))
void find_ranges(__local int2 *ranges, int first, int count, int begin, int end, const line_t *line, const sizes_t *s, int item) {
    if (item >= count)
        return;
    ranges[range_slot(first + item)] = range_of(first + item, begin, end, line, s);
}

__attribute__((always_inline))
void ask_turn(__local uchar *tiles, uint slots, uint full, __local const int2 *ranges, int number, __global const float *dy, __global const float *x, const sizes_t *s, int group, int item) {
    const int slot = number % 6;
    const uint to = slots + slot * 12288;
    const int2 range = ranges[range_slot(number)];
    if (is_x_turn(number))
        ask_x(tiles, to, full + 8 * slot, x, range, s, group, item);
    else
        ask_dy(tiles, to, full + 8 * slot, dy, range, s, group, item);
}

__attribute__((always_inline))
void add_bias(__local float *all, int item, const float8 *sum) {
    __local float4 *total = (__local float4 *)(all + 8 * item);
    total[0] += sum->lo;
    total[1] += sum->hi;
}

__attribute__((always_inline))
void leave_bias(__local const float *all, int item, __global float *out) {
    const int octet = item / 8;
    if (octet >= 8)
        return;
    float sum = 0.0f;
    for (int i = 0; i < 48; ++i)
        sum += all[8 * (8 * i + octet) + item % 8];
    out[item] = sum;
}

/* 64 positions of a tile. */
typedef struct {
    int group, first;
} block_t;

__attribute__((always_inline))
long dx_row(const block_t *b, const sizes_t *s, int m) {
    const line_t line = line_of(s);
    const place_t place = place_at(&line, b->first + m);
    return x_at(s, &place, b->group);
}

__attribute__((always_inline))
long dx_column(const block_t *b, const sizes_t *s, int n) {
    return n < s->group_c ? n * s->x_channel : -1;
}

__attribute__((always_inline))
uint dy_start(uint dy, int first, int tap, const line_t *line) {
    const int row = first + (3 - 1 - tap / 3) * 1 * line->pitch + (3 - 1 - tap % 3) * 1;
    return dy + (row - (row >= 240 ? 240 : 0)) * (128 / 16);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint x, uint dy, uint weights, float dw[1][96], float dx[1][32], int first, int block, int warpgroup, const line_t *line, int lane) {
    const uint a = here(x) / 16 + block * (4 * 128);
    const uint from = here(dy) / 16;
    const uint w = here(weights) / 16;
    uint b[1], rows[3][1];
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        b[i] = dy_start(from, first + 64 * block, min(3 * (1 * warpgroup + i + 1), 9) - 1, line);
    #pragma unroll
    for (int i = 0; i < 3; ++i)
    #pragma unroll
        for (int j = 0; j < 1; ++j)
            rows[i][j] = dy_start(from, first + 64 * warpgroup + 64 * j, min(3 * block + i, 9 - 1), line);
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            dw_product(tiles, dw[i], matrix_from(a + k * 128, 128, 0), matrix_from(b[i] + k * 128, 128, 128), lane);
        #pragma unroll
        for (int i = 0; k < 4 && i < 3; ++i) {
            const int tap = 3 * block + i;
            #pragma unroll
            for (int j = 0; j < 1; ++j)
                product(tiles, dx[j], matrix_from(rows[i][j] + 2 * k, 128, 16), matrix_from(w + tap * (8192 / 16) + k * 128, 128, 16), lane);
        }
    }
}

static void store_dx(__global float *p, long i,
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
        store_dx(p, row + first, pair.x, beta);
    if (second >= 0)
        store_dx(p, row + second, pair.y, beta);
}

__kernel
__attribute__((reqd_work_group_size(384, 1, 1)))
void bwd_fused(
    __global const float *dy, long dy_offset,
    __global uint *dy_counts, long dy_counts_offset,
    __global const float *x, long x_offset,
    __global uint *x_counts, long x_counts_offset,
    __global const float *w, long w_offset,
    __global uint *w_counts, long w_counts_offset,
    __global float *dx, long dx_offset,
    float beta,
    __global float *scratch, long scratch_offset,
    int batch) {
    dy += dy_offset;
    if (dy_counts)
        dy_counts += dy_counts_offset;
    x += x_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    w += w_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    dx += dx_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 16384,
        .dy_channel = 1,
        .dy_row = 1024,
        .dy_column = 64,
        .x_image = 16384,
        .x_channel = 1,
        .x_row = 1024,
        .x_column = 64,
        .w_image = 576,
        .w_channel = 1,
        .w_row = 192,
        .w_column = 64,
        .n = batch,
        .c = 64,
        .h = 16,
        .w = 16,
        .k = 64,
        .r = 3,
        .s = 3,
        .p = 16,
        .q = 16,
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
    __local uchar tiles[212224] __attribute__((aligned(16)));
    __local uint group_tally[18];
    __local float bias[3072] __attribute__((aligned(32)));
    const uint base = (shared_address(tiles) + 1023) & ~1023u;
    const int item = (int)get_local_id(0);
    const int warpgroup = uniform(item / 128);
    const int lane = item % 128;
    if (item < 18)
        group_tally[item] = 0;
    *(__local float8 *)(bias + 8 * item) = 0.0f;
    const uint slots = base + 137472;
    __local int2 ranges[17];
    __local ulong barriers[6];
    const uint full = shared_address(barriers);
    if (item == 0) {
        for (int i = 0; i < 6; ++i)
            barrier_init(full + 8 * i, 1);
        publish();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int group = (int)get_group_id(0) % sizes.groups;
    const int part = (int)get_group_id(0) / sizes.groups;
    const line_t line = line_of(&sizes);
    const int count = (line.end + 192 - 1) / 192;
    const int begin = (int)((long)count * part / 132);
    const int end = (int)((long)count * (part + 1) / 132);
    __global float *left = scratch + (long)get_group_id(0) * 36928;
    find_ranges(ranges, 0, 17, begin, end, &line, &sizes, item);
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 1
    for (int number = 0; number < 6; ++number) {
        ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
    }
    int used = 0;
    seen_t w_seen = { 0 };
    load_w(tiles, base, w, item, &sizes, group, w_counts && part == 0, &w_seen);
    counts_t w_tally = { 0 };
    fold(&w_tally, &w_seen);
    counts_share(&w_tally, group_tally);
    stream_t x_stream, dy_stream;
    begin_x(&x_stream, &line, begin * 192, item);
    begin_dy(&dy_stream, &line, begin * 192, item);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (begin < end) {
        const int tile = begin;
        {
            float8 sum = 0.0f;
            #pragma unroll 1
            for (int turn = 0; turn < 1; ++turn) {
                float8 raw[1];
                const int slot = used % 6;
                barrier_wait(full + 8 * slot, used / 6 & 1);
                read_dy(raw, dy != 0, tiles, slots + slot * 12288, ranges[range_slot(used)].x, &dy_stream, item, &line, &sizes);
                write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 0 + turn * 48, item, dy_counts != 0, group_tally + 6, &sum);
                barrier(CLK_LOCAL_MEM_FENCE);
                const int number = used + 6;
                ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
                ++used;
            }
            add_bias(bias, item, &sum);
        }
        {
            #pragma unroll 1
            for (int turn = 0; turn < 4; ++turn) {
                float8 raw[1];
                const int slot = used % 6;
                barrier_wait(full + 8 * slot, used / 6 & 1);
                read_x(raw, x != 0, tiles, slots + slot * 12288, ranges[range_slot(used)].x, &x_stream, item, &line, &sizes);
                write_x(raw, tiles, base + 112896, &x_stream, 1, item, x_counts != 0, group_tally + 12);
                barrier(CLK_LOCAL_MEM_FENCE);
                const int number = used + 6;
                ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
                ++used;
            }
        }
        {
            float8 sum = 0.0f;
            #pragma unroll 1
            for (int turn = 0; turn < 4; ++turn) {
                float8 raw[1];
                const int slot = used % 6;
                barrier_wait(full + 8 * slot, used / 6 & 1);
                read_dy(raw, dy != 0, tiles, slots + slot * 12288, ranges[range_slot(used)].x, &dy_stream, item, &line, &sizes);
                write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 48 + turn * 48, item, dy_counts != 0, group_tally + 6, &sum);
                barrier(CLK_LOCAL_MEM_FENCE);
                const int number = used + 6;
                ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
                ++used;
            }
            add_bias(bias, item, &sum);
        }
    }
    float dw[1][96];
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        #pragma unroll
        for (int reg = 0; reg < 96; ++reg)
            dw[i][reg] = 0.0f;
    publish();
    barrier(CLK_LOCAL_MEM_FENCE);
    int stage = 0, first = 0;
    for (int tile = begin; tile < end; ++tile) {
        const int more = tile + 1 < end;
        float sum[1][32];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 32; ++reg)
                sum[i][reg] = 0.0f;
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            hold(sum[i]);
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            dw_hold(dw[i]);
        products_begin();
        multiply(tiles, base + 112896 + stage * (192 * 128), base + 73728, base, dw, sum, first, 0, warpgroup, &line, lane);
        products_commit();
        products_begin();
        multiply(tiles, base + 112896 + stage * (192 * 128), base + 73728, base, dw, sum, first, 1, warpgroup, &line, lane);
        products_commit();
        products_begin();
        multiply(tiles, base + 112896 + stage * (192 * 128), base + 73728, base, dw, sum, first, 2, warpgroup, &line, lane);
        products_commit();
        find_ranges(ranges, 1 + (tile - begin + 2) * 8, 8, begin, end, &line, &sizes, item);
        products_wait();
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            hold(sum[i]);
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            dw_hold(dw[i]);
        if (dx) {
            const block_t block = { group, tile * 192 };
            if (beta == 0.0f) {
                #pragma unroll
                for (int i = 0; i < 2 * 1; ++i) {
                    const int first = 2 * (i % 2);
                    const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                    #pragma unroll
                    for (int reg = first; reg < 32; reg += 4) {
                        const float *s = sum[i / 2] + reg;
                        const long column = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                        if (row >= 0 && column >= 0)
                            *(__global float2 *)(dx + row + column) = (float2)(s[0] * 0x1p-10f, s[1] * 0x1p-10f);
                    }
                }
            } else {
                #pragma unroll
                for (int i = 0; i < 2 * 1; ++i) {
                    const int first = 2 * (i % 2);
                    const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
                    #pragma unroll 1
                    for (int reg = 0; reg < 32; reg += 4) {
                        const long left = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                        const long right = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0) + 1);
                        const float2 pair = (float2)(sum[i / 2][first], sum[i / 2][first + 1]);
                        if (row >= 0)
                            store_pair(dx, row, left, right, pair, beta);
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
        if (more) {
            barrier(CLK_LOCAL_MEM_FENCE);
            {
                #pragma unroll 1
                for (int turn = 0; turn < 4; ++turn) {
                    float8 raw[1];
                    const int slot = used % 6;
                    barrier_wait(full + 8 * slot, used / 6 & 1);
                    read_x(raw, x != 0, tiles, slots + slot * 12288, ranges[range_slot(used)].x, &x_stream, item, &line, &sizes);
                    write_x(raw, tiles, base + 112896, &x_stream, 1, item, x_counts != 0, group_tally + 12);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const int number = used + 6;
                    ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
                    ++used;
                }
            }
            {
                float8 sum = 0.0f;
                #pragma unroll 1
                for (int turn = 0; turn < 4; ++turn) {
                    float8 raw[1];
                    const int slot = used % 6;
                    barrier_wait(full + 8 * slot, used / 6 & 1);
                    read_dy(raw, dy != 0, tiles, slots + slot * 12288, ranges[range_slot(used)].x, &dy_stream, item, &line, &sizes);
                    write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 240 + turn * 48, item, dy_counts != 0, group_tally + 6, &sum);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const int number = used + 6;
                    ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item);
                    ++used;
                }
                add_bias(bias, item, &sum);
            }
        }
        first += 192;
        first -= first >= 240 ? 240 : 0;
        publish();
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __global float *out = left + warpgroup * 1 * 96 * 128 + lane;
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        #pragma unroll
        for (int reg = 0; reg < 96; ++reg)
            out[(i * 96 + reg) * 128] = dw[i][reg];
    leave_bias(bias, item, left + 36864);
    counts_flush_shared(w_counts, group_tally);
    counts_flush_shared(dy_counts, group_tally + 6);
    counts_flush_shared(x_counts, group_tally + 12);
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_db(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__attribute__((always_inline))
long dw_place(const sizes_t *s, int group, int at) {
    const int lane = at % 128;
    const int reg = at / 128 % 96;
    const int product = at / (128 * 96);
    const int column = d_column(lane, reg, 0);
    const int c = d_row(lane, reg, 0);
    const int k = column % 64;
    const int tap = product * 3 + 3 - 1 - column / 64;
    if (product * 3 >= 9 || c >= s->group_c || k >= s->group_k)
        return -1;
    return (group * s->group_k + k) * s->w_image + c * s->w_channel + tap / 3 * s->w_row + tap % 3 * s->w_column;
}

__kernel
__attribute__((reqd_work_group_size(256, 1, 1)))
void bwd_fused_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta_dw,
    __global float *db, long db_offset,
    float beta_db,
    int batch) {
    scratch += scratch_offset;
    dw += dw_offset;
    db += db_offset;
    const sizes_t sizes = {
        .dy_image = 16384,
        .dy_channel = 1,
        .dy_row = 1024,
        .dy_column = 64,
        .x_image = 16384,
        .x_channel = 1,
        .x_row = 1024,
        .x_column = 64,
        .w_image = 576,
        .w_channel = 1,
        .w_row = 192,
        .w_column = 64,
        .n = batch,
        .c = 64,
        .h = 16,
        .w = 16,
        .k = 64,
        .r = 3,
        .s = 3,
        .p = 16,
        .q = 16,
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
    __local float shares[256];
    const int item = (int)get_local_id(0);
    const long number = get_group_id(0) * (long)32 + item % 32;
    const int group = (int)(number / 36928);
    const int at = (int)(number % 36928);
    float total = 0.0f;
    const int inside = group < sizes.groups;
    #pragma unroll
    for (int i = 0; i < 132; i += 8) {
        const int part = i + item / 32;
        const long from = ((long)part * sizes.groups + group) * 36928 + at;
        total += inside && part < 132 ? scratch[from] : 0.0f;
    }
    shares[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= 32 || !inside)
        return;
    for (int i = 1; i < 8; ++i)
        total += shares[i * 32 + item];
    if (at < 36864) {
        const long to = dw_place(&sizes, group, at);
        if (dw && to >= 0)
            store_dw(dw, to, total, beta_dw);
    }
    if (db && at >= 36864 && at - 36864 < sizes.group_k) {
        store_db(db, group * sizes.group_k + at - 36864, total, beta_db);
    }
}

