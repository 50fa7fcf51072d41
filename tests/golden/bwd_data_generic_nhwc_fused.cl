/* Step 2: bwd_data_generic */

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

static float16 round_dy16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int16)(0x427fe000)), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, (int16)(0x38800000), (int16)(0x47000000));
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
}

static float16 load_dy16(__global const float *p, long i) {
    return round_dy16(vload16(0, p + i));
}

__attribute__((noinline))
static float16 edge_dy16(__global const float *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? p[i] : 0.0f;
    return round_dy16(vload16(0, v));
}

static float16 window_dy16(__global const float *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_dy16(p, i);
    return edge_dy16(p, i, end);
}

static float16 round_w16(float16 v) {
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

static float16 load_w16(__global const float *p, long i) {
    return round_w16(vload16(0, p + i));
}

__attribute__((noinline))
static float16 edge_w16(__global const float *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? p[i] : 0.0f;
    return round_w16(vload16(0, v));
}

static float16 window_w16(__global const float *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_w16(p, i);
    return edge_w16(p, i, end);
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
    value *= 0x1p-6f;
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dx(value);
    count_dx(tally, before, value);
    vstore_half(value, i, p);
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
    value *= 0x1p-6f;
    if (beta != 0.0f) {
        value += beta * vload_half16(0, p + i);
    }
    float16 before = value;
    value = round_dx16(value);
    count_dx16(tally, before, value);
    vstore_half16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_dx16(__global half *p, long i, long step,
    int count, float16 value, float beta, counts_t *tally) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_dx(p, i + lane * step, v[lane], beta, tally);
}

static void put_dx16(__global half *p, long i, long step, int count,
    float16 value, float beta, counts_t *tally) {
    if (step == 1 && count >= 16)
        store_dx16(p, i, value, beta, tally);
    else
        scatter_dx16(p, i, step, min(count, 16), value, beta, tally);
}

typedef struct {
    int n, group, c, h, phase, column;
} place_t;

__attribute__((noinline))
static void tile(__global const float *dy, __global const float *w,
    __global half *dx, float beta, counts_t *tally, sizes_t sizes,
    long item) {
    int phases = min(sizes.stride_w, sizes.w);
    int tiles = (sizes.w - 1) / sizes.stride_w / 2 + 1;
    int blocks = (sizes.group_c - 1) / 16 + 1;
    int column = (int)(item % tiles);
    item /= tiles;
    int phase = (int)(item % phases);
    item /= phases;
    int h = (int)(item % sizes.h);
    item /= sizes.h;
    int block = (int)(item % blocks);
    item /= blocks;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= sizes.n)
        return;
    place_t at = { (int)item, group, block * 16, h, phase, column * 2 };
    long first_k = at.group * sizes.group_k;
    long dy_end = sizes.n * sizes.dy_image;
    long w_end = sizes.k * sizes.w_image;
    float16 total[2];
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        total[t] = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        int up = at.h + sizes.pad_top - r * sizes.dilation_h;
        int p = up / sizes.stride_h;
        if (up < 0 || up % sizes.stride_h != 0 || p >= sizes.p)
            continue;
        for (int s = 0; s < sizes.s; ++s) {
            int left = at.phase + sizes.pad_left - s * sizes.dilation_w;
            int q = left / sizes.stride_w + at.column;
            if (left % sizes.stride_w != 0 || q <= -2 || q >= sizes.q)
                continue;
            float16 sum[2];
            #pragma unroll
            for (int t = 0; t < 2; ++t)
                sum[t] = 0.0f;
            long row = at.n * sizes.dy_image + p * sizes.dy_row + first_k;
            long i[2];
            #pragma unroll
            for (int t = 0; t < 2; ++t)
                i[t] = row + clamp(q + t, 0, sizes.q - 1) * sizes.dy_column;
            long f = first_k * sizes.w_image + r * sizes.w_row +
                s * sizes.w_column + at.c;
            for (int k = 0; k < sizes.group_k; k += 16) {
                float d[2 * 16];
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                    vstore16(window_dy16(dy, i[t] + k, dy_end), 0, d + t * 16);
                int count = min(16, sizes.group_k - k);
                for (int j = 0; j < count; ++j) {
                    float16 v = window_w16(w, f, w_end);
                    #pragma unroll
                    for (int t = 0; t < 2; ++t)
                        sum[t] += d[t * 16 + j] * v;
                    f += sizes.w_image;
                }
            }
            #pragma unroll
            for (int t = 0; t < 2; ++t)
                if (q + t >= 0 && q + t < sizes.q)
                    total[t] += sum[t];
        }
    }
    int columns = (sizes.w - 1 - at.phase) / sizes.stride_w + 1 - at.column;
    long step = sizes.stride_w * sizes.x_column;
    long i = at.n * sizes.x_image + (at.group * sizes.group_c + at.c) * sizes.x_channel +
        at.h * sizes.x_row + at.phase * sizes.x_column + at.column * step;
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        if (t < columns)
            put_dx16(dx, i + t * step, 1, sizes.group_c - at.c, total[t], beta, tally);
}

__kernel
void bwd_data_generic(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    __global uint *dx_counts, long dx_counts_offset,
    sizes_t sizes) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    tile(dy, w, dx, beta, &tally, sizes, (long)get_global_id(0));
    counts_flush(dx_counts, &tally);
}
