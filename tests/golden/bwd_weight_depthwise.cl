/* Step 3: bwd_weight_depthwise */

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long r;
    long s;
    long p;
    long q;
    long stride_h;
    long stride_w;
    long pad_top;
    long pad_left;
    long dilation_h;
    long dilation_w;
    long planes;
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long c_blocks;
    long elements;
    long parts;
    long ring;
    long reach;
    long block;
    long room;
    long lead;
    long phase;
    long pitch;
    long row;
    long blocks;
    long band;
    long bands;
    long fold;
    long counted;
} shape_t;

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long p;
    long q;
    long pad_top;
    long pad_left;
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long c_blocks;
    long elements;
    long parts;
    long ring;
    long reach;
    long block;
    long room;
    long lead;
    long phase;
    long pitch;
    long row;
    long blocks;
    long band;
    long bands;
    long fold;
    long counted;
} call_t;

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

typedef float16 loose16 __attribute__((aligned(4)));

static void keep16(float16 v, float *to) {
    *(loose16 *)to = v;
}

static void clear(float *to, int count) {
    for (int i = 0; i < count; i += 16)
        keep16((float16)(0.0f), to + i);
}

static void split(const float *from, float *to, int count, int step,
    long pitch) {
    if (step == 2) {
        for (int i = 0; i < count; i += 16) {
            const float16 a = vload16(0, from + 2 * i);
            const float16 b = vload16(0, from + 2 * i + 16);
            keep16((float16)(a.even, b.even), to + i);
            keep16((float16)(a.odd, b.odd), to + pitch + i);
        }
        return;
    }
    for (int f = 0; f < step; ++f)
        for (int i = 0; i < count; ++i)
            to[f * pitch + i] = from[i * step + f];
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

typedef struct {
    int16 nonzero, zeroed, subnormal, saturated, nan, inf;
} seen16_t;

static void fold16(counts_t *tally, const seen16_t *seen) {
    tally->nonzero += (uint)isum16(seen->nonzero);
    tally->zeroed += (uint)isum16(seen->zeroed);
    tally->subnormal += (uint)isum16(seen->subnormal);
    tally->saturated += (uint)isum16(seen->saturated);
    tally->nan += (uint)isum16(seen->nan);
    tally->inf += (uint)isum16(seen->inf);
}

static void see_x16(seen16_t *seen, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int16 other = b > 0x7f7fffff;
    const long2 marks = as_long2(convert_char16(other));
    if (!(marks.x | marks.y))
        return;
    const int16 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float16 read_x16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_x(__global const float *p, long i) {
    return p[i];
}

static float16 rest_of_x(__global const float *p, long i, int count, long total) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    float rest[16] = {0.0f};
    if (i + 16 <= total)
        return select((float16)(0.0f), read_x16(p, i), lane < count);
    for (int j = 0; j < count; ++j)
        rest[j] = read_x(p, i + j);
    return vload16(0, rest);
}

static bool is_ordinary_x(uint16 above) {
    const int16 other = above > (uint16)(0x7f7fffff - 0x00000001);
    const long2 marks = as_long2(convert_char16(other));
    return !(marks.x | marks.y);
}

static uint16 beyond_x(uint16 above, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    return max(above, as_uint16(b - 0x00000001));
}

static bool is_dense_x(__global const float *p, int count) {
    uint16 above = 0;
    for (int i = 0; i < count; i += 16)
        above = beyond_x(above, read_x16(p, i));
    return is_ordinary_x(above);
}

static bool look_x(seen16_t *seen, __global const float *p, int count) {
    int16 nonzero = 0;
    uint16 above = 0;
    for (int i = 0; i < count; i += 16) {
        const int16 b = as_int16(read_x16(p, i)) & 0x7fffffff;
        nonzero -= b != 0;
        above = max(above, as_uint16(b != 0 ? b - 0x00000001 : 0));
    }
    if (!is_ordinary_x(above))
        return false;
    seen->nonzero += nonzero;
    return true;
}

static void see_x_block(seen16_t *seen, __global const float *p, int count) {
    if (is_dense_x(p, 16) && is_dense_x(p, count)) {
        seen->nonzero += count / 16;
        return;
    }
    if (look_x(seen, p, count))
        return;
    for (int i = 0; i < count; i += 16)
        see_x16(seen, read_x16(p, i));
}

static void see_x_run(seen16_t *seen, __global const float *p, long i, long end, long total) {
    const long whole = i + ((end - i) & ~15L);
    for (; i < whole; i += 256)
        see_x_block(seen, p + i, min(256, (int)(whole - i)));
    if (whole < end)
        see_x16(seen, rest_of_x(p, whole, end - whole, total));
}

static float load_dy(__global const float *p, long i) {
    return p[i];
}

static float16 load_dy16(__global const float *p, long i) {
    return vload16(0, p + i);
}

__attribute__((noinline))
static float16 edge_dy(__global const float *p, long i, int count) {
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? load_dy(p, i + lane) : 0.0f;
    return vload16(0, v);
}

static float16 fetch_dy(__global const float *p, long i, int count,
    long end) {
    if (i + 16 > end)
        return edge_dy(p, i, count);
    return select((float16)(0.0f), load_dy16(p, i), (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < count);
}

static void run_dy(float *to, __global const float *p, long i, int count,
    long end) {
    int j = 0;
    for (; j <= count - 16; j += 16)
        keep16(load_dy16(p, i + j), to + j);
    if (j < count)
        keep16(fetch_dy(p, i + j, count - j, end), to + j);
}

static bool row_dy(float *to, __global const float *p, long i, int columns,
    int channels, long step, long end, int least) {
    run_dy(to, p, i, columns, end);
    return false;
}

static float load_x(__global const float *p, long i) {
    return p[i];
}

static float16 load_x16(__global const float *p, long i) {
    return vload16(0, p + i);
}

__attribute__((noinline))
static float16 edge_x(__global const float *p, long i, int count) {
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? load_x(p, i + lane) : 0.0f;
    return vload16(0, v);
}

static float16 fetch_x(__global const float *p, long i, int count,
    long end) {
    if (i + 16 > end)
        return edge_x(p, i, count);
    return select((float16)(0.0f), load_x16(p, i), (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < count);
}

static void run_x(float *to, __global const float *p, long i, int count,
    long end) {
    int j = 0;
    for (; j <= count - 16; j += 16)
        keep16(load_x16(p, i + j), to + j);
    if (j < count)
        keep16(fetch_x(p, i + j, count - j, end), to + j);
}

static bool row_x(float *to, __global const float *p, long i, int columns,
    int channels, long step, long end, int least) {
    run_x(to, p, i, columns, end);
    return false;
}

typedef struct {
    long n, c;
    int channels, p, last_p, q, columns, w;
} place_t;

static place_t find_place(long c_block, long strip, shape_t shape) {
    place_t at;
    const int block = strip % shape.blocks;
    strip /= shape.blocks;
    const int band = strip % shape.bands;
    at.n = strip / shape.bands;
    at.c = c_block * 1;
    at.channels = min((long)1, shape.c - at.c);
    at.p = band * shape.band;
    at.last_p = min(at.p + shape.band, shape.p);
    at.q = block * shape.block;
    at.columns = min(shape.block, shape.q - at.q);
    at.w = at.q * shape.stride_w - shape.pad_left - shape.lead;
    return at;
}

static bool hold_row(float *to, float *line, __global const float *x, shape_t shape,
    place_t at, int h, int least) {
    const int first = max(at.w, 0);
    const int last = min(at.w + shape.room, shape.w);
    const long i = at.n * shape.x_image + at.c * shape.x_channel + h * shape.x_row +
        first * shape.x_column;
    float *row = shape.stride_w == 1 ? to : line;
    const bool near = row_x(row + (first - at.w) * 1, x, i, last - first, at.channels,
        shape.x_column, shape.n * shape.x_image, least);
    if (shape.stride_w > 1)
        split(line, to, shape.phase, shape.stride_w, shape.phase);
    return near;
}

static int hold_rows(float *ring, float *line, __global const float *x, shape_t shape,
    place_t at, int row, int p, int least, bool *near) {
    const int first = p * shape.stride_h - shape.pad_top;
    const int end = min(first + shape.reach + 1, shape.h);
    row = max(row, first);
    for (; row < end; ++row)
        *near &= hold_row(ring + (row & (shape.ring - 1)) * shape.pitch, line, x, shape, at, row,
            least);
    return row;
}

static int find_lines(int *row_at, int *sum_at, shape_t shape, int p)
{
    const int mask = shape.ring - 1;
    int lines = 0;
    for (int r = 0; r < (int)shape.r; ++r) {
        const int h = p * shape.stride_h + r * shape.dilation_h - shape.pad_top;
        if (h < 0 || h >= (int)shape.h)
            continue;
        row_at[lines] = (h & mask) * shape.pitch;
        sum_at[lines++] = r * shape.s * 16;
    }
    return lines;
}

/* Where the share of row or column i of dY's count begins among size of X. */
static int share_of(int i, long count, long stride, long ahead, long size)
{
    const long at = clamp(i * stride + ahead, 0L, size);
    return i == 0 ? 0 : i == count ? size : at;
}

__attribute__((noinline))
static void see_rows(seen16_t *seen, counts_t *tally, __global const float *x,
    shape_t shape, place_t at, int first_p, int last_p, int end_h, bool ordinary) {
    const long below = shape.reach + 1 - shape.stride_h - shape.pad_top;
    const int h = share_of(first_p, shape.p, shape.stride_h, below, shape.h);
    const int w = share_of(at.q, shape.q, shape.stride_w, -shape.pad_left, shape.w);
    int rows = share_of(last_p, shape.p, shape.stride_h, below, shape.h) - h;
    int columns = share_of(at.q + at.columns, shape.q, shape.stride_w, -shape.pad_left, shape.w) - w;
    int channels = at.channels;
    ordinary &= h + rows <= end_h && w + columns <= at.w + shape.room;
    if (ordinary && shape.stride_h <= shape.reach + 1) {
        tally->nonzero += rows * columns * channels;
        return;
    }
    const long i = at.n * shape.x_image + at.c * shape.x_channel + h * shape.x_row +
        w * shape.x_column;
    const long end = shape.n * shape.x_image;
    if (columns == shape.w) {
        columns *= rows;
        rows = 1;
    }
    for (int row = 0; row < rows; ++row) {
        const long from = i + row * shape.x_row;
        see_x_run(seen, x, from, from + columns, end);
    }
}

static void tile4(const float *d, const float *ring, const int *row_at,
    const int *sum_at, int lines, const int *tap_at, int taps, int step, float *sums)
{
    const float16 d0 = vload16(0, d + 0 * 16);
    const float16 d1 = vload16(0, d + 1 * 16);
    const float16 d2 = vload16(0, d + 2 * 16);
    const float16 d3 = vload16(0, d + 3 * 16);
    for (int line = 0; line < lines; ++line) {
        const float *from = ring + row_at[line];
        float *to = sums + sum_at[line];
        for (int s = 0; s < taps; ++s) {
            const float *x = from + tap_at[s];
            float16 sum = vload16(0, to);
            sum = d0 * vload16(0, x + 0 * step) + sum;
            sum = d1 * vload16(0, x + 1 * step) + sum;
            sum = d2 * vload16(0, x + 2 * step) + sum;
            sum = d3 * vload16(0, x + 3 * step) + sum;
            keep16(sum, to);
            to += 16;
        }
    }
}

static void tile1(const float *d, const float *ring, const int *row_at,
    const int *sum_at, int lines, const int *tap_at, int taps, int step, float *sums)
{
    const float16 d0 = vload16(0, d + 0 * 16);
    for (int line = 0; line < lines; ++line) {
        const float *from = ring + row_at[line];
        float *to = sums + sum_at[line];
        for (int s = 0; s < taps; ++s) {
            const float *x = from + tap_at[s];
            float16 sum = vload16(0, to);
            sum = d0 * vload16(0, x + 0 * step) + sum;
            keep16(sum, to);
            to += 16;
        }
    }
}

static void sum_row(const float *d, const float *ring, const int *row_at, const int *sum_at,
    int lines, const int *tap_at, int taps, int step, int vectors, float *sums)
{
    int j = 0;
    for (; j <= vectors - 4; j += 4)
        tile4(d + j * 16, ring + j * step, row_at, sum_at, lines, tap_at, taps, step, sums);
    for (; j < vectors; ++j)
        tile1(d + j * 16, ring + j * step, row_at, sum_at, lines, tap_at, taps, step, sums);
}

static void fold(float *sums, float *totals, int count)
{
    for (int i = 0; i < count; i += 16) {
        keep16(vload16(0, totals + i) + vload16(0, sums + i), totals + i);
        keep16((float16)(0.0f), sums + i);
    }
}

static void find_taps(int *tap_at, shape_t shape) {
    for (int s = 0; s < (int)shape.s; ++s) {
        const int w = shape.lead + s * shape.dilation_w;
        tap_at[s] = w % shape.stride_w * shape.phase + w / shape.stride_w;
    }
}

__kernel
void bwd_weight_depthwise(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    __global uint *x_counts, long x_counts_offset,
    call_t call) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    const shape_t shape = {
        .n = call.n,
        .c = call.c,
        .h = call.h,
        .w = call.w,
        .r = 3,
        .s = 3,
        .p = call.p,
        .q = call.q,
        .stride_h = 2,
        .stride_w = 2,
        .pad_top = call.pad_top,
        .pad_left = call.pad_left,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 1,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .dy_column = call.dy_column,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .x_column = call.x_column,
        .c_blocks = call.c_blocks,
        .elements = call.elements,
        .parts = call.parts,
        .ring = call.ring,
        .reach = call.reach,
        .block = call.block,
        .room = call.room,
        .lead = call.lead,
        .phase = call.phase,
        .pitch = call.pitch,
        .row = call.row,
        .blocks = call.blocks,
        .band = call.band,
        .bands = call.bands,
        .fold = call.fold,
        .counted = call.counted,
    };
    const long c_block = get_group_id(0) % shape.c_blocks;
    const long part = get_group_id(0) / shape.c_blocks;
    const int filter = shape.r * shape.s;
    const int taps = shape.planes * filter;
    __attribute__((aligned(64))) float ring[65792];
    __attribute__((aligned(64))) float line[8448];
    __attribute__((aligned(64))) float sums[8448];
    __attribute__((aligned(64))) float totals[8448];
    int tap_at[256], row_at[64], sum_at[64];
    __attribute__((aligned(64))) float d[8448];
    const long dy_end = shape.n * shape.dy_image;
    find_taps(tap_at, shape);
    clear(sums, taps * 16);
    clear(totals, taps * 16);
    const int least = x_counts ? 0x00000001 : 0;
    const int step_p = x_counts ? shape.counted : shape.p;
    seen16_t seen = { 0 };
    counts_t tally = { 0 };
    const long strips = shape.n * shape.bands * shape.blocks;
    const long last = strips * (part + 1) / shape.parts;
    int pending = 0;
    for (long strip = strips * part / shape.parts; strip < last; ++strip) {
        const place_t at = find_place(c_block, strip, shape);
        long from = at.n * shape.dy_image + at.c * shape.planes * shape.dy_channel +
            at.p * shape.dy_row + at.q * shape.dy_column;
        clear(ring, shape.ring * shape.pitch);
        clear(line, shape.pitch);
        int row = 0;
        bool near = true;
        int p = at.p;
        while (p < at.last_p) {
            const int first_p = p;
            const int end_p = min(first_p + step_p, at.last_p);
            for (; p < end_p; ++p) {
                row = hold_rows(ring, line, x, shape, at, row, p, least, &near);
                const int lines = find_lines(row_at, sum_at, shape, p);
                for (int k = 0; k < (int)shape.planes; ++k) {
                    row_dy(d, dy, from + k * shape.dy_channel, at.columns, 1, 1, dy_end, 0);
                    sum_row(d, ring, row_at, sum_at, lines, tap_at, shape.s, 16, (at.columns + 15) / 16,
                        sums + k * filter * 16);
                }
                from += shape.dy_row;
                if (++pending == shape.fold) {
                    fold(sums, totals, taps * 16);
                    pending = 0;
                }
            }
            if (x_counts)
                see_rows(&seen, &tally, x, shape, at, first_p, p, row, near);
            near = true;
        }
    }
    fold(sums, totals, taps * 16);
    scratch += part * shape.elements + c_block * 1 * taps;
    for (int i = 0; i < taps; ++i)
        scratch[i] = fsum16(vload16(i, totals));
    fold16(&tally, &seen);
    counts_flush(x_counts, &tally);
}

/*
 * Partial sums in scratch: the first count elements of a
 * vector, written step apart.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float get_part(__global const float *p, long i, int count)
{
    return count > 0 ? p[i] : 0.0f;
}

static void put_part(__global float *p, long i, long step, int count,
                     float value)
{
    if (count > 0)
        p[i] = value;
}

static float16 get_part16(__global const float *p, long i, int count)
{
    if (count >= 16)
        return vload16(0, p + i);
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? p[i + lane] : 0.0f;
    return vload16(0, v);
}

static void put_part16(__global float *p, long i, long step, int count,
                       float16 value)
{
    if (step == 1 && count >= 16) {
        vstore16(value, 0, p + i);
        return;
    }
    float v[16];
    vstore16(value, 0, v);
    count = min(count, 16);
    for (int lane = 0; lane < count; ++lane)
        p[i + lane * step] = v[lane];
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_dw16(__global float *p, long i,
    float16 value, float beta) {
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    vstore16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_dw16(__global float *p, long i, long step,
    int count, float16 value, float beta) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_dw(p, i + lane * step, v[lane], beta);
}

static void put_dw16(__global float *p, long i, long step, int count,
    float16 value, float beta) {
    if (step == 1 && count >= 16)
        store_dw16(p, i, value, beta);
    else
        scatter_dw16(p, i, step, min(count, 16), value, beta);
}

__kernel
void bwd_weight_depthwise_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta,
    call_t call) {
    scratch += scratch_offset;
    dw += dw_offset;
    const shape_t shape = {
        .n = call.n,
        .c = call.c,
        .h = call.h,
        .w = call.w,
        .r = 3,
        .s = 3,
        .p = call.p,
        .q = call.q,
        .stride_h = 2,
        .stride_w = 2,
        .pad_top = call.pad_top,
        .pad_left = call.pad_left,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 1,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .dy_column = call.dy_column,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .x_column = call.x_column,
        .c_blocks = call.c_blocks,
        .elements = call.elements,
        .parts = call.parts,
        .ring = call.ring,
        .reach = call.reach,
        .block = call.block,
        .room = call.room,
        .lead = call.lead,
        .phase = call.phase,
        .pitch = call.pitch,
        .row = call.row,
        .blocks = call.blocks,
        .band = call.band,
        .bands = call.bands,
        .fold = call.fold,
        .counted = call.counted,
    };
    const long i = (long)get_global_id(0) * 16;
    const int count = min((long)16, shape.elements - i);
    if (count <= 0)
        return;
    float16 total = 0.0f;
    for (int part = 0; part < (int)shape.parts; ++part)
        total += get_part16(scratch, part * shape.elements + i, count);
    put_dw16(dw, i, 1, count, total, beta);
}
