/* Step 2: bwd_data_depthwise */

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
    long ring;
    long base;
    long block;
    long room;
    long blocks;
    long pitch;
    long band;
    long bands;
    long line;
    long chunk;
    long tap_step_h;
    long tap_step_w;
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
    long ring;
    long base;
    long block;
    long room;
    long blocks;
    long pitch;
    long band;
    long bands;
    long line;
    long chunk;
    long tap_step_h;
    long tap_step_w;
} call_t;

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
    for (int w = 0; w < columns; ++w)
        run_dy(to + w * 16, p, i + w * step, channels, end);
    return false;
}

static void planes_dy(float *to, long pitch, __global const float *dy, long i,
    int columns, int channels, shape_t shape) {
    const int planes = shape.planes;
    const long end = shape.n * shape.dy_image;
    float pixel[2048];
    clear(pixel, 16 * planes);
    for (int w = 0; w < columns; ++w) {
        row_dy(pixel, dy, i, 1, channels * planes, 0, end, 0);
        split(pixel, to + w * 16, 16, planes, pitch);
        i += shape.dy_column;
    }
}

static float load_w(__global const float *p, long i) {
    return p[i];
}

static float16 load_w16(__global const float *p, long i) {
    return vload16(0, p + i);
}

__attribute__((noinline))
static float16 edge_w(__global const float *p, long i, int count) {
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? load_w(p, i + lane) : 0.0f;
    return vload16(0, v);
}

static float16 fetch_w(__global const float *p, long i, int count,
    long end) {
    if (i + 16 > end)
        return edge_w(p, i, count);
    return select((float16)(0.0f), load_w16(p, i), (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < count);
}

typedef struct {
    long n, c;
    int channels, h, end_h, end_p, w, columns, q;
} place_t;

static place_t find_place(long item, shape_t shape) {
    place_t at;
    const int block = item % shape.blocks;
    item /= shape.blocks;
    const int band = item % shape.bands;
    item /= shape.bands;
    at.c = item % shape.c_blocks * 16;
    at.n = item / shape.c_blocks;
    at.channels = min((long)16, shape.c - at.c);
    at.h = band * shape.band;
    at.end_h = min(at.h + shape.band, shape.h);
    at.end_p = min(shape.p, (at.end_h - 1 + shape.pad_top) / shape.stride_h + 1);
    at.w = block * shape.block * shape.stride_w;
    at.columns = min(shape.block * shape.stride_w, shape.w - at.w);
    at.q = shape.base + block * shape.block;
    return at;
}

static void read_weights(float *weights, __global const float *w, shape_t shape,
    place_t at, float *line) {
    const int taps = shape.planes * shape.r * shape.s;
    const int count = at.channels * taps;
    for (int i = 0; i < 16 * taps; i += 16)
        keep16(fetch_w(w, at.c * taps + i, count - i, shape.c * taps), line + i);
    split(line, weights, 16, taps, 16);
}

static void hold_row(float *to, __global const float *dy, shape_t shape,
    place_t at, int p) {
    const int first = max(at.q, 0);
    const int last = min(at.q + shape.room, shape.q);
    const long i = at.n * shape.dy_image + at.c * shape.planes * shape.dy_channel +
        p * shape.dy_row + first * shape.dy_column;
    planes_dy(to + (first - at.q) * 16, shape.ring * shape.pitch, dy, i, last - first,
        at.channels, shape);
}

typedef struct {
    int p, slot, phase;
} meet_t;

static int wrap(int slot, int ring) {
    return slot < 0 ? slot + ring : slot >= ring ? slot - ring : slot;
}

static meet_t next_row(meet_t meet, shape_t shape) {
    if (++meet.phase == shape.stride_h) {
        meet.phase = 0;
        meet.slot = wrap(meet.slot + 1, shape.ring);
        ++meet.p;
    }
    return meet;
}

static int hold_rows(float *ring, __global const float *dy, shape_t shape,
    place_t at, meet_t meet, int row) {
    const int end = min(at.end_p, meet.p + 1);
    for (; row < end; ++row) {
        const int slot = wrap(meet.slot + row - meet.p, shape.ring);
        hold_row(ring + slot * shape.pitch, dy, shape, at, row);
    }
    return row;
}

typedef struct {
    int first, taps, step, column, back;
} phase_t;

static phase_t find_phase(int left, int stride, int dilation, int taps, int step, int base)
{
    phase_t phase;
    phase.first = tap_from(0, left, dilation, stride, taps);
    phase.taps = (taps - phase.first + step - 1) / step;
    phase.step = step;
    phase.column = (left - phase.first * dilation) / stride - base;
    phase.back = step * dilation / stride;
    return phase;
}

static int find_lines(int *row_at, int *tap_at, shape_t shape, meet_t meet, phase_t phase)
{
    int lines = 0;
    int r = phase.first;
    int p = meet.p + phase.column;
    for (int tap = 0; tap < phase.taps; ++tap) {
        const int slot = wrap(meet.slot + p - meet.p, shape.ring);
        const int planes = p >= 0 && p < (int)shape.p ? shape.planes : 0;
        for (int k = 0; k < planes; ++k) {
            row_at[lines] = (k * shape.ring + slot) * shape.pitch;
            tap_at[lines++] = (k * shape.r + r) * shape.s * 16;
        }
        r += phase.step;
        p -= phase.back;
    }
    return lines;
}

static void tile2(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int next, float *to)
{
    const int back = phase.back * 16;
    const int step = phase.step * 16;
    float16 sum0 = 0.0f;
    float16 sum1 = 0.0f;
    for (int line = 0; line < lines; ++line) {
        const float *a = ring + row_at[line];
        const float *b = weights + tap_at[line];
        for (int tap = 0; tap < phase.taps; ++tap) {
            const float16 weight = vload16(0, b);
            sum0 = vload16(0, a + 0 * 16) * weight + sum0;
            sum1 = vload16(0, a + 1 * 16) * weight + sum1;
            a -= back;
            b += step;
        }
    }
    keep16(sum0, to + 0 * next);
    keep16(sum1, to + 1 * next);
}

static void tile1(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int next, float *to)
{
    const int back = phase.back * 16;
    const int step = phase.step * 16;
    float16 sum0 = 0.0f;
    for (int line = 0; line < lines; ++line) {
        const float *a = ring + row_at[line];
        const float *b = weights + tap_at[line];
        for (int tap = 0; tap < phase.taps; ++tap) {
            const float16 weight = vload16(0, b);
            sum0 = vload16(0, a + 0 * 16) * weight + sum0;
            a -= back;
            b += step;
        }
    }
    keep16(sum0, to + 0 * next);
}

static void sum_phase(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int vectors, int next, float *to)
{
    int i = 0;
    ring += phase.column * 16;
    weights += phase.first * 16;
    for (; i <= vectors - 2; i += 2)
        tile2(ring + i * 16, weights, row_at, tap_at, lines, phase, next, to + i * next);
    for (; i < vectors; ++i)
        tile1(ring + i * 16, weights, row_at, tap_at, lines, phase, next, to + i * next);
}

static float16 round_dx16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int16)(0x477fe000)), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, (int16)(0x38800000), (int16)(0x47000000));
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
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

static void count_dx16(counts_t *tally, float16 before, float16 after) {
    int16 b = as_int16(before) & 0x7fffffff;
    int16 a = as_int16(after) & 0x7fffffff;
    int16 is_nan = b > 0x7f800000;
    int16 is_inf = b == 0x7f800000;
    int16 nonzero = (b > 0) & (b <= 0x7f800000);
    int16 zeroed = nonzero & (a == 0);
    int16 subnormal = (a > 0) & (a < 0x38800000);
    int16 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int16 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int16 all = packed;
    int8 eight = all.lo + all.hi;
    int4 four = eight.lo + eight.hi;
    int2 two = four.lo + four.hi;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx16(__global half *p, long i,
    float16 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half16(0, p + i);
    }
    float16 before = value;
    value = round_dx16(value);
    count_dx16(tally, before, value);
    vstore_half16(value, 0, p + i);
}

static float8 round_dx8(float8 v) {
    int8 bits = as_int8(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int8)(0x477fe000)), bits, bits >= 0x7f800000);
    float8 a = as_float8(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int8 power = clamp(as_int8(a) & 0x7f800000, (int8)(0x38800000), (int8)(0x47000000));
    float8 m = as_float8(power + 0x06800000);
    a = (a + m) - m;
    return as_float8(as_int8(a) | (as_int8(v) & (int)0x80000000));
}

static void count_dx8(counts_t *tally, float8 before, float8 after) {
    int8 b = as_int8(before) & 0x7fffffff;
    int8 a = as_int8(after) & 0x7fffffff;
    int8 is_nan = b > 0x7f800000;
    int8 is_inf = b == 0x7f800000;
    int8 nonzero = (b > 0) & (b <= 0x7f800000);
    int8 zeroed = nonzero & (a == 0);
    int8 subnormal = (a > 0) & (a < 0x38800000);
    int8 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int8 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int8 eight = packed;
    int4 four = eight.lo + eight.hi;
    int2 two = four.lo + four.hi;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx8(__global half *p, long i,
    float8 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half8(0, p + i);
    }
    float8 before = value;
    value = round_dx8(value);
    count_dx8(tally, before, value);
    vstore_half8(value, 0, p + i);
}

static float4 round_dx4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int4 power = clamp(as_int4(a) & 0x7f800000, (int4)(0x38800000), (int4)(0x47000000));
    float4 m = as_float4(power + 0x06800000);
    a = (a + m) - m;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static void count_dx4(counts_t *tally, float4 before, float4 after) {
    int4 b = as_int4(before) & 0x7fffffff;
    int4 a = as_int4(after) & 0x7fffffff;
    int4 is_nan = b > 0x7f800000;
    int4 is_inf = b == 0x7f800000;
    int4 nonzero = (b > 0) & (b <= 0x7f800000);
    int4 zeroed = nonzero & (a == 0);
    int4 subnormal = (a > 0) & (a < 0x38800000);
    int4 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int4 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int4 four = packed;
    int2 two = four.lo + four.hi;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx4(__global half *p, long i,
    float4 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half4(0, p + i);
    }
    float4 before = value;
    value = round_dx4(value);
    count_dx4(tally, before, value);
    vstore_half4(value, 0, p + i);
}

static float2 round_dx2(float2 v) {
    int2 bits = as_int2(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int2)(0x477fe000)), bits, bits >= 0x7f800000);
    float2 a = as_float2(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int2 power = clamp(as_int2(a) & 0x7f800000, (int2)(0x38800000), (int2)(0x47000000));
    float2 m = as_float2(power + 0x06800000);
    a = (a + m) - m;
    return as_float2(as_int2(a) | (as_int2(v) & (int)0x80000000));
}

static void count_dx2(counts_t *tally, float2 before, float2 after) {
    int2 b = as_int2(before) & 0x7fffffff;
    int2 a = as_int2(after) & 0x7fffffff;
    int2 is_nan = b > 0x7f800000;
    int2 is_inf = b == 0x7f800000;
    int2 nonzero = (b > 0) & (b <= 0x7f800000);
    int2 zeroed = nonzero & (a == 0);
    int2 subnormal = (a > 0) & (a < 0x38800000);
    int2 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int2 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int2 two = packed;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx2(__global half *p, long i,
    float2 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half2(0, p + i);
    }
    float2 before = value;
    value = round_dx2(value);
    count_dx2(tally, before, value);
    vstore_half2(value, 0, p + i);
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

static void put(__global half *dx, long i, const float *v, int count,
    float beta, counts_t *tally) {
    for (; count >= 16; count -= 16) {
        store_dx16(dx, i, vload16(0, v), beta, tally);
        i += 16;
        v += 16;
    }
    if (count & 8) {
        store_dx8(dx, i, vload8(0, v), beta, tally);
        i += 8;
        v += 8;
    }
    if (count & 4) {
        store_dx4(dx, i, vload4(0, v), beta, tally);
        i += 4;
        v += 4;
    }
    if (count & 2) {
        store_dx2(dx, i, vload2(0, v), beta, tally);
        i += 2;
        v += 2;
    }
    if (count & 1) {
        store_dx(dx, i, *v, beta, tally);
        i += 1;
        v += 1;
    }
}

__kernel
void bwd_data_depthwise(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    __global uint *dx_counts, long dx_counts_offset,
    call_t call) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    const shape_t shape = {
        .n = call.n,
        .c = call.c,
        .h = call.h,
        .w = call.w,
        .r = 3,
        .s = 3,
        .p = call.p,
        .q = call.q,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = call.pad_top,
        .pad_left = call.pad_left,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 2,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .dy_column = call.dy_column,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .x_column = call.x_column,
        .c_blocks = call.c_blocks,
        .ring = call.ring,
        .base = call.base,
        .block = call.block,
        .room = call.room,
        .blocks = call.blocks,
        .pitch = call.pitch,
        .band = call.band,
        .bands = call.bands,
        .line = call.line,
        .chunk = call.chunk,
        .tap_step_h = call.tap_step_h,
        .tap_step_w = call.tap_step_w,
    };
    const place_t at = find_place(get_group_id(0), shape);
    __attribute__((aligned(64))) float ring[65792];
    __attribute__((aligned(64))) float line[8448];
    __attribute__((aligned(64))) float weights[8448];
    int row_at[64], tap_at[64];
    phase_t phases[16], row_phases[16];
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    read_weights(weights, w, shape, at, line);
    for (int f = 0; f < (int)shape.stride_w; ++f)
        phases[f] = find_phase(f + shape.pad_left, shape.stride_w, shape.dilation_w, shape.s,
            shape.tap_step_w, shape.base);
    for (int f = 0; f < (int)shape.stride_h; ++f)
        row_phases[f] = find_phase(f, shape.stride_h, shape.dilation_h, shape.r, shape.tap_step_h, 0);
    clear(ring, shape.planes * shape.ring * shape.pitch);
    const int stride = shape.stride_w;
    const long to = at.n * shape.x_image + at.c * shape.x_channel + at.w * shape.x_column;
    const int up = at.h + shape.pad_top;
    meet_t meet = { up / shape.stride_h, 0, up % shape.stride_h };
    int row = max(0L, meet.p - shape.ring + 1);
    for (int h = at.h; h < at.end_h; ++h) {
        row = hold_rows(ring, dy, shape, at, meet, row);
        const int lines = find_lines(row_at, tap_at, shape, meet, row_phases[meet.phase]);
        const int columns = shape.chunk;
        const int all = (at.columns - 1) / stride + 1;
        long i = to + h * shape.x_row;
        for (int w = 0; w < all; w += columns) {
            for (int f = 0; f < stride; ++f) {
                const int count = min(columns, (at.columns - 1 - f) / stride + 1 - w);
                for (int c = 0; c < at.channels; c += 16)
                    sum_phase(ring + w * 16 + c, weights + c, row_at, tap_at, lines, phases[f], count,
                        stride * 16, line + f * 16 + c);
            }
            const int pixels = min(columns * stride, at.columns - w * stride);
            for (int j = 0; j < pixels; ++j) {
                put(dx, i, line + j * 16, at.channels, beta, &tally);
                i += shape.x_column;
            }
        }
        meet = next_row(meet, shape);
    }
    counts_flush(dx_counts, &tally);
}
