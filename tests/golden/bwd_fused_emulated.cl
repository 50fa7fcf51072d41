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
 * What copy_group.cl, copy16.cl and pieces_nv.cl do, at once and for any
 * device; an address counts bytes from tiles on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void copy16(__local uchar *tiles, uint to, __global const half *from,
                   int exists)
{
    __local ushort *out = (__local ushort *)(tiles + to);
    __global const ushort *in = (__global const ushort *)from;
    vstore8(exists ? vload8(0, in) : (ushort8)0, 0, out);
}

static void put16(__local uchar *tiles, uint to, uint4 v)
{
    vstore4(v, 0, (__local uint *)(tiles + to));
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
 * What kernels/wgmma.cl does, one step after the other in plain OpenCL C; an
 * address counts bytes from tiles on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static int uniform(int value)
{
    return value;
}

static uint here(uint value)
{
    return value;
}

static void put2(__local uchar *tiles, uint to, ushort v)
{
    *(__local ushort *)(tiles + to) = v;
}

static void barrier_arrive_copies(uint address)
{
}

static uint4 get16(__local const uchar *tiles, uint from)
{
    return vload4(0, (__local const uint *)(tiles + from));
}

static uint get2(__local const uchar *tiles, uint from)
{
    return *(__local const ushort *)(tiles + from);
}

static float get_float(__local const uchar *tiles, uint from)
{
    return *(__local const float *)(tiles + from);
}

static uint4 halves8(float8 v)
{
    ushort bits[8];
    vstore_half8_rte(v, 0, (half *)bits);
    return as_uint4(vload8(0, bits));
}

static float8 floats8(uint4 v)
{
    ushort bits[8];
    vstore8(as_ushort8(v), 0, bits);
    return vload_half8(0, (const half *)bits);
}

/* ---- The copy unit ------------------------------------------------------- */

/* A tensor map's description, see kernelgen/tensor_map.c. */
typedef struct {
    ulong word[16];
} map_t;

typedef struct {
    map_t map;
    __global const half *tensor;
} source_t;

static int map_int(const source_t *source, int word, int high)
{
    return (int)(source->map.word[word] >> 32 * high);
}

static void barrier_expect(uint address, uint bytes)
{
}

static void load_bytes(__local uchar *tiles, uint to, __global const void *from,
                       uint bytes, uint full)
{
    for (uint i = 0; i < bytes / 16; ++i)
        put16(tiles, to + 16 * i, vload4(i, (__global const uint *)from));
}

/* One line, from channel, column, row, image on; zeros for what is outside. */
static void load_line(__local uchar *tiles, uint to, const source_t *source,
                      int4 from)
{
    const ulong *w = source->map.word;
    int inside = from.y >= 0 && from.y < (long)w[2] && from.z >= 0 &&
                 from.z < (long)w[3] && from.w >= 0 && from.w < (long)w[4];
    long at = from.y * (long)w[5] + from.z * (long)w[6] + from.w * (long)w[7];
    uint line = map_int(source, 13, 0);
    for (int c = 0; c < map_int(source, 8, 0); c += 8) {
        int channel = from.x + c;
        int exists = inside && channel >= 0 && channel < (long)w[1];
        copy16(tiles, swizzled(to + 2 * c, line),
               source->tensor + (exists ? at + channel : 0), exists);
    }
}

static void load_tiled(__local uchar *tiles, uint to, const source_t *source,
                       uint full, int4 from, int lane)
{
    int columns = map_int(source, 8, 1), rows = map_int(source, 9, 0);
    int lines = columns * rows * map_int(source, 9, 1);
    uint line = map_int(source, 13, 0);
    for (int i = lane; i < lines; i += 32) {
        int4 move = (int4)(0, i % columns, i / columns % rows,
                           i / columns / rows);
        load_line(tiles, to + i * line, source, from + move);
    }
}

static void load_im2col(__local uchar *tiles, uint to, const source_t *source,
                        uint full, int4 from, int2 tap, int lane)
{
    const ulong *w = source->map.word;
    int2 lower = (int2)(map_int(source, 10, 0), map_int(source, 10, 1));
    int2 upper = (int2)(map_int(source, 11, 0), map_int(source, 11, 1));
    int2 step = (int2)(map_int(source, 12, 0), map_int(source, 12, 1));
    int2 last = (int2)((int)w[2], (int)w[3]) - 1 + upper;
    int2 count = (last - lower) / step + 1;
    int2 first = (from.yz - lower) / step;
    uint line = map_int(source, 13, 0);
    for (int i = lane; i < map_int(source, 8, 1); i += 32) {
        int column = first.x + i;
        int row = first.y + column / count.x;
        int2 pixel = lower + step * (int2)(column % count.x, row % count.y);
        int4 at = (int4)(from.x, pixel.x + tap.x, pixel.y + tap.y,
                         from.w + row / count.y);
        load_line(tiles, to + i * line, source, at);
    }
}

/* Where a work-item's registers of D are. */
int d_row(int lane, int reg, int part) {
    return 16 * (lane / 32) + lane % 32 / 4 + 8 * (reg / 2 % 2);
}

int d_column(int lane, int reg, int part) {
    return 8 * (reg / 4) + 2 * (lane % 4) + reg % 2;
}

/*
 * The value of fp16 bits, by arithmetic that no device lacks and no flush of
 * fp32 subnormals disturbs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
float half_value(uint bits)
{
    uint magnitude = bits & 0x7fff;
    float normal = as_float((magnitude << 13) + 0x38000000);
    float subnormal = (float)(int)magnitude * 0x1p-24f;
    float special = as_float((magnitude << 13) + 0x70000000);
    float value = magnitude < 0x0400 ? subnormal
                : magnitude < 0x7c00 ? normal : special;
    return bits & 0x8000 ? -value : value;
}

static float tile_half(__local const uchar *tiles, uint address) {
    return half_value(*(__local const ushort *)(tiles + address));
}

__attribute__((always_inline))
static void product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane) {
    for (int k = 0; k < 16; ++k) {
        float x[2];
        for (int i = 0; i < 2; ++i)
            x[i] = tile_half(tiles, matrix_half(a, 1, d_row(lane, 2 * i, 0), k));
        for (int reg = 0; reg < 32; reg += 4) {
            for (int i = 0; i < 2; ++i) {
                float y = tile_half(tiles, matrix_half(b, 0, d_column(lane, reg + i, 0), k));
                d[reg + i] += x[0] * y;
                d[reg + i + 2] += x[1] * y;
            }
        }
    }
}

__attribute__((always_inline))
static void dw_product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane) {
    for (int k = 0; k < 16; ++k) {
        float x[2];
        for (int i = 0; i < 2; ++i)
            x[i] = tile_half(tiles, matrix_half(a, 0, d_row(lane, 2 * i, 0), k));
        for (int reg = 0; reg < 96; reg += 4) {
            for (int i = 0; i < 2; ++i) {
                float y = tile_half(tiles, matrix_half(b, 0, d_column(lane, reg + i, 0), k));
                d[reg + i] += x[0] * y;
                d[reg + i + 2] += x[1] * y;
            }
        }
    }
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
    const int lane = item % 48;
    stream->place = place_at(line, v + lane);
    stream->step = place_at(line, 48);
    stream->to = lane;
}

__attribute__((always_inline))
float8 fetch_dy(__global const float *p, long at, int channel, const sizes_t *s) {
    if (at < 0 || channel >= s->group_k)
        return (float8)(0);
    float v[8];
    __global const float *from = p + at + channel * s->dy_channel;
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        v[j] = from[j * s->dy_channel];
    return
        (float8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

__attribute__((always_inline))
void read_dy(float8 raw[2], __global const float *p, stream_t *stream, int item, const line_t *line, const sizes_t *s, int group) {
    const int octet = item / 48;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const long from = p ? dy_at(s, &stream->place, group) : -1;
        raw[i] = fetch_dy(p, from, 8 * octet, s);
        place_move(&stream->place, &stream->step, line);
    }
}

__attribute__((always_inline))
void write_dy(const float8 raw[2], __local uchar *tiles, uint at, stream_t *stream, int own, int item, int counting, __local uint *tally, float8 *sum) {
    const int octet = item / 48;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint piece = at + stream->to * 128 + 16 * octet;
        const uint4 halves = halves_of_dy(raw[i]);
        put16(tiles, swizzled(piece, 128), halves);
        if (stream->to < 66)
            put16(tiles, swizzled(piece + 480 * 128, 128), halves);
        stream->to += 48;
        stream->to -= stream->to >= 480 ? 480 : 0;
    }
    if (!own)
        return;
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        *sum += raw[i];
    if (counting) {
        seen_t seen = { 0 };
        #pragma unroll
        for (int i = 0; i < 2; ++i)
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
    const int lane = item % 48;
    stream->place = place_at(line, v + lane);
    stream->step = place_at(line, 48);
    stream->to = lane;
}

__attribute__((always_inline))
float8 fetch_x(__global const float *p, long at, int channel, const sizes_t *s) {
    if (at < 0 || channel >= s->group_c)
        return (float8)(0);
    float v[8];
    __global const float *from = p + at + channel * s->x_channel;
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        v[j] = from[j * s->x_channel];
    return
        (float8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

__attribute__((always_inline))
void read_x(float8 raw[2], __global const float *p, stream_t *stream, int item, const line_t *line, const sizes_t *s, int group) {
    const int octet = item / 48;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const long from = p ? x_at(s, &stream->place, group) : -1;
        raw[i] = fetch_x(p, from, 8 * octet, s);
        place_move(&stream->place, &stream->step, line);
    }
}

__attribute__((always_inline))
void write_x(const float8 raw[2], __local uchar *tiles, uint at, stream_t *stream, int own, int item, int counting, __local uint *tally) {
    const int octet = item / 48;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint piece = at + stream->to * 128 + 16 * octet;
        const uint4 halves = halves_of_x(raw[i]);
        put16(tiles, swizzled(piece, 128), halves);
        stream->to += 48;
        stream->to -= stream->to >= 384 ? 384 : 0;
    }
    if (!own)
        return;
    if (counting) {
        seen_t seen = { 0 };
        #pragma unroll
        for (int i = 0; i < 2; ++i)
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
    float v[8];
    __global const float *from = p + at + channel * s->w_channel;
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        v[j] = from[j * s->w_channel];
    return
        (float8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

__attribute__((always_inline))
uint w_place(uint at, const sizes_t *s, int i) {
    const int tap = i % 9, row = i / 9;
    const int c = row % s->group_c, k = row / s->group_c;
    return swizzled(at + tap * 8192 + k * 128 + 2 * c, 128);
}

__attribute__((always_inline))
void load_w(__local uchar *tiles, uint at, __global const float *p, int item, const sizes_t *s, int group, int counting, seen_t *seen) {
    for (int i = item; i < 9 * 64 * 8; i += 384)
        put16(tiles, at + 16 * i, (uint4)(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    const int all = s->group_k * s->group_c * 9;
    __global const float *from = p + group * s->group_k * s->w_image;
    #pragma unroll 1
    for (int first = item; p && first < all; first += 8 * 384) {
        float v[8];
        #pragma unroll
        for (int j = 0; j < 8; ++j)
            v[j] = first + j * 384 < all ? from[first + j * 384] : 0;
        const float8 raw =
            (float8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
        if (counting)
            see_octet_w(raw, seen);
        const uint4 h = halves_of_w(raw);
        const uint words[4] = { h.x, h.y, h.z, h.w };
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int i = first + j * 384;
            if (i < all)
                put2(tiles, w_place(at, s, i), (ushort)(words[j / 2] >> 16 * (j % 2)));
        }
    }
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
        sum += all[8 * (48 * octet + i) + item % 8];
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
    return dy + (row - (row >= 480 ? 480 : 0)) * (128 / 16);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint x, uint dy, uint weights, float dw[1][96], float dx[1][32], int first, int block, int warpgroup, const line_t *line, int lane) {
    const uint a = here(x) / 16 + block * (4 * 128);
    const uint from = here(dy) / 16;
    const uint w = here(weights) / 16;
    uint b[1], rows[3][1];
    for (int i = 0; i < 1; ++i)
        b[i] = dy_start(from, first + 64 * block, min(3 * (1 * warpgroup + i + 1), 9) - 1, line);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 1; ++j)
            rows[i][j] = dy_start(from, first + 64 * warpgroup + 64 * j, min(3 * block + i, 9 - 1), line);
    for (int k = 0; k < 4; ++k) {
        for (int i = 0; i < 1; ++i)
            dw_product(tiles, dw[i], matrix_from(a + k * 128, 128, 0), matrix_from(b[i] + k * 128, 128, 128), lane);
        for (int i = 0; k < 4 && i < 3; ++i) {
            const int tap = 3 * block + i;
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
        .dy_image = 19152,
        .dy_channel = 399,
        .dy_row = 21,
        .dy_column = 1,
        .x_image = 15960,
        .x_channel = 399,
        .x_row = 21,
        .x_column = 1,
        .w_image = 360,
        .w_channel = 9,
        .w_row = 3,
        .w_column = 1,
        .n = batch,
        .c = 40,
        .h = 19,
        .w = 21,
        .k = 48,
        .r = 3,
        .s = 3,
        .p = 19,
        .q = 21,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 40,
        .group_k = 48,
    };
    __local uchar tiles[193792] __attribute__((aligned(16)));
    __local uint group_tally[18];
    __local float bias[3072] __attribute__((aligned(32)));
    const uint base = 0;
    const int item = (int)get_local_id(0);
    const int warpgroup = uniform(item / 128);
    const int lane = item % 128;
    if (item < 18)
        group_tally[item] = 0;
    *(__local float8 *)(bias + 8 * item) = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int group = (int)get_group_id(0) % sizes.groups;
    const int part = (int)get_group_id(0) / sizes.groups;
    const line_t line = line_of(&sizes);
    const int count = (line.end + 192 - 1) / 192;
    const int begin = (int)((long)count * part / 2);
    const int end = (int)((long)count * (part + 1) / 2);
    __global float *left = scratch + (long)get_group_id(0) * 36928;
    seen_t w_seen = { 0 };
    load_w(tiles, base, w, item, &sizes, group, w_counts && part == 0, &w_seen);
    counts_t w_tally = { 0 };
    fold(&w_tally, &w_seen);
    counts_share(&w_tally, group_tally);
    stream_t x_stream, dy_stream;
    begin_x(&x_stream, &line, begin * 192, item);
    begin_dy(&dy_stream, &line, begin * 192, item);
    if (begin < end) {
        const int tile = begin;
        {
            #pragma unroll 1
            for (int turn = 0; turn < 1; ++turn) {
                float8 raw[2];
                read_dy(raw, dy, &dy_stream, item, &line, &sizes, group);
                float8 sum = 0.0f;
                write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 0 + turn * 96, item, dy_counts != 0, group_tally + 6, &sum);
                add_bias(bias, item, &sum);
            }
        }
        {
            #pragma unroll 1
            for (int turn = 0; turn < 2; ++turn) {
                float8 raw[2];
                read_x(raw, x, &x_stream, item, &line, &sizes, group);
                write_x(raw, tiles, base + 143616, &x_stream, 1, item, x_counts != 0, group_tally + 12);
            }
        }
        {
            #pragma unroll 1
            for (int turn = 0; turn < 2; ++turn) {
                float8 raw[2];
                read_dy(raw, dy, &dy_stream, item, &line, &sizes, group);
                float8 sum = 0.0f;
                write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 96 + turn * 96, item, dy_counts != 0, group_tally + 6, &sum);
                add_bias(bias, item, &sum);
            }
        }
    }
    float dw[1][96];
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        #pragma unroll
        for (int reg = 0; reg < 96; ++reg)
            dw[i][reg] = 0.0f;
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
        multiply(tiles, base + 143616 + stage * (192 * 128), base + 73728, base, dw, sum, first, 0, warpgroup, &line, lane);
        multiply(tiles, base + 143616 + stage * (192 * 128), base + 73728, base, dw, sum, first, 1, warpgroup, &line, lane);
        multiply(tiles, base + 143616 + stage * (192 * 128), base + 73728, base, dw, sum, first, 2, warpgroup, &line, lane);
        if (more) {
            {
                #pragma unroll 1
                for (int turn = 0; turn < 2; ++turn) {
                    float8 raw[2];
                    read_x(raw, x, &x_stream, item, &line, &sizes, group);
                    write_x(raw, tiles, base + 143616, &x_stream, 1, item, x_counts != 0, group_tally + 12);
                }
            }
            {
                #pragma unroll 1
                for (int turn = 0; turn < 2; ++turn) {
                    float8 raw[2];
                    read_dy(raw, dy, &dy_stream, item, &line, &sizes, group);
                    float8 sum = 0.0f;
                    write_dy(raw, tiles, base + 73728, &dy_stream, (end - tile) * 192 > 288 + turn * 96, item, dy_counts != 0, group_tally + 6, &sum);
                    add_bias(bias, item, &sum);
                }
            }
        }
        if (dx) {
            const block_t block = { group, tile * 192 };
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
        first += 192;
        first -= first >= 480 ? 480 : 0;
        stage ^= 1;
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
        .dy_image = 19152,
        .dy_channel = 399,
        .dy_row = 21,
        .dy_column = 1,
        .x_image = 15960,
        .x_channel = 399,
        .x_row = 21,
        .x_column = 1,
        .w_image = 360,
        .w_channel = 9,
        .w_row = 3,
        .w_column = 1,
        .n = batch,
        .c = 40,
        .h = 19,
        .w = 21,
        .k = 48,
        .r = 3,
        .s = 3,
        .p = 19,
        .q = 21,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 40,
        .group_k = 48,
    };
    __local float shares[256];
    const int item = (int)get_local_id(0);
    const long number = get_group_id(0) * (long)32 + item % 32;
    const int group = (int)(number / 36928);
    const int at = (int)(number % 36928);
    float total = 0.0f;
    const int inside = group < sizes.groups;
    #pragma unroll
    for (int i = 0; i < 2; i += 8) {
        const int part = i + item / 32;
        const long from = ((long)part * sizes.groups + group) * 36928 + at;
        total += inside && part < 2 ? scratch[from] : 0.0f;
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

