/* Step 2: bwd_data_tile */

typedef struct {
    long pitch;
    long image_stride;
    long channel_stride;
    long tail;
    long images;
    long block_stride;
    long dy_channels;
    long dy_rows;
    long dy_columns;
    long dy_start;
    long dy_offset;
    long taps_h;
    long stride_h;
    long dilation_h;
    long pad_h;
    long step_h;
    long taps_w;
    long stride_w;
    long dilation_w;
    long pad_w;
    long step_w;
    long groups;
    long group_c;
    long group_k;
    long x_rows;
    long x_columns;
    long dx_image;
    long dx_row;
    long filter;
    long weights;
    long run;
    long w_counted;
    long k_block;
    long c_blocks;
    long chunks;
    long span;
} shape_t;

/* Rows or columns of the problem. */
typedef struct {
    int in, out, taps, stride, dilation, pad, step;
} axis_t;

static axis_t axis_rows(shape_t shape) {
    const axis_t a = {shape.x_rows, shape.dy_rows, shape.taps_h, shape.stride_h,
                      shape.dilation_h, shape.pad_h, shape.step_h};
    return a;
}

static axis_t axis_columns(shape_t shape) {
    const axis_t a = {shape.x_columns, shape.dy_columns, shape.taps_w, shape.stride_w,
                      shape.dilation_w, shape.pad_w, shape.step_w};
    return a;
}

static float16 load_dy16(__global const float *p, long i) {
    return (vload16(0, p + i));
}

static float16 load_dy_plane(__global const float *p, long i) {
    return vload16(0, p + i);
}

static void store_dy_plane(__global float *p, int i, float16 v) {
    vstore16(v, 0, p + i);
}

static void zeros_dy(__global float *p, int i) {
    vstore16((float16)(0), 0, (__global float *)p + i);
}

static void zero_dy_plane(__global float *p, int from, int to) {
    for (; from + 16 <= to; from += 16) {
        zeros_dy(p, from);
    }
    for (; from < to; ++from) {
        ((__global float *)p)[from] = 0;
    }
}

static float16 load_dy_columns(__global const float *p, long i, long total, int step, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (step == 1 && i + 16 <= total) {
        return select((float16)(0.0f), load_dy16(p, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = p[i];
        i += step;
    }
    return (vload16(0, row));
}

static void store_dy_short(__global float *p, int at, float16 v, int columns, int to, int end) {
    if (at + 16 <= end) {
        store_dy_plane(p, at, v);
        zero_dy_plane(p, at + 16, to);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore8(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore4(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore2(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        p[at + done] = row[done];
    }
    zero_dy_plane(p, at + columns, to);
}

static void store_dy_long(__global const float *p, long i, long total, int step, __global float *plane, int at, int columns, int to) {
    const int gap = to - at - columns;
    if (gap > 16)
        zero_dy_plane(plane, at + columns, to);
    else if (gap > 0)
        zeros_dy(plane, to - 16);
    for (int j = 0; j < columns; j += 16) {
        const int from = min(j, columns - 16);
        store_dy_plane(plane, at + from, load_dy16(p, i + from));
    }
}

static void pack_dy_plane(__global const float *p, long i, long total, long row_step, int step, __global float *plane, int at, int rows, int columns, int pitch, int end) {
    rows = columns > 0 ? rows : 0;
    zero_dy_plane(plane, 0, rows > 0 ? at : end);
    for (int row = 0; row < rows; ++row) {
        const int to = row + 1 < rows ? at + pitch : end;
        if (columns < 16) {
            store_dy_short(plane, at, load_dy_columns(p, i, total, step, columns), columns, to, end);
        } else {
            store_dy_long(p, i, total, step, plane, at, columns, to);
        }
        i += row_step;
        at += pitch;
    }
}

__kernel
void bwd_data_tile_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long rows = shape.dy_rows;
    const long columns = shape.dy_columns;
    const long channels = shape.dy_channels;
    const long total = batch * channels * rows * columns;
    const int pitch = shape.pitch;
    const long index = get_group_id(0);
    const long image = index / channels;
    const bool is_last = image + 1 == batch || image % shape.images == shape.images - 1;
    const int end = shape.image_stride + (is_last ? shape.tail : 0);
    __global float *plane = ((__global float *)(scratch + shape.dy_offset)) + image / shape.images * shape.block_stride + image % shape.images * shape.image_stride + index % channels * shape.channel_stride;
    pack_dy_plane(dy, index * rows * columns, total, columns, 1, plane, shape.dy_start, rows, columns, pitch, end);
}

static float16 load_w16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float load_w(__global const float *p, long i) {
    return p[i];
}

static void copy_run(__global const float *w, long i, long total, __global float *to, int count) {
    const int last = count - 16;
    for (int j = 0; j < last; j += 16) {
        vstore16(load_w16(w, i + j), 0, to + j);
    }
    if (last >= 0) {
        vstore16(load_w16(w, i + last), 0, to + last);
        return;
    }
    float run[16];
    if (i + 16 <= total) {
        vstore16(load_w16(w, i), 0, run);
    } else {
        for (int j = 0; j < count; ++j) {
            run[j] = load_w(w, i + j);
        }
    }
    for (int j = 0; j < count; ++j) {
        to[j] = run[j];
    }
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

static float16 read_w16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_w(__global const float *p, long i) {
    return p[i];
}

static float16 rest_of_w(__global const float *p, long i, int count, long total) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    float rest[16] = {0.0f};
    if (i + 16 <= total)
        return select((float16)(0.0f), read_w16(p, i), lane < count);
    for (int j = 0; j < count; ++j)
        rest[j] = read_w(p, i + j);
    return vload16(0, rest);
}

static bool is_ordinary_w(uint16 above) {
    const int16 other = above > (uint16)(0x7f7fffff - 0x00000001);
    const long2 marks = as_long2(convert_char16(other));
    return !(marks.x | marks.y);
}

static uint16 beyond_w(uint16 above, float16 before) {
    const int16 b = as_int16(before) & 0x7fffffff;
    return max(above, as_uint16(b - 0x00000001));
}

static bool is_dense_w(__global const float *p, int count) {
    uint16 above = 0;
    for (int i = 0; i < count; i += 16)
        above = beyond_w(above, read_w16(p, i));
    return is_ordinary_w(above);
}

static bool look_w(seen16_t *seen, __global const float *p, int count) {
    int16 nonzero = 0;
    uint16 above = 0;
    for (int i = 0; i < count; i += 16) {
        const int16 b = as_int16(read_w16(p, i)) & 0x7fffffff;
        nonzero -= b != 0;
        above = max(above, as_uint16(b != 0 ? b - 0x00000001 : 0));
    }
    if (!is_ordinary_w(above))
        return false;
    seen->nonzero += nonzero;
    return true;
}

static void see_w_block(seen16_t *seen, __global const float *p, int count) {
    if (is_dense_w(p, 16) && is_dense_w(p, count)) {
        seen->nonzero += count / 16;
        return;
    }
    if (look_w(seen, p, count))
        return;
    for (int i = 0; i < count; i += 16)
        see_w16(seen, read_w16(p, i));
}

static void see_w_run(seen16_t *seen, __global const float *p, long i, long end, long total) {
    const long whole = i + ((end - i) & ~15L);
    for (; i < whole; i += 256)
        see_w_block(seen, p + i, min(256, (int)(whole - i)));
    if (whole < end)
        see_w16(seen, rest_of_w(p, whole, end - whole, total));
}

__kernel
void bwd_data_tile_pack_w(
    __global const float *w, long w_offset,
    __global uint *w_counts, long w_counts_offset,
    __global float *scratch, long scratch_offset,
    shape_t shape) {
    w += w_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    scratch += scratch_offset;
    const long items = (shape.group_k + 32 - 1) / 32;
    const long block = get_group_id(0) / items;
    const long first = get_group_id(0) % items * 32;
    const long end = min(first + 32, shape.group_k);
    const long group = block / shape.c_blocks;
    const long c = block % shape.c_blocks * 4;
    const int count = min(4, (int)(shape.group_c - c)) * shape.filter;
    const long total = shape.groups * shape.group_k * shape.group_c * shape.filter;
    const bool begins_run = block % shape.c_blocks % shape.w_counted == 0;
    if (w_counts && begins_run) {
        seen16_t seen = {0};
        counts_t tally = {0};
        const long columns = min(shape.w_counted * 4, shape.group_c - c) * shape.filter;
        for (long k = first; k < end; ++k) {
            const long from = ((group * shape.group_k + k) * shape.group_c + c) * shape.filter;
            see_w_run(&seen, w, from, from + columns, total);
        }
        fold16(&tally, &seen);
        counts_flush(w_counts, &tally);
    }
    for (long k = first; k < end; ++k) {
        const long from = ((group * shape.group_k + k) * shape.group_c + c) * shape.filter;
        __global float *to = scratch + shape.weights + (block * shape.group_k + k) * shape.run;
        copy_run(w, from, total, to, count);
        for (int i = count; i < shape.run; ++i) {
            to[i] = 0.0f;
        }
    }
}

typedef struct {
    int count;
    long weight, shift, weight_step, shift_step;
} taps_t;

/* unit: from row to row of a plane, or 1; weights: of the filter likewise. */
static taps_t taps_of(axis_t a, int phase, long unit, long weights) {
    const int most = min(a.taps, a.step);
    int tap = 0;
    while (tap < most && tap * a.dilation % a.stride != phase)
        ++tap;
    taps_t t;
    t.count = tap < most ? (a.taps - 1 - tap) / a.step + 1 : 0;
    t.weight = tap * weights;
    t.shift = tap * a.dilation / a.stride * unit;
    t.weight_step = a.step * weights;
    t.shift_step = a.step * a.dilation / a.stride * unit;
    return t;
}

__attribute__((noinline))
static void multiply(__global const float *plane, __global const float *weights, taps_t rows, taps_t columns, shape_t shape, int channels, float *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum2_0 = 0.0f;
    float16 sum3_0 = 0.0f;
    for (int k = 0; k < channels; ++k) {
        {
            const long shift = -(0 * rows.shift_step + 0 * columns.shift_step);
            __global const float *a = weights + 0;
            const float16 b0 = load_dy_plane(plane, shift + 0 * 16);
            sum0_0 = a[0 * 1] * b0 + sum0_0;
            sum1_0 = a[1 * 1] * b0 + sum1_0;
            sum2_0 = a[2 * 1] * b0 + sum2_0;
            sum3_0 = a[3 * 1] * b0 + sum3_0;
        }
        plane += shape.channel_stride;
        weights += 4;
    }
    vstore16(vload16(0, sums + 0 * 16 + 0 * 16) + sum0_0, 0, sums + 0 * 16 + 0 * 16);
    vstore16(vload16(0, sums + 1 * 16 + 0 * 16) + sum1_0, 0, sums + 1 * 16 + 0 * 16);
    vstore16(vload16(0, sums + 2 * 16 + 0 * 16) + sum2_0, 0, sums + 2 * 16 + 0 * 16);
    vstore16(vload16(0, sums + 3 * 16 + 0 * 16) + sum3_0, 0, sums + 3 * 16 + 0 * 16);
}

static void sum_phase(__global const float *plane, __global const float *weights, taps_t rows, taps_t columns, shape_t shape, float *sums) {
    for (int j = 0; j < 64; ++j) {
        sums[j] = 0.0f;
    }
    if (rows.count * columns.count == 0)
        return;
    for (long k = 0; k < shape.group_k; k += shape.k_block) {
        multiply(plane - columns.shift + k * shape.channel_stride, weights + columns.weight + k * 4, rows, columns, shape, min(shape.k_block, shape.group_k - k), sums);
    }
}

static const float *interleave(const float *sums, int phases, float *strip) {
    if (phases == 1)
        return sums;
    if (phases == 2) {
        for (int i = 0; i < 16; i += 16) {
            const float16 a = vload16(0, sums + i);
            const float16 b = vload16(0, sums + 64 + i);
            vstore16((float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7), 0, strip + 2 * i);
            vstore16((float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf), 0, strip + 2 * i + 16);
        }
        return strip;
    }
    for (int phase = 0; phase < phases; ++phase) {
        for (int i = 0; i < 16; ++i) {
            strip[i * phases + phase] = sums[phase * 64 + i];
        }
    }
    return strip;
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

typedef struct {
    int image, row, column, rows, images;
} place_t;

static place_t place_of(int position, int rows, int images, shape_t shape) {
    const int image = position / (int)shape.image_stride;
    const int rest = position - image * (int)shape.image_stride;
    const int row = rest / (int)shape.pitch;
    const place_t p = {image, row, rest - row * (int)shape.pitch, rows, images};
    return p;
}

static void store_row(__global half *dx, int column, int count, axis_t w, const float *strip, float beta, counts_t *tally) {
    const int at = column * w.stride - w.pad % w.stride;
    const int from = max(at, 0);
    const int to = min(at + count * w.stride, w.in);
    if (from < to)
        store_dx_run(dx, from, strip + from - at, to - from, beta, tally);
}

static void store_positions(__global half *dx, place_t p, axis_t w, shape_t shape, const float *strip, float beta, counts_t *tally) {
    const int pitch = shape.pitch;
    int image = p.image;
    int row = p.row;
    int column = p.column;
    for (int i = 0; i < 16 && image < p.images;) {
        if (row >= p.rows) {
            i += (int)shape.image_stride - row * pitch - column;
            row = 0;
            ++image;
        } else {
            const int count = min(pitch - column, 16 - i);
            store_row(dx + image * shape.dx_image + row * shape.dx_row, column, count, w, strip + i * w.stride, beta, tally);
            i += count;
            ++row;
        }
        column = 0;
    }
}

__kernel
void bwd_data_tile(
    __global float *scratch, long scratch_offset,
    __global half *dx, long dx_offset,
    float beta,
    int batch,
    __global uint *dx_counts, long dx_counts_offset,
    shape_t shape) {
    scratch += scratch_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    const axis_t h = axis_rows(shape);
    const axis_t w = axis_columns(shape);
    long item = get_group_id(0);
    const long c_block = item % shape.c_blocks;
    item /= shape.c_blocks;
    const int chunk = item % shape.chunks;
    item /= shape.chunks;
    const int phase = item % h.stride;
    item /= h.stride;
    const long group = item % shape.groups;
    const long block = item / shape.groups;
    const int images = min(shape.images, batch - block * shape.images);
    const long c = c_block * 4;
    const int channels = min(4, (int)(shape.group_c - c));
    const int first = (h.pad - phase + h.stride - 1) / h.stride;
    const int top = first * h.stride + phase - h.pad;
    const taps_t rows = taps_of(h, phase, shape.pitch, w.taps);
    __global const float *plane = ((__global float *)(scratch + shape.dy_offset)) + block * shape.block_stride + group * shape.group_k * shape.channel_stride + shape.dy_start + first * shape.pitch + w.pad / w.stride - rows.shift;
    __global const float *weights = scratch + shape.weights + (group * shape.c_blocks + c_block) * shape.group_k * 4 + rows.weight;
    const long pixels = (long)h.in * w.in;
    dx += block * shape.images * shape.dx_image + (group * shape.group_c + c) * pixels + (long)top * w.in;
    taps_t columns[16];
    for (int j = 0; j < w.stride; ++j)
        columns[j] = taps_of(w, j, 1, 1);
    float sums[16 * 64];
    float strip[16 * 16];
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    const int row_count = (h.in - top + h.stride - 1) / h.stride;
    const int begin = chunk * shape.span * 16;
    const int end = min(begin + shape.span * 16, (images - 1) * shape.image_stride + row_count * shape.pitch);
    for (int position = begin; position < end; position += 16) {
        const place_t place = place_of(position, row_count, images, shape);
        for (int j = 0; j < w.stride; ++j) {
            sum_phase(plane + position, weights, rows, columns[j], shape, sums + j * 64);
        }
        for (int j = 0; j < channels; ++j) {
            store_positions(dx + j * pixels, place, w, shape, interleave(sums + j * 16, w.stride, strip), beta, &tally);
        }
    }
    counts_flush(dx_counts, &tally);
}
