/* Step 5: bwd_weight_tile */

static float16 round_dy16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, 0x427fe000), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, 0x38800000, 0x47000000);
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
}

static float16 load_dy16(__global const float *p, long i) {
    return round_dy16(vload16(0, p + i));
}

static float16 load_dy_plane(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static void store_dy_plane(__global half *p, int i, float16 v) {
    vstore_half16(v, 0, p + i);
}

static void zeros_dy(__global half *p, int i) {
    vstore16((ushort16)(0), 0, (__global ushort *)p + i);
}

static void zero_dy_plane(__global half *p, int from, int to) {
    for (; from + 16 <= to; from += 16) {
        zeros_dy(p, from);
    }
    for (; from < to; ++from) {
        ((__global ushort *)p)[from] = 0;
    }
}

__kernel
void bwd_weight_tile_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long index = get_group_id(0);
    const long image = index / 3;
    __global half *plane = ((__global half *)(scratch + 0L)) + image * 144 + index % 3 * 592;
    long i = index * 7 * 17;
    int at = 0;
    zero_dy_plane(plane, 0, at);
    for (int row = 0; row < 7; ++row) {
        zeros_dy(plane, at + 2);
        for (int j = 0; j < 16; j += 16) {
            store_dy_plane(plane, at + j, load_dy16(dy, i + j));
        }
        store_dy_plane(plane, at + 1, load_dy16(dy, i + 1));
        i += 17;
        at += 18;
    }
    zero_dy_plane(plane, 125, image + 1 == batch ? 198 : 144);
}

static float16 round_x16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, 0x477fe000), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, 0x38800000, 0x47000000);
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
}

static float16 load_x16(__global const float *p, long i) {
    return round_x16(vload16(0, p + i));
}

static float16 load_x_plane(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static void store_x_plane(__global half *p, int i, float16 v) {
    vstore_half16(v, 0, p + i);
}

static void zeros_x(__global half *p, int i) {
    vstore16((ushort16)(0), 0, (__global ushort *)p + i);
}

static void zero_x_plane(__global half *p, int from, int to) {
    for (; from + 16 <= to; from += 16) {
        zeros_x(p, from);
    }
    for (; from < to; ++from) {
        ((__global ushort *)p)[from] = 0;
    }
}

__kernel
void bwd_weight_tile_pack_x(
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    int batch) {
    x += x_offset;
    scratch += scratch_offset;
    const long index = get_group_id(0);
    const long image = index / 5;
    __global half *plane = ((__global half *)(scratch + 1216L)) + image * 144 + index % 5 * 592;
    long i = index * 7 * 17;
    int at = 19;
    zero_x_plane(plane, 0, at);
    for (int row = 0; row < 7; ++row) {
        zeros_x(plane, at + 2);
        for (int j = 0; j < 16; j += 16) {
            store_x_plane(plane, at + j, load_x16(x, i + j));
        }
        store_x_plane(plane, at + 1, load_x16(x, i + 1));
        i += 17;
        at += 18;
    }
    zero_x_plane(plane, 144, image + 1 == batch ? 198 : 144);
}

static void multiply(__global const half *dy, __global const half *x, int vectors, float16 *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum0_1 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum1_1 = 0.0f;
    for (int i = 0; i < vectors; ++i) {
        const float16 b0 = load_x_plane(x, 0 * (long)592);
        const float16 b1 = load_x_plane(x, 1 * (long)592);
        const float16 a0 = load_dy_plane(dy, 0 * (long)592);
        sum0_0 = a0 * b0 + sum0_0;
        sum0_1 = a0 * b1 + sum0_1;
        const float16 a1 = load_dy_plane(dy, 1 * (long)592);
        sum1_0 = a1 * b0 + sum1_0;
        sum1_1 = a1 * b1 + sum1_1;
        dy += 16;
        x += 16;
    }
    sums[0] += sum0_0;
    sums[1] += sum0_1;
    sums[2] += sum1_0;
    sums[3] += sum1_1;
}

static float lane_sum(float16 v) {
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

static void store_partials(__global float *partial, int k, int c, const float16 *sums) {
    for (int i = 0; i < min(2, 3 - k); ++i) {
        for (int j = 0; j < min(2, 5 - c); ++j) {
            __global float *to = partial + ((long)(k + i) * 5 + c + j) * 9;
            for (int tap = 0; tap < 9; ++tap) {
                to[tap] = lane_sum(sums[tap * 4 + i * 2 + j]);
            }
        }
    }
}

__kernel
void bwd_weight_tile(
    __global float *scratch, long scratch_offset,
    int batch) {
    scratch += scratch_offset;
    const int c = get_group_id(0) % 3 * 2;
    const int k = get_group_id(0) / 3 % 2 * 2;
    const long share = get_group_id(0) / 3 / 2;
    __global const half *dy = ((__global half *)(scratch + 0L)) + k * (long)592;
    __global const half *x = ((__global half *)(scratch + 1216L)) + c * (long)592;
    const long vectors = (batch * (long)144 + 15) / 16;
    const long segments = (vectors + 768 - 1) / 768;
    const long end = segments * (share + 1) / 2;
    float16 sums[9 * 4];
    for (int i = 0; i < 9 * 4; ++i) {
        sums[i] = 0.0f;
    }
    for (long segment = segments * share / 2; segment < end; ++segment) {
        const long from = segment * 768;
        const int count = min((long)768, vectors - from);
        for (int tap = 0; tap < 9; ++tap) {
            const int shift = tap / 3 * 18 + tap % 3 * 1;
            multiply(dy + from * 16, x + from * 16 + shift, count, sums + tap * 4);
        }
    }
    store_partials(scratch + 3008 + share * 135, k, c, sums);
}

static float16 round_dw16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, 0x477fe000), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, 0x38800000, 0x47000000);
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
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half16(0, p + i);
    }
    float16 before = value;
    value = round_dw16(value);
    count_dw16(tally, before, value);
    vstore_half16(value, 0, p + i);
}

static float round_dw(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, 0x477fe000), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, 0x38800000, 0x47000000);
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
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
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dw(value);
    count_dw(tally, before, value);
    vstore_half(value, i, p);
}

__kernel
void bwd_weight_tile_sum(
    __global float *scratch, long scratch_offset,
    __global half *dw, long dw_offset,
    float beta,
    __global uint *dw_counts, long dw_counts_offset) {
    scratch += scratch_offset;
    dw += dw_offset;
    if (dw_counts)
        dw_counts += dw_counts_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    __global const float *partial = scratch + 3008;
    long i = get_group_id(0) * 32 * 16L;
    const long end = min(i + 32 * 16L, (long)135);
    for (; i + 16 <= end; i += 16) {
        float16 sum = vload16(0, partial + i);
        for (int share = 1; share < 2; ++share) {
            sum += vload16(0, partial + share * (long)135 + i);
        }
        store_dw16(dw, i, sum, beta, &tally);
    }
    for (; i < end; ++i) {
        float sum = partial[i];
        for (int share = 1; share < 2; ++share) {
            sum += partial[share * (long)135 + i];
        }
        store_dw(dw, i, sum, beta, &tally);
    }
    counts_flush(dw_counts, &tally);
}
