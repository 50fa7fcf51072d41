/* Step 1: cast */

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

typedef struct {
    int4 nonzero, zeroed, subnormal, saturated, nan, inf;
} seen4_t;

static void fold4(counts_t *tally, const seen4_t *seen) {
    tally->nonzero += (uint)isum4(seen->nonzero);
    tally->zeroed += (uint)isum4(seen->zeroed);
    tally->subnormal += (uint)isum4(seen->subnormal);
    tally->saturated += (uint)isum4(seen->saturated);
    tally->nan += (uint)isum4(seen->nan);
    tally->inf += (uint)isum4(seen->inf);
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

static float read_x(__global const float *p, long i) {
    return p[i];
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

static float4 read_x4(__global const float *p, long i) {
    return vload4(0, p + i);
}

static void see_x4(seen4_t *seen, float4 before) {
    const int4 b = as_int4(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int4 other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!any(other))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x33000000);
    seen->subnormal -= (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated -= (b > 0x477fe000) & (b < 0x7f800000);
    const int4 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float cast_x(__global const float *in, long i) {
    float before = read_x(in, i);
    return before;
}

static float4 cast_x4(__global const float *in, long i) {
    float4 before = read_x4(in, i);
    return before;
}

static float cast_x_range(__global const float *in,
    long begin, long end, int counting, counts_t *tally) {
    long i = begin + get_local_id(0) * 4;
    seen4_t seen4 = { 0 };
    float4 sum4 = 0.0f;
    for (; i + 3 < end; i += 256 * 4) {
        const float4 before = cast_x4(in, i);
        sum4 += before;
        if (counting)
            see_x4(&seen4, before);
    }
    if (counting)
        fold4(tally, &seen4);
    i = begin + (end - begin) / 4 * 4 + get_local_id(0);
    seen_t seen = { 0 };
    float sum = 0.0f;
    for (; i + 0 < end; i += 256 * 1) {
        const float before = cast_x(in, i);
        sum += before;
        if (counting)
            see_x(&seen, before);
    }
    if (counting)
        fold(tally, &seen);
    return fsum4(sum4) + sum;
}

__kernel
void cast_flat(
    __global const float *x, long x_offset,
    __global uint *x_counts, long x_counts_offset,
    long elements) {
    x += x_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    int counting = x_counts != 0;
    counts_t tally = { 0 };
    long begin = (long)get_group_id(0) * 16384;
    long end = min(begin + 16384, elements);
    cast_x_range(x, begin, end, counting, &tally);
    counts_flush(x_counts, &tally);
}

static float read_dy(__global const float *p, long i) {
    return p[i];
}

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

static float4 read_dy4(__global const float *p, long i) {
    return vload4(0, p + i);
}

static void see_dy4(seen4_t *seen, float4 before) {
    const int4 b = as_int4(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int4 other = (b != 0) & ((b < 0x337fe000) | (b > 0x427fe000));
    if (!any(other))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x2e000000);
    seen->subnormal -= (b > 0x2e000000) & (b < 0x337fe000);
    seen->saturated -= (b > 0x427fe000) & (b < 0x7f800000);
    const int4 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float cast_dy(__global const float *in, long i) {
    float before = read_dy(in, i);
    return before;
}

static float4 cast_dy4(__global const float *in, long i) {
    float4 before = read_dy4(in, i);
    return before;
}

static float cast_column(__global const float *in,
    long i, int rows, int channels, int counting, counts_t *tally) {
    seen_t seen = { 0 };
    float total = 0.0f;
    while (rows > 0) {
        float sum = 0.0f;
        int block = min(rows, 256);
        rows -= block;
        for (; block > 0; --block, i += channels) {
            const float before = cast_dy(in, i);
            sum += before;
            if (counting)
                see_dy(&seen, before);
        }
        total += sum;
    }
    if (counting)
        fold(tally, &seen);
    return total;
}

static float4 cast_column4(__global const float *in,
    long i, int rows, int channels, int counting, counts_t *tally) {
    seen4_t seen = { 0 };
    float4 total = 0.0f;
    while (rows > 0) {
        float4 sum = 0.0f;
        int block = min(rows, 256);
        rows -= block;
        for (; block > 0; --block, i += channels) {
            const float4 before = cast_dy4(in, i);
            sum += before;
            if (counting)
                see_dy4(&seen, before);
        }
        total += sum;
    }
    if (counting)
        fold4(tally, &seen);
    return total;
}

__kernel
void cast_pixels(
    __global const float *dy, long dy_offset,
    __global uint *dy_counts, long dy_counts_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes,
    __global const float *w, long w_offset,
    __global uint *w_counts, long w_counts_offset,
    long elements) {
    dy += dy_offset;
    if (dy_counts)
        dy_counts += dy_counts_offset;
    scratch += scratch_offset;
    w += w_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    int counting = dy_counts != 0;
    counts_t tally = { 0 };
    const long w_groups = (elements + 16384 - 1) / 16384;
    const long w_group = (long)get_group_id(0) - (long)get_num_groups(0) + w_groups;
    if (w_group >= 0) {
        if (w && w_counts) {
            const long w_begin = w_group * 16384;
            cast_x_range(w, w_begin, min(w_begin + 16384, elements), 1, &tally);
            counts_flush(w_counts, &tally);
        }
        return;
    }
    long pixels = (long)sizes.n * sizes.p * sizes.q;
    int share = max(16, 16384 / sizes.k);
    long first = (long)get_group_id(0) * share;
    int rows = (int)min((long)share, pixels - first);
    __global float *sums = scratch + (long)get_group_id(0) * sizes.k;
    int k = (int)get_local_id(0) * 4;
    for (; k + 3 < sizes.k; k += 256 * 4) {
        float4 sum = cast_column4(dy,
            first * sizes.k + k, rows, sizes.k, counting, &tally);
        vstore4(sum, 0, sums + k);
    }
    k = sizes.k / 4 * 4 + (int)get_local_id(0);
    for (; k + 0 < sizes.k; k += 256 * 1) {
        float sum = cast_column(dy,
            first * sizes.k + k, rows, sizes.k, counting, &tally);
        sums[k] = sum;
    }
    counts_flush(dy_counts, &tally);
}

static float bias(__global const float *scratch, sizes_t sizes,
    int k) {
    long pixels = (long)sizes.n * sizes.p * sizes.q;
    long share = max(16, 16384 / sizes.k);
    long count = (pixels + share - 1) / share;
    float total = 0.0f;
    for (long i = 0; i < count;) {
        float sum = 0.0f;
        long end = min(count, i + 64);
        for (; i < end; ++i)
            sum += scratch[i * sizes.k + k];
        total += sum;
    }
    return total;
}

static float round_db(float v) {
    int bits = as_int(v) & 0x7fffffff;
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    a = select(a, (float)(INFINITY), a > 65504.0f);
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static void count_db(counts_t *tally, float before, float after) {
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

static void store_db(__global half *p, long i,
    float value, float beta, counts_t *tally) {
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_db(value);
    count_db(tally, before, value);
    vstore_half(value, i, p);
}

__kernel
void cast_bias(
    __global float *scratch, long scratch_offset,
    __global half *db, long db_offset,
    float beta,
    __global uint *db_counts, long db_counts_offset,
    sizes_t sizes) {
    scratch += scratch_offset;
    db += db_offset;
    if (db_counts)
        db_counts += db_counts_offset;
    int k = (int)get_global_id(0);
    if (k >= sizes.k)
        return;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    store_db(db, k, bias(scratch, sizes, k), beta, &tally);
    counts_flush(db_counts, &tally);
}
