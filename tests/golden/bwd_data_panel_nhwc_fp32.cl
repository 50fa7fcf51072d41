/* Step 2: bwd_data_panel */

typedef struct {
    long batch;
    long p;
    long q;
    long top;
    long left;
    long dy_rows;
    long dy_image;
    long dy_group;
    long dy_block;
    long dy_row;
    long dy_column;
    long dy_channel;
    long h;
    long w;
    long dx_image;
    long dx_row;
    long dx_column;
    long dx_channel;
    long r;
    long s;
    long stride_h;
    long stride_w;
    long pad_top;
    long pad_left;
    long dilation_h;
    long dilation_w;
    long step_h;
    long step_w;
    long group_c;
    long group_k;
    long c_blocks;
    long groups;
    long block_span;
    long block_chunks;
    long phases;
    long weights;
    long k_block;
    long chain;
    long span;
} shape_t;

static float16 load_dy16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float load_dy(__global const float *p, long i) {
    return p[i];
}

static void zero(__global float *p, long from, long to) {
    for (; from + 16 <= to; from += 16) {
        vstore16((float16)(0.0f), 0, p + from);
    }
    for (; from < to; ++from) {
        p[from] = 0.0f;
    }
}

static void copy_dy(__global const float *dy, long i, __global float *to, long count) {
    const long last = count - 16;
    if (last < 0) {
        for (int j = 0; j < count; ++j) {
            to[j] = load_dy(dy, i + j);
        }
        return;
    }
    for (long j = 0; j < last; j += 16) {
        vstore16(load_dy16(dy, i + j), 0, to + j);
    }
    vstore16(load_dy16(dy, i + last), 0, to + last);
}

__kernel
void bwd_data_panel_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long item = get_group_id(0);
    const long row = item % shape.dy_rows - shape.top;
    const long image = item / shape.dy_rows;
    const long k = shape.groups * shape.group_k;
    const bool joined = shape.dy_column == k;
    const long runs = joined ? 1 : shape.q;
    const long run = joined ? shape.q * k : k;
    const long start = shape.left * shape.dy_column;
    const long end = start + shape.q * shape.dy_column;
    const long from = (image * shape.p + row) * shape.q * k;
    __global float *to = scratch + item * shape.dy_row;
    if (row < 0 || row >= shape.p) {
        zero(to, 0, shape.dy_row);
    } else {
        zero(to, 0, start);
        for (long i = 0; i < runs; ++i) {
            copy_dy(dy, from + i * run, to + start + i * shape.dy_column, run);
        }
        zero(to, end, shape.dy_row);
    }
}

static float16 read_w16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_w(__global const float *p, long i) {
    return p[i];
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

static void see_w16(seen16_t *seen, float16 before) {
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

static void store_panel(__global float *p, long i, float16 v, int counting, seen16_t *seen) {
    if (counting)
        see_w16(seen, v);
    vstore16(v, 0, p + i);
}

static float16 read_w_part(__global const float *w, long i, long count) {
    if (count >= 16) {
        return read_w16(w, i);
    }
    float part[16] = {0.0f};
    for (int j = 0; j < (int)count; ++j) {
        part[j] = read_w(w, i + j);
    }
    return vload16(0, part);
}

static void copy_block(__global const float *w, long from, long step, long channels, __global float *panel, long first, long end, int counting, seen16_t *seen) {
    for (long k = first; k < end; ++k) {
        store_panel(panel, k * 16, read_w_part(w, from + k * step, channels), counting, seen);
    }
}

__kernel
void bwd_data_panel_pack_w(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    __global uint *w_counts, long w_counts_offset,
    shape_t shape) {
    w += w_offset;
    scratch += scratch_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    const int counting = w_counts != 0;
    seen16_t seen = { 0 };
    const long item = get_group_id(0) / (shape.r * shape.s);
    const long rest = get_group_id(0) % (shape.r * shape.s);
    const long k_blocks = (shape.group_k + 8 - 1) / 8;
    const long group = item / k_blocks;
    const long first = item % k_blocks * 8;
    const long end = min(first + 8, shape.group_k);
    const long taps = shape.r * shape.s;
    const long block = taps * shape.group_k * 16;
    const long start = group * shape.group_k;
    __global float *panels = (__global float *)(scratch + shape.weights) + group * shape.c_blocks * block;
    const long step = taps * shape.group_c;
    const long from = start * step + rest * shape.group_c;
    panels += rest * shape.group_k * 16;
    for (long i = 0; i < shape.c_blocks; ++i) {
        const long c = i * 16;
        copy_block(w, from + c, step, shape.group_c - c, panels + i * block, first, end, counting, &seen);
    }
    if (counting) {
        counts_t tally = { 0 };
        fold16(&tally, &seen);
        counts_flush(w_counts, &tally);
    }
}

static int place(long position, long positions, long rows, long columns,
    shape_t shape, long *in_dy, long *in_dx) {
    const int count = min((long)8, positions - position);
    long column = position % columns;
    long row = position / columns % rows;
    const long image = position / columns / rows;
    const long dx_row = shape.stride_h * shape.dx_row;
    const long dx_column = shape.stride_w * shape.dx_column;
    long dy = image * shape.dy_image + row * shape.dy_row + column * shape.dy_column;
    long dx = image * shape.dx_image + row * dx_row + column * dx_column;
    for (int i = 0; i < 8; ++i) {
        in_dy[i] = dy;
        in_dx[i] = dx;
        if (i + 1 >= count)
            continue;
        dy += shape.dy_column;
        dx += dx_column;
        if (++column < columns)
            continue;
        column = 0;
        dy += shape.dy_row - columns * shape.dy_column;
        dx += dx_row - columns * dx_column;
        if (++row < rows)
            continue;
        row = 0;
        dy += shape.dy_image - rows * shape.dy_row;
        dx += shape.dx_image - rows * dx_row;
    }
    return count;
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

static void store_dx_run(__global half *p, long i,
    const float *values, int count, float beta, counts_t *tally) {
    for (; count >= 16; count -= 16) {
        store_dx16(p, i, vload16(0, values), beta, tally);
        i += 16;
        values += 16;
    }
    if (count & 8) {
        store_dx8(p, i, vload8(0, values), beta, tally);
        i += 8;
        values += 8;
    }
    if (count & 4) {
        store_dx4(p, i, vload4(0, values), beta, tally);
        i += 4;
        values += 4;
    }
    if (count & 2) {
        store_dx2(p, i, vload2(0, values), beta, tally);
        i += 2;
        values += 2;
    }
    if (count & 1) {
        store_dx(p, i, *values, beta, tally);
        i += 1;
        values += 1;
    }
}

static void store_tile(__global half *dx, const long *in_dx, int count,
    int channels, shape_t shape, const float16 *sums,
    float beta, counts_t *tally) {
    if (channels == 16) {
        for (int i = 0; i < count; ++i)
            store_dx16(dx, in_dx[i], sums[i], beta, tally);
    } else {
        for (int i = 0; i < count; ++i)
            store_dx_run(dx, in_dx[i], (const float *)(sums + i), channels, beta, tally);
    }
}

typedef struct {
    int rows, columns;
    long dy_row, dy_column;
    long panel_row, panel_column;
} taps_t;

static void set_steps(shape_t shape, long *steps) {
    for (int i = 0; i < 128; ++i)
        steps[i] = i / 8 * shape.dy_block + i % 8 * shape.dy_channel;
}

static void multiply(__global const float *dy, const long *places, const long *steps,
    long offset, __global const float *panel, taps_t taps, int first, int last,
    int channels, bool fresh, float16 *sums) {
    __global const float *a0 = dy + places[0];
    __global const float *a1 = dy + places[1];
    __global const float *a2 = dy + places[2];
    __global const float *a3 = dy + places[3];
    __global const float *a4 = dy + places[4];
    __global const float *a5 = dy + places[5];
    __global const float *a6 = dy + places[6];
    __global const float *a7 = dy + places[7];
    float16 sum0 = 0.0f;
    float16 sum1 = 0.0f;
    float16 sum2 = 0.0f;
    float16 sum3 = 0.0f;
    float16 sum4 = 0.0f;
    float16 sum5 = 0.0f;
    float16 sum6 = 0.0f;
    float16 sum7 = 0.0f;
    for (int tap = first; tap < last; ++tap) {
        const int r = tap / taps.columns;
        const int s = tap % taps.columns;
        const long start = offset - (r * taps.dy_row + s * taps.dy_column);
        __global const float *panel_tap = panel + r * taps.panel_row + s * taps.panel_column;
        for (int k = 0; k < channels; ++k) {
            const long at = start + steps[k];
            const float16 w = vload16(k, panel_tap);
            sum0 = a0[at] * w + sum0;
            sum1 = a1[at] * w + sum1;
            sum2 = a2[at] * w + sum2;
            sum3 = a3[at] * w + sum3;
            sum4 = a4[at] * w + sum4;
            sum5 = a5[at] * w + sum5;
            sum6 = a6[at] * w + sum6;
            sum7 = a7[at] * w + sum7;
        }
    }
    if (fresh) {
        sums[0] = sum0;
        sums[1] = sum1;
        sums[2] = sum2;
        sums[3] = sum3;
        sums[4] = sum4;
        sums[5] = sum5;
        sums[6] = sum6;
        sums[7] = sum7;
        return;
    }
    sums[0] += sum0;
    sums[1] += sum1;
    sums[2] += sum2;
    sums[3] += sum3;
    sums[4] += sum4;
    sums[5] += sum5;
    sums[6] += sum6;
    sums[7] += sum7;
}

static void sum_tile(__global const float *dy, const long *places, const long *steps,
    __global const float *panel, shape_t shape, taps_t taps,
    float16 *sums) {
    const int count = taps.rows * taps.columns;
    for (int j = 0; count == 0 && j < 8; ++j) {
        sums[j] = 0.0f;
    }
    for (long k = 0; k < shape.group_k; k += shape.k_block) {
        const int channels = min(shape.k_block, shape.group_k - k);
        for (int tap = 0; tap < count; tap += shape.chain) {
            multiply(dy, places, steps, k / 8 * shape.dy_block, panel + k * 16, taps, tap, min(tap + (int)shape.chain, count), channels, k + tap == 0, sums);
        }
    }
}

static long first_tap(long place, long stride, long dilation, long period) {
    long tap = 0;
    while (tap < period && (place - tap * dilation) % stride != 0)
        ++tap;
    return tap;
}

__kernel
void bwd_data_panel(
    __global float *scratch, long scratch_offset,
    __global half *dx, long dx_offset,
    float beta,
    __global uint *dx_counts, long dx_counts_offset,
    shape_t shape) {
    scratch += scratch_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    long item = get_group_id(0);
    const long first_block = item % shape.block_chunks * shape.block_span;
    item /= shape.block_chunks;
    const long group = item % shape.groups;
    item /= shape.groups;
    const long phase = item % shape.phases;
    const long start = item / shape.phases * shape.span * 8;
    const long phases_w = min(shape.stride_w, shape.w);
    const long h = phase / phases_w;
    const long w = phase % phases_w;
    const long rows = (shape.h - h + shape.stride_h - 1) / shape.stride_h;
    const long columns = (shape.w - w + shape.stride_w - 1) / shape.stride_w;
    const long positions = shape.batch * rows * columns;
    const long end = min(start + shape.span * 8, positions);
    const long end_block = min(first_block + shape.block_span, shape.c_blocks);
    dx += group * shape.group_c * shape.dx_channel + h * shape.dx_row + w * shape.dx_column;
    const long period_h = min(shape.step_h, shape.r);
    const long period_w = min(shape.step_w, shape.s);
    const long r = first_tap(h + shape.pad_top, shape.stride_h, shape.dilation_h, period_h);
    const long s = first_tap(w + shape.pad_left, shape.stride_w, shape.dilation_w, period_w);
    const long tap = shape.group_k * 16;
    taps_t taps;
    taps.rows = r < period_h ? (shape.r - r + shape.step_h - 1) / shape.step_h : 0;
    taps.columns = s < period_w ? (shape.s - s + shape.step_w - 1) / shape.step_w : 0;
    taps.dy_row = shape.step_h * shape.dilation_h / shape.stride_h * shape.dy_row;
    taps.dy_column = shape.step_w * shape.dilation_w / shape.stride_w * shape.dy_column;
    taps.panel_row = shape.step_h * shape.s * tap;
    taps.panel_column = shape.step_w * tap;
    const long p = (h + shape.pad_top - r * shape.dilation_h) / shape.stride_h + shape.top;
    const long q = (w + shape.pad_left - s * shape.dilation_w) / shape.stride_w + shape.left;
    __global const float *dy = scratch + p * shape.dy_row + q * shape.dy_column + group * shape.dy_group;
    const long block = shape.r * shape.s * tap;
    __global const float *panels = (__global const float *)(scratch + shape.weights) + group * shape.c_blocks * block + (r * shape.s + s) * tap;
    long in_dy[8];
    long in_dx[8];
    float16 sums[16];
    long steps[128];
    set_steps(shape, steps);
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    for (long i = start; i < end; i += 8) {
        const int count = place(i, positions, rows, columns, shape, in_dy, in_dx);
        for (long j = first_block; j < end_block; ++j) {
            const long c = j * 16;
            sum_tile(dy, in_dy, steps, panels + j * block, shape, taps, sums);
            store_tile(dx + c * shape.dx_channel, in_dx, count, min(16L, shape.group_c - c), shape, sums, beta, &tally);
        }
    }
    counts_flush(dx_counts, &tally);
}
