/* Step 2: bwd_data_depthwise_gpu */

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

static float load_dy(__global const half *p, long i) {
    return vload_half(i, p);
}

static float load_w(__global const half *p, long i) {
    return vload_half(i, p);
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
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dx(value);
    count_dx(tally, before, value);
    vstore_half(value, i, p);
}

static float4 rows_of(__global const half *dy, long i, long step, int p, int end)
{
    float4 v = 0.0f;
    if (p + 0 >= 0 && p + 0 < end)
        v.s0 = load_dy(dy, i + 0 * step);
    if (p + 1 >= 0 && p + 1 < end)
        v.s1 = load_dy(dy, i + 1 * step);
    if (p + 2 >= 0 && p + 2 < end)
        v.s2 = load_dy(dy, i + 2 * step);
    if (p + 3 >= 0 && p + 3 < end)
        v.s3 = load_dy(dy, i + 3 * step);
    return v;
}

static float4 weight_of(__global const half *w, long f, long filter)
{
    return load_w(w, f);
}

static int divide(int a, int stride) {
    return stride == 1 ? a : a / stride;
}

__kernel
void bwd_data_depthwise_gpu(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
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
    uint item = (uint)get_global_id(0);
    int w_column = (int)(item % sizes.w);
    item /= sizes.w;
    const int h_blocks = (sizes.h + 4 - 1) / 4;
    int h_block = (int)(item % h_blocks);
    item /= h_blocks;
    const int h = h_block * 4;
    int c = (int)(item % sizes.c);
    item /= sizes.c;
    if (item >= sizes.n)
        return;
    const int k = c * sizes.group_k;
    const long image = item * sizes.dy_image + k * sizes.dy_channel;
    float4 sum = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        const int p = h + sizes.pad_top - r * sizes.dilation_h;
        if (p <= -4 || p >= sizes.p)
            continue;
        const long row = image + p * sizes.dy_row;
        const long filter = k * sizes.w_image + r * sizes.w_row;
        for (int s = 0; s < sizes.s; ++s) {
            const int left = w_column + sizes.pad_left - s * sizes.dilation_w;
            const int q = divide(left, sizes.stride_w);
            if (left < 0 || q >= sizes.q || q * sizes.stride_w != left)
                continue;
            long i = row + q * sizes.dy_column;
            long f = filter + s * sizes.w_column;
            for (int plane = 0; plane < sizes.group_k; ++plane) {
                sum += rows_of(dy, i, sizes.dy_row, p, sizes.p) * weight_of(w, f, sizes.w_image);
                i += sizes.dy_channel;
                f += sizes.w_image;
            }
        }
    }
    const long to = item * sizes.x_image + c * sizes.x_channel + h * sizes.x_row +
        w_column * sizes.x_column;
    store_dx(dx, to, sum.s0, beta, &tally);
    if (h + 1 < sizes.h)
        store_dx(dx, to + 1 * sizes.x_row, sum.s1, beta, &tally);
    if (h + 2 < sizes.h)
        store_dx(dx, to + 2 * sizes.x_row, sum.s2, beta, &tally);
    if (h + 3 < sizes.h)
        store_dx(dx, to + 3 * sizes.x_row, sum.s3, beta, &tally);
    counts_flush(dx_counts, &tally);
}
