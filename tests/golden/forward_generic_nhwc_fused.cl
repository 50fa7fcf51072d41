/* Step 2: forward_generic */

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

static float round_x(float v) {
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

static float load_x(__global const float *p, long i) {
    return round_x(p[i]);
}

static float round_w(float v) {
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

static float load_w(__global const float *p, long i) {
    return round_w(p[i]);
}

static float16 load_b16(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

__attribute__((noinline))
static float16 edge_b16(__global const half *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? vload_half(i, p) : 0.0f;
    return vload16(0, v);
}

static float16 window_b16(__global const half *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_b16(p, i);
    return edge_b16(p, i, end);
}

__attribute__((noinline))
static void prepare(__global const float *w, __global float *scratch,
    sizes_t sizes, long item) {
    scratch += item * sizes.group_k;
    int c = (int)(item % sizes.group_c);
    item /= sizes.group_c;
    int s = (int)(item % sizes.s);
    item /= sizes.s;
    int r = (int)(item % sizes.r);
    item /= sizes.r;
    if (item >= sizes.groups)
        return;
    long f = item * sizes.group_k * sizes.w_image + c * sizes.w_channel +
        r * sizes.w_row + s * sizes.w_column;
    for (int k = 0; k < sizes.group_k; ++k)
        scratch[k] = load_w(w, f + k * sizes.w_image);
}

__kernel
void forward_generic_weights(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    w += w_offset;
    scratch += scratch_offset;
    prepare(w, scratch, sizes, (long)get_global_id(0));
}

static float round_y(float v) {
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

static void count_y(counts_t *tally, float before, float after) {
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

static void store_y(__global half *p, long i,
    float value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_y(value);
    count_y(tally, before, value);
    vstore_half(value, i, p);
}

static float16 round_y16(float16 v) {
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

static void count_y16(counts_t *tally, float16 before, float16 after) {
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

static void store_y16(__global half *p, long i,
    float16 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half16(0, p + i);
    }
    float16 before = value;
    value = round_y16(value);
    count_y16(tally, before, value);
    vstore_half16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_y16(__global half *p, long i, long step,
    int count, float16 value, float beta, counts_t *tally) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_y(p, i + lane * step, v[lane], beta, tally);
}

static void put_y16(__global half *p, long i, long step, int count,
    float16 value, float beta, counts_t *tally) {
    if (step == 1 && count >= 16)
        store_y16(p, i, value, beta, tally);
    else
        scatter_y16(p, i, step, min(count, 16), value, beta, tally);
}

typedef struct {
    int n, group, k, p, q;
} place_t;

__attribute__((noinline))
static void tile(__global const float *x, __global const float *w,
    __global const half *b, __global half *y, float beta, counts_t *tally,
    sizes_t sizes, long item) {
    int tiles = (sizes.q - 1) / 4 + 1;
    int blocks = (sizes.group_k - 1) / 16 + 1;
    int column = (int)(item % tiles);
    item /= tiles;
    int p = (int)(item % sizes.p);
    item /= sizes.p;
    int block = (int)(item % blocks);
    item /= blocks;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= sizes.n)
        return;
    place_t at = { (int)item, group, block * 16, p, column * 4 };
    long first_k = (long)at.group * sizes.group_k + at.k;
    float16 total[4];
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        total[t] = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        int row = at.p * sizes.stride_h + r * sizes.dilation_h - sizes.pad_top;
        if (row < 0 || row >= sizes.h)
            continue;
        for (int s = 0; s < sizes.s; ++s) {
            int column = at.q * sizes.stride_w + s * sizes.dilation_w - sizes.pad_left;
            int first = column < 0 ? (-1 - column) / sizes.stride_w + 1 : 0;
            int last = column < sizes.w
                ? (sizes.w - 1 - column) / sizes.stride_w + 1 : 0;
            if (first >= min(last, 4))
                continue;
            long tap = ((long)at.group * sizes.r + r) * sizes.s + s;
            long f = tap * sizes.group_c * sizes.group_k + at.k;
            long line = at.n * sizes.x_image + row * sizes.x_row +
                (long)at.group * sizes.group_c * sizes.x_channel;
            float16 sum[4];
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                sum[t] = 0.0f;
            long i[4];
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                i[t] = line + (column + (long)clamp(t, first, last - 1) * sizes.stride_w) * sizes.x_column;
            for (int c = 0; c < sizes.group_c; ++c) {
                float16 v = vload16(0, w + f);
                #pragma unroll
                for (int t = 0; t < 4; ++t)
                    sum[t] += load_x(x, i[t] + c) * v;
                f += sizes.group_k;
            }
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                if (t >= first && t < last)
                    total[t] += sum[t];
        }
    }
    if (b) {
        float16 bias = window_b16(b, first_k, sizes.k);
        #pragma unroll
        for (int t = 0; t < 4; ++t)
            total[t] += bias;
    }
    long i = at.n * sizes.dy_image + first_k * sizes.dy_channel +
        at.p * sizes.dy_row + at.q * sizes.dy_column;
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        if (at.q + t < sizes.q)
            put_y16(y, i + t * sizes.dy_column, 1, sizes.group_k - at.k, total[t], beta, tally);
}

__kernel
void forward_generic(
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    __global const half *b, long b_offset,
    __global half *y, long y_offset,
    float beta,
    __global uint *y_counts, long y_counts_offset,
    sizes_t sizes) {
    x += x_offset;
    scratch += scratch_offset;
    b += b_offset;
    y += y_offset;
    if (y_counts)
        y_counts += y_counts_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    tile(x, scratch, b, y, beta, &tally, sizes, (long)get_global_id(0));
    counts_flush(y_counts, &tally);
}
