/* Step 3: bwd_weight_tile */

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
    long x_channels;
    long x_rows;
    long x_columns;
    long x_start;
    long x_offset;
    long phase_stride;
    long x_counted;
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
    long filter;
    long segment;
    long split_k;
    long k_blocks;
    long c_blocks;
    long tap_blocks;
    long taps;
    long weights;
    long partials;
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

static float16 scaled_dy(float16 v) {
    /* Finite values are clipped at 63.96875. */
    const int16 bits = as_int16(v) & 0x7fffffff;
    const int16 sign = as_int16(v) ^ bits;
    v = as_float16(sign | select(min(bits, (int16)(0x427fe000)), bits, bits >= 0x7f800000));
    return v * 0x1p10f;
}

static float16 load_dy16(__global const float *p, long i) {
    return scaled_dy(vload16(0, p + i));
}

static float16 load_dy_plane(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static void store_dy_plane(__global half *p, int i, float16 v) {
    vstore_half16_rte(v, 0, p + i);
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
    return scaled_dy(vload16(0, row));
}

static void store_dy_short(__global half *p, int at, float16 v, int columns, int to, int end) {
    if (at + 16 <= end) {
        store_dy_plane(p, at, v);
        zero_dy_plane(p, at + 16, to);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore_half8_rte(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore_half4_rte(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore_half2_rte(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        vstore_half_rte(row[done], 0, p + at + done);
    }
    zero_dy_plane(p, at + columns, to);
}

static void store_dy_long(__global const float *p, long i, long total, int step, __global half *plane, int at, int columns, int to) {
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

static void pack_dy_plane(__global const float *p, long i, long total, long row_step, int step, __global half *plane, int at, int rows, int columns, int pitch, int end) {
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
void bwd_weight_tile_pack_dy(
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
    __global half *plane = ((__global half *)(scratch + shape.dy_offset)) + image / shape.images * shape.block_stride + image % shape.images * shape.image_stride + index % channels * shape.channel_stride;
    pack_dy_plane(dy, index * rows * columns, total, columns, 1, plane, shape.dy_start, rows, columns, pitch, end);
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

static float16 read_x16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_x(__global const float *p, long i) {
    return p[i];
}

static float16 rest_of_x(__global const float *p, long i, int count, long total) {
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

static bool is_dense_x(__global const float *p, int count) {
    uint16 above = 0;
    for (int i = 0; i < count; i += 16)
        above = beyond_x(above, read_x16(p, i));
    return is_ordinary_x(above);
}

static bool look_x(seen16_t *seen, __global const float *p, int count) {
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

static void see_x_block(seen16_t *seen, __global const float *p, int count) {
    if (is_dense_x(p, 16) && is_dense_x(p, count)) {
        seen->nonzero += count / 16;
        return;
    }
    if (look_x(seen, p, count))
        return;
    for (int i = 0; i < count; i += 16)
        see_x16(seen, read_x16(p, i));
}

static void see_x_run(seen16_t *seen, __global const float *p, long i, long end, long total) {
    const long whole = i + ((end - i) & ~15L);
    for (; i < whole; i += 256)
        see_x_block(seen, p + i, min(256, (int)(whole - i)));
    if (whole < end)
        see_x16(seen, rest_of_x(p, whole, end - whole, total));
}

/* Elements of a phase's array; from: the input that is the first. */
typedef struct {
    int first, count, from;
} span_t;

static span_t span_of(axis_t a, int phase) {
    const int last = phase + (a.taps - 1 - phase) / a.step * a.step;
    const int rest = phase * a.dilation % a.stride;
    const int first = max(phase * a.dilation / a.stride, (a.pad - rest + a.stride - 1) / a.stride);
    const int end = min(last * a.dilation / a.stride + a.out, (a.in - 1 + a.pad - rest + a.stride) / a.stride);
    const span_t s = {first, max(end - first, 0), rest + a.stride * first - a.pad};
    return s;
}

static float16 scaled_x(float16 v) {
    /* Finite values are clipped at 65504. */
    const int16 bits = as_int16(v) & 0x7fffffff;
    const int16 sign = as_int16(v) ^ bits;
    v = as_float16(sign | select(min(bits, (int16)(0x477fe000)), bits, bits >= 0x7f800000));
    return v;
}

static float16 load_x16(__global const float *p, long i) {
    return scaled_x(vload16(0, p + i));
}

static float16 load_x_plane(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static void store_x_plane(__global half *p, int i, float16 v) {
    vstore_half16_rte(v, 0, p + i);
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

static float16 load_x_even(__global const float *p, long i) {
    const float16 a = vload16(0, p + i);
    i += 16;
    const float16 b = vload16(0, p + i);
    return scaled_x((float16)(a.even, b.even));
}

static float16 load_x_columns(__global const float *p, long i, long total, int step, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (step == 1 && i + 16 <= total) {
        return select((float16)(0.0f), load_x16(p, i), lane < columns);
    }
    if (step == 2 && i + 32 <= total) {
        return select((float16)(0.0f), load_x_even(p, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = p[i];
        i += step;
    }
    return scaled_x(vload16(0, row));
}

static void store_x_short(__global half *p, int at, float16 v, int columns, int to, int end) {
    if (at + 16 <= end) {
        store_x_plane(p, at, v);
        zero_x_plane(p, at + 16, to);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore_half8_rte(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore_half4_rte(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore_half2_rte(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        vstore_half_rte(row[done], 0, p + at + done);
    }
    zero_x_plane(p, at + columns, to);
}

static void store_x_long(__global const float *p, long i, long total, int step, __global half *plane, int at, int columns, int to) {
    const int gap = to - at - columns;
    if (gap > 16)
        zero_x_plane(plane, at + columns, to);
    else if (gap > 0)
        zeros_x(plane, to - 16);
    if (step > 1) {
        for (int j = 0; j < columns; j += 16) {
            const int from = min(j, columns - 16);
            store_x_plane(plane, at + from, load_x_columns(p, i + from * step, total, step, 16));
        }
        return;
    }
    for (int j = 0; j < columns; j += 16) {
        const int from = min(j, columns - 16);
        store_x_plane(plane, at + from, load_x16(p, i + from));
    }
}

static void pack_x_plane(__global const float *p, long i, long total, long row_step, int step, __global half *plane, int at, int rows, int columns, int pitch, int end) {
    rows = columns > 0 ? rows : 0;
    zero_x_plane(plane, 0, rows > 0 ? at : end);
    for (int row = 0; row < rows; ++row) {
        const int to = row + 1 < rows ? at + pitch : end;
        if (columns < 16) {
            store_x_short(plane, at, load_x_columns(p, i, total, step, columns), columns, to, end);
        } else {
            store_x_long(p, i, total, step, plane, at, columns, to);
        }
        i += row_step;
        at += pitch;
    }
}

__kernel
void bwd_weight_tile_pack_x(
    __global const float *x, long x_offset,
    __global uint *x_counts, long x_counts_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    x += x_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    scratch += scratch_offset;
    const long rows = shape.x_rows;
    const long columns = shape.x_columns;
    const long channels = shape.x_channels;
    const long total = batch * channels * rows * columns;
    const int pitch = shape.pitch;
    const long index = get_group_id(0);
    const bool begins_run = index % shape.x_counted == 0;
    if (x_counts && begins_run) {
        seen16_t seen = {0};
        counts_t tally = {0};
        const long from = index * rows * columns;
        const long end = from + shape.x_counted * rows * columns;
        see_x_run(&seen, x, from, min(end, total), total);
        fold16(&tally, &seen);
        counts_flush(x_counts, &tally);
    }
    const long image = index / channels;
    const bool is_last = image + 1 == batch || image % shape.images == shape.images - 1;
    const int end = shape.image_stride + (is_last ? shape.tail : 0);
    __global half *plane = ((__global half *)(scratch + shape.x_offset)) + image / shape.images * shape.block_stride + image % shape.images * shape.image_stride + index % channels * shape.channel_stride;
    const axis_t h = axis_rows(shape);
    const axis_t w = axis_columns(shape);
    for (int i = 0; i < min(h.taps, h.step); ++i) {
        const span_t row = span_of(h, i);
        for (int j = 0; j < min(w.taps, w.step); ++j) {
            const span_t column = span_of(w, j);
            pack_x_plane(x, (index * rows + row.from) * columns + column.from, total, h.stride * columns, w.stride, plane, row.first * pitch + column.first, row.count, column.count, pitch, end);
            plane += shape.phase_stride;
        }
    }
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

static void store_partials(__global float *partial, shape_t shape, int k, int c, int taps, const float16 *sums) {
    const int k_count = min(2, (int)shape.group_k - k);
    const int c_count = min(2, (int)shape.group_c - c);
    for (int i = 0; i < k_count; ++i) {
        for (int j = 0; j < c_count; ++j) {
            __global float *to = partial + ((k + i) * shape.group_c + c + j) * shape.filter;
            for (int tap = 0; tap < taps; ++tap) {
                to[tap] = lane_sum(sums[tap * 4 + i * 2 + j]);
            }
        }
    }
}

static long shift_of(shape_t shape, int tap) {
    const axis_t h = axis_rows(shape);
    const axis_t w = axis_columns(shape);
    const int r = tap / w.taps;
    const int s = tap % w.taps;
    const int phase = r % h.step * min(w.taps, w.step) + s % w.step;
    return phase * shape.phase_stride + r * h.dilation / h.stride * shape.pitch + s * w.dilation / w.stride;
}

__kernel
void bwd_weight_tile(
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    scratch += scratch_offset;
    long item = get_group_id(0);
    const int c = item % shape.c_blocks * 2;
    item /= shape.c_blocks;
    const int k = item % shape.k_blocks * 2;
    item /= shape.k_blocks;
    const int first_tap = item % shape.tap_blocks * shape.taps;
    const int taps = min(shape.taps, shape.filter - first_tap);
    item /= shape.tap_blocks;
    const long group = item % shape.groups;
    const long share = item / shape.groups;
    __global const half *dy = ((__global half *)(scratch + shape.dy_offset)) + (group * shape.group_k + k) * shape.channel_stride;
    __global const half *x = ((__global half *)(scratch + shape.x_offset)) + (group * shape.group_c + c) * shape.channel_stride;
    const long vectors = (batch * shape.image_stride + 15) / 16;
    const long segments = (vectors + shape.segment - 1) / shape.segment;
    const long first = segments * share / shape.split_k;
    const long end = segments * (share + 1) / shape.split_k;
    long shift[49];
    for (int i = 0; i < taps; ++i) {
        shift[i] = shift_of(shape, first_tap + i);
    }
    float16 sums[196];
    for (int i = 0; i < taps * 4; ++i) {
        sums[i] = 0.0f;
    }
    for (long segment = first; segment < end; ++segment) {
        const long from = segment * shape.segment;
        const int count = min(shape.segment, vectors - from);
        for (int tap = 0; tap < taps; ++tap) {
            multiply(dy + from * 16, x + from * 16 + shift[tap], shape.channel_stride, count, sums + tap * 4);
        }
    }
    store_partials(scratch + shape.partials + share * shape.weights + group * shape.group_k * shape.group_c * shape.filter + first_tap, shape, k, c, taps, sums);
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
