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

static void see_x16(seen16_t *seen, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int16 other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    const long2 marks = as_long2(convert_char16(other));
    if (!(marks.x | marks.y))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x33000000);
    seen->subnormal -= (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated -= (b > 0x477fe000) & (b < 0x7f800000);
    const int16 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float16 read_x16(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static float read_x(__global const half *p, long i) {
    return vload_half(i, p);
}

static float16 rest_of_x(__global const half *p, long i, int count, long total) {
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
    const int16 other = above > (uint16)(0x477fe000 - 0x387fe000);
    const long2 marks = as_long2(convert_char16(other));
    return !(marks.x | marks.y);
}

static uint16 beyond_x(uint16 above, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    return max(above, as_uint16(b - 0x387fe000));
}

static bool is_dense_x(__global const half *p, int count) {
    uint16 above = 0;
    for (int i = 0; i < count; i += 16)
        above = beyond_x(above, read_x16(p, i));
    return is_ordinary_x(above);
}

static bool look_x(seen16_t *seen, __global const half *p, int count) {
    int16 nonzero = 0;
    uint16 above = 0;
    for (int i = 0; i < count; i += 16) {
        const int16 b = as_int16(read_x16(p, i)) & 0x7fffffff;
        nonzero -= b != 0;
        above = max(above, as_uint16(b != 0 ? b - 0x387fe000 : 0));
    }
    if (!is_ordinary_x(above))
        return false;
    seen->nonzero += nonzero;
    return true;
}

static void see_x_block(seen16_t *seen, __global const half *p, int count) {
    if (is_dense_x(p, 16) && is_dense_x(p, count)) {
        seen->nonzero += count / 16;
        return;
    }
    if (look_x(seen, p, count))
        return;
    for (int i = 0; i < count; i += 16)
        see_x16(seen, read_x16(p, i));
}

static void see_x_run(seen16_t *seen, __global const half *p, long i, long end, long total) {
    const long whole = i + ((end - i) & ~15L);
    for (; i < whole; i += 256)
        see_x_block(seen, p + i, min(256, (int)(whole - i)));
    if (whole < end)
        see_x16(seen, rest_of_x(p, whole, end - whole, total));
}

static float cast_x(__global const half *in, long i) {
    float before = read_x(in, i);
    return before;
}

static float16 cast_x16(__global const half *in, long i) {
    float16 before = read_x16(in, i);
    return before;
}

__attribute__((noinline))
static float cast_x_range(__global const half *in,
    long begin, long end, int counting, counts_t *tally) {
    const long whole = begin + (end - begin) / 16 * 16;
    long i = begin;
    seen16_t seen = { 0 };
    float16 sum16 = 0.0f;
    float sum = 0.0f;
    while (i < whole) {
        const long from = i;
        const long stop = min(whole, i + 512);
        uint16 above = 0;
        for (; i < stop; i += 16) {
            const float16 before = cast_x16(in, i);
            sum16 += before;
            if (counting)
                above = beyond_x(above, before);
        }
        if (counting && is_ordinary_x(above))
            seen.nonzero += (int)(stop - from) / 16;
        else if (counting)
            see_x_run(&seen, in, from, stop, stop);
    }
    for (; i < end; ++i)
        sum += cast_x(in, i);
    if (counting) {
        see_x_run(&seen, in, whole, end, end);
        fold16(tally, &seen);
    }
    return fsum16(sum16) + sum;
}

__kernel
void cast_flat(
    __global const half *x, long x_offset,
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

static void see_dy16(seen16_t *seen, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int16 other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    const long2 marks = as_long2(convert_char16(other));
    if (!(marks.x | marks.y))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x33000000);
    seen->subnormal -= (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated -= (b > 0x477fe000) & (b < 0x7f800000);
    const int16 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float16 read_dy16(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static float read_dy(__global const half *p, long i) {
    return vload_half(i, p);
}

static float16 rest_of_dy(__global const half *p, long i, int count, long total) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    float rest[16] = {0.0f};
    if (i + 16 <= total)
        return select((float16)(0.0f), read_dy16(p, i), lane < count);
    for (int j = 0; j < count; ++j)
        rest[j] = read_dy(p, i + j);
    return vload16(0, rest);
}

static bool is_ordinary_dy(uint16 above) {
    const int16 other = above > (uint16)(0x477fe000 - 0x387fe000);
    const long2 marks = as_long2(convert_char16(other));
    return !(marks.x | marks.y);
}

static uint16 beyond_dy(uint16 above, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    return max(above, as_uint16(b - 0x387fe000));
}

static bool is_dense_dy(__global const half *p, int count) {
    uint16 above = 0;
    for (int i = 0; i < count; i += 16)
        above = beyond_dy(above, read_dy16(p, i));
    return is_ordinary_dy(above);
}

static bool look_dy(seen16_t *seen, __global const half *p, int count) {
    int16 nonzero = 0;
    uint16 above = 0;
    for (int i = 0; i < count; i += 16) {
        const int16 b = as_int16(read_dy16(p, i)) & 0x7fffffff;
        nonzero -= b != 0;
        above = max(above, as_uint16(b != 0 ? b - 0x387fe000 : 0));
    }
    if (!is_ordinary_dy(above))
        return false;
    seen->nonzero += nonzero;
    return true;
}

static void see_dy_block(seen16_t *seen, __global const half *p, int count) {
    if (is_dense_dy(p, 16) && is_dense_dy(p, count)) {
        seen->nonzero += count / 16;
        return;
    }
    if (look_dy(seen, p, count))
        return;
    for (int i = 0; i < count; i += 16)
        see_dy16(seen, read_dy16(p, i));
}

static void see_dy_run(seen16_t *seen, __global const half *p, long i, long end, long total) {
    const long whole = i + ((end - i) & ~15L);
    for (; i < whole; i += 256)
        see_dy_block(seen, p + i, min(256, (int)(whole - i)));
    if (whole < end)
        see_dy16(seen, rest_of_dy(p, whole, end - whole, total));
}

static float cast_dy(__global const half *in, long i) {
    float before = read_dy(in, i);
    return before;
}

static float16 cast_dy16(__global const half *in, long i) {
    float16 before = read_dy16(in, i);
    return before;
}

__attribute__((noinline))
static float cast_dy_range(__global const half *in,
    long begin, long end, int counting, counts_t *tally) {
    const long whole = begin + (end - begin) / 16 * 16;
    long i = begin;
    seen16_t seen = { 0 };
    float16 sum16 = 0.0f;
    float sum = 0.0f;
    while (i < whole) {
        const long from = i;
        const long stop = min(whole, i + 512);
        uint16 above = 0;
        for (; i < stop; i += 16) {
            const float16 before = cast_dy16(in, i);
            sum16 += before;
            if (counting)
                above = beyond_dy(above, before);
        }
        if (counting && is_ordinary_dy(above))
            seen.nonzero += (int)(stop - from) / 16;
        else if (counting)
            see_dy_run(&seen, in, from, stop, stop);
    }
    for (; i < end; ++i)
        sum += cast_dy(in, i);
    if (counting) {
        see_dy_run(&seen, in, whole, end, end);
        fold16(tally, &seen);
    }
    return fsum16(sum16) + sum;
}

__kernel
void cast_planes(
    __global const half *dy, long dy_offset,
    __global uint *dy_counts, long dy_counts_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes,
    __global const half *w, long w_offset,
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
    long plane = (long)sizes.p * sizes.q;
    long parts = (plane + 16384 - 1) / 16384;
    long units = (long)sizes.n * sizes.k * parts;
    long share = max(1L, 16384 / plane);
    long unit = (long)get_group_id(0) * share;
    long last = min(unit + share, units);
    for (; unit < last; ++unit) {
        long begin = unit / parts * plane + unit % parts * 16384;
        long end = min(begin + 16384, (unit / parts + 1) * plane);
        float sum = cast_dy_range(dy, begin, end, counting, &tally);
        scratch[unit] = sum;
    }
    counts_flush(dy_counts, &tally);
}

__attribute__((noinline))
static float bias(__global const float *scratch, sizes_t sizes,
    int k) {
    long plane = (long)sizes.p * sizes.q;
    long parts = (plane + 16384 - 1) / 16384;
    long count = sizes.n * parts;
    float total = 0.0f;
    for (long i = 0; i < count;) {
        float sum = 0.0f;
        long end = min(count, i + 64);
        for (; i < end; ++i)
            sum += scratch[(i / parts * sizes.k + k) * parts + i % parts];
        total += sum;
    }
    return total;
}

static void store_db(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
void cast_bias(
    __global float *scratch, long scratch_offset,
    __global float *db, long db_offset,
    float beta,
    sizes_t sizes) {
    scratch += scratch_offset;
    db += db_offset;
    int k = (int)get_global_id(0);
    if (k >= sizes.k)
        return;
    store_db(db, k, bias(scratch, sizes, k), beta);
}
