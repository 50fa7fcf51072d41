/* Step 3: bwd_weight_generic */

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
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int16)(0x477fe000)), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
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

static float16 round_x16(float16 v) {
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

static float16 load_x16(__global const float *p, long i) {
    return round_x16(vload16(0, p + i));
}

__attribute__((noinline))
static float16 edge_x16(__global const float *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? p[i] : 0.0f;
    return round_x16(vload16(0, v));
}

static float16 window_x16(__global const float *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_x16(p, i);
    return edge_x16(p, i, end);
}

static float round_dw(float v) {
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

static void count_dw(counts_t *tally, float before, float after) {
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

static void store_dw(__global half *p, long i,
    float value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dw(value);
    count_dw(tally, before, value);
    vstore_half(value, i, p);
}

static float16 round_dw16(float16 v) {
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

static void count_dw16(counts_t *tally, float16 before, float16 after) {
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

static void store_dw16(__global half *p, long i,
    float16 value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half16(0, p + i);
    }
    float16 before = value;
    value = round_dw16(value);
    count_dw16(tally, before, value);
    vstore_half16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_dw16(__global half *p, long i, long step,
    int count, float16 value, float beta, counts_t *tally) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_dw(p, i + lane * step, v[lane], beta, tally);
}

static void put_dw16(__global half *p, long i, long step, int count,
    float16 value, float beta, counts_t *tally) {
    if (step == 1 && count >= 16)
        store_dw16(p, i, value, beta, tally);
    else
        scatter_dw16(p, i, step, min(count, 16), value, beta, tally);
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

typedef struct {
    int part, group, k, c, r, s;
} place_t;

__attribute__((noinline))
static void tile(__global const float *dy, __global const float *x,
    __global float *scratch, sizes_t sizes, long item) {
    int blocks_k = (sizes.group_k - 1) / 2 + 1;
    int blocks_c = (sizes.group_c - 1) / 16 + 1;
    int s = (int)(item % sizes.s);
    item /= sizes.s;
    int r = (int)(item % sizes.r);
    item /= sizes.r;
    int c = (int)(item % blocks_c);
    item /= blocks_c;
    int k = (int)(item % blocks_k);
    item /= blocks_k;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= 8)
        return;
    place_t at = { (int)item, group, k * 2, c * 16, r, s };
    long first_k = at.group * sizes.group_k;
    long first_c = at.group * sizes.group_c;
    long dy_end = sizes.n * sizes.dy_image;
    long x_end = sizes.n * sizes.x_image;
    float16 sum[2], total[2];
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        sum[t] = total[t] = 0.0f;
    long rows = (long)sizes.n * sizes.p;
    long row = rows / 8 * at.part + min((long)at.part, rows % 8);
    long last = row + rows / 8 + (at.part < rows % 8);
    int pending = 0;
    for (; row < last; ++row) {
        int n = (int)(row / sizes.p);
        int p = (int)(row % sizes.p);
        int h = p * sizes.stride_h + at.r * sizes.dilation_h - sizes.pad_top;
        if (h < 0 || h >= sizes.h)
            continue;
        long i = n * sizes.dy_image + p * sizes.dy_row + first_k + at.k;
        long j = n * sizes.x_image + h * sizes.x_row + first_c + at.c;
        int w = at.s * sizes.dilation_w - sizes.pad_left;
        for (int q = 0; q < sizes.q; ++q) {
            if (w >= 0 && w < sizes.w) {
                float d[16];
                vstore16(window_dy16(dy, i, dy_end), 0, d);
                float16 v = window_x16(x, j + w * sizes.x_column, x_end);
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                    sum[t] += d[t] * v;
            }
            i += sizes.dy_column;
            w += sizes.stride_w;
        }
        if (++pending == 1) {
            pending = 0;
            #pragma unroll
            for (int t = 0; t < 2; ++t) {
                total[t] += sum[t];
                sum[t] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        total[t] += sum[t];
    #pragma unroll
    for (int t = 0; t < 2; ++t) {
        int k = at.k + t / 1;
        int c = at.c + t % 1;
        long f = (first_k + k) * sizes.w_image + c * sizes.w_channel +
            at.r * sizes.w_row + at.s * sizes.w_column;
        f += at.part * (sizes.k * sizes.w_image);
        if (k < sizes.group_k && c < sizes.group_c) {
            put_part16(scratch, f, 1, sizes.group_c - c, total[t]);
        }
    }
}

__kernel
void bwd_weight_generic(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    tile(dy, x, scratch, sizes, (long)get_global_id(0));
}

__kernel
void bwd_weight_generic_sum(
    __global float *scratch, long scratch_offset,
    __global half *dw, long dw_offset,
    float beta,
    __global uint *dw_counts, long dw_counts_offset,
    long elements) {
    scratch += scratch_offset;
    dw += dw_offset;
    if (dw_counts)
        dw_counts += dw_counts_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    long i = (long)get_global_id(0) * 16;
    if (i >= elements)
        return;
    int count = (int)min((long)16, elements - i);
    float16 total = 0.0f;
    for (int part = 0; part < 8; ++part)
        total += get_part16(scratch, part * elements + i, count);
    put_dw16(dw, i, 1, count, total, beta, &tally);
    counts_flush(dw_counts, &tally);
}
