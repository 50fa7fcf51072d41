/* Step 3: bwd_weight_tile */

typedef struct {
    long dy_channels;
    long dy_rows;
    long dy_columns;
    long dy_pitch;
    long dy_start;
    long dy_length;
    long dy_tail;
    long dy_image_stride;
    long dy_channel_stride;
    long dy_offset;
    long x_channels;
    long x_rows;
    long x_columns;
    long x_pitch;
    long x_start;
    long x_length;
    long x_tail;
    long x_image_stride;
    long x_channel_stride;
    long x_offset;
    long c;
    long k;
    long s;
    long filter;
    long row_step;
    long column_step;
    long segment;
    long split_k;
    long k_blocks;
    long c_blocks;
    long weights;
    long partials;
} shape_t;

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

static float round_dy(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int)(0x427fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static float load_dy(__global const float *p, long i) {
    return round_dy(p[i]);
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

static float16 load_dy_short(__global const float *p, long i, long total, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (i + 16 <= total) {
        return select((float16)(0.0f), load_dy16(p, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = load_dy(p, i + j);
    }
    return vload16(0, row);
}

static void store_dy_short(__global half *p, int at, float16 v, int columns, int pitch, int length) {
    if (at + 16 <= length) {
        store_dy_plane(p, at, v);
        zero_dy_plane(p, at + 16, at + pitch);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore_half8(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore_half4(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore_half2(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        vstore_half(row[done], 0, p + at + done);
    }
    zero_dy_plane(p, at + columns, at + pitch);
}

static void pack_dy_long(__global const float *p, long i, __global half *plane, int at, int columns, int gap) {
    if (gap > 16)
        zero_dy_plane(plane, at + columns, at + columns + gap);
    else if (gap > 0)
        zeros_dy(plane, at + columns + gap - 16);
    for (int j = 0; j < columns; j += 16) {
        const int from = min(j, columns - 16);
        store_dy_plane(plane, at + from, load_dy16(p, i + from));
    }
}

__kernel
void bwd_weight_tile_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const int rows = shape.dy_rows;
    const int columns = shape.dy_columns;
    const int pitch = shape.dy_pitch;
    const int length = shape.dy_length;
    const long channels = shape.dy_channels;
    const long total = batch * channels * rows * columns;
    const long index = get_group_id(0);
    const long image = index / channels;
    __global half *plane = ((__global half *)(scratch + shape.dy_offset)) + image * shape.dy_image_stride + index % channels * shape.dy_channel_stride;
    long i = index * rows * columns;
    int at = shape.dy_start;
    zero_dy_plane(plane, 0, at);
    for (int row = 0; row < rows; ++row) {
        if (columns < 16) {
            store_dy_short(plane, at, load_dy_short(dy, i, total, columns), columns, pitch, length);
        } else {
            pack_dy_long(dy, i, plane, at, columns, pitch - columns);
        }
        i += columns;
        at += pitch;
    }
    const int tail = image + 1 == batch ? shape.dy_tail : 0;
    zero_dy_plane(plane, at - pitch + columns, length + tail);
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

static float16 load_x_short(__global const float *p, long i, long total, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (i + 16 <= total) {
        return select((float16)(0.0f), load_x16(p, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = load_x(p, i + j);
    }
    return vload16(0, row);
}

static void store_x_short(__global half *p, int at, float16 v, int columns, int pitch, int length) {
    if (at + 16 <= length) {
        store_x_plane(p, at, v);
        zero_x_plane(p, at + 16, at + pitch);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore_half8(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore_half4(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore_half2(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        vstore_half(row[done], 0, p + at + done);
    }
    zero_x_plane(p, at + columns, at + pitch);
}

static void pack_x_long(__global const float *p, long i, __global half *plane, int at, int columns, int gap) {
    if (gap > 16)
        zero_x_plane(plane, at + columns, at + columns + gap);
    else if (gap > 0)
        zeros_x(plane, at + columns + gap - 16);
    for (int j = 0; j < columns; j += 16) {
        const int from = min(j, columns - 16);
        store_x_plane(plane, at + from, load_x16(p, i + from));
    }
}

__kernel
void bwd_weight_tile_pack_x(
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    x += x_offset;
    scratch += scratch_offset;
    const int rows = shape.x_rows;
    const int columns = shape.x_columns;
    const int pitch = shape.x_pitch;
    const int length = shape.x_length;
    const long channels = shape.x_channels;
    const long total = batch * channels * rows * columns;
    const long index = get_group_id(0);
    const long image = index / channels;
    __global half *plane = ((__global half *)(scratch + shape.x_offset)) + image * shape.x_image_stride + index % channels * shape.x_channel_stride;
    long i = index * rows * columns;
    int at = shape.x_start;
    zero_x_plane(plane, 0, at);
    for (int row = 0; row < rows; ++row) {
        if (columns < 16) {
            store_x_short(plane, at, load_x_short(x, i, total, columns), columns, pitch, length);
        } else {
            pack_x_long(x, i, plane, at, columns, pitch - columns);
        }
        i += columns;
        at += pitch;
    }
    const int tail = image + 1 == batch ? shape.x_tail : 0;
    zero_x_plane(plane, at - pitch + columns, length + tail);
}

static void multiply(__global const half *dy, __global const half *x, long channel_stride, int vectors, float16 *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum0_1 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum1_1 = 0.0f;
    for (int i = 0; i < vectors; ++i) {
        const float16 b0 = load_x_plane(x, 0 * channel_stride);
        const float16 b1 = load_x_plane(x, 1 * channel_stride);
        const float16 a0 = load_dy_plane(dy, 0 * channel_stride);
        sum0_0 = a0 * b0 + sum0_0;
        sum0_1 = a0 * b1 + sum0_1;
        const float16 a1 = load_dy_plane(dy, 1 * channel_stride);
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

static void store_partials(__global float *partial, shape_t shape, int k, int c, const float16 *sums) {
    const int k_count = min(2, (int)shape.k - k);
    const int c_count = min(2, (int)shape.c - c);
    for (int i = 0; i < k_count; ++i) {
        for (int j = 0; j < c_count; ++j) {
            __global float *to = partial + ((k + i) * shape.c + c + j) * shape.filter;
            for (int tap = 0; tap < shape.filter; ++tap) {
                to[tap] = lane_sum(sums[tap * 4 + i * 2 + j]);
            }
        }
    }
}

__kernel
void bwd_weight_tile(
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    scratch += scratch_offset;
    const long item = get_group_id(0);
    const int c = item % shape.c_blocks * 2;
    const int k = item / shape.c_blocks % shape.k_blocks * 2;
    const long share = item / shape.c_blocks / shape.k_blocks;
    __global const half *dy = ((__global half *)(scratch + shape.dy_offset)) + k * shape.dy_channel_stride;
    __global const half *x = ((__global half *)(scratch + shape.x_offset)) + c * shape.x_channel_stride;
    const long vectors = (batch * shape.dy_image_stride + 15) / 16;
    const long segments = (vectors + shape.segment - 1) / shape.segment;
    const long first = segments * share / shape.split_k;
    const long end = segments * (share + 1) / shape.split_k;
    float16 sums[196];
    for (int i = 0; i < shape.filter * 4; ++i) {
        sums[i] = 0.0f;
    }
    for (long segment = first; segment < end; ++segment) {
        const long from = segment * shape.segment;
        const int count = min(shape.segment, vectors - from);
        for (int tap = 0; tap < shape.filter; ++tap) {
            const int r = tap / (int)shape.s;
            const int s = tap % (int)shape.s;
            const long shift = r * shape.row_step + s * shape.column_step;
            multiply(dy + from * 16, x + from * 16 + shift, shape.dy_channel_stride, count, sums + tap * 4);
        }
    }
    store_partials(scratch + shape.partials + share * shape.weights, shape, k, c, sums);
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
    bits = select(min(bits, (int)(0x477fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
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
    __global uint *dw_counts, long dw_counts_offset,
    shape_t shape) {
    scratch += scratch_offset;
    dw += dw_offset;
    if (dw_counts)
        dw_counts += dw_counts_offset;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    const long weights = shape.weights;
    __global const float *partial = scratch + shape.partials;
    long i = get_group_id(0) * 32 * 16L;
    const long end = min(i + 32 * 16L, weights);
    for (; i + 16 <= end; i += 16) {
        float16 sum = vload16(0, partial + i);
        for (int share = 1; share < shape.split_k; ++share) {
            sum += vload16(0, partial + share * weights + i);
        }
        store_dw16(dw, i, sum, beta, &tally);
    }
    for (; i < end; ++i) {
        float sum = partial[i];
        for (int share = 1; share < shape.split_k; ++share) {
            sum += partial[share * weights + i];
        }
        store_dw(dw, i, sum, beta, &tally);
    }
    counts_flush(dw_counts, &tally);
}
