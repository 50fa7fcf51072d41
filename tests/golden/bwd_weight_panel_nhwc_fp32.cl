/* Step 3: bwd_weight_panel */

typedef struct {
    long groups;
    long k;
    long k_blocks;
    long positions;
    long dy_block_stride;
    long dy_parts;
    long x_planes;
    long x_plane;
    long x_direct;
    long x_skip;
    long x_top;
    long x_rows;
    long x_panel_rows;
    long x_left;
    long x_columns;
    long x_pitch;
    long x_parts;
    long x_image_stride;
    long x_channel_stride;
    long x_offset;
    long weights;
    long split_k;
    long partials;
    long p;
    long q;
    long segment_images;
    long segment_rows;
    long segment_columns;
    long row_parts;
    long column_parts;
    long c;
    long filter;
    long s;
    long tap_row;
    long tap_column;
    long row_step;
    long column_step;
    long unit_parts;
} shape_t;

static float16 load_dy16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float load_dy(__global const float *p, long i) {
    return p[i];
}

static void store_dy_panel(__global float *p, long i, float16 v) {
    vstore16(v, 0, p + i);
}

static float16 load_dy_few(__global const float *dy, long i, long step, long total) {
    float v[16] = {0.0f};
    for (int j = 0; j < 16 && i + j * step < total; ++j)
        v[j] = load_dy(dy, i + j * step);
    return vload16(0, v);
}

static void copy_dy(__global const float *dy, long i, long channels, long total, __global float *to, long count) {
    for (long j = 0; j < count; ++j) {
        const float16 v = i + 16 <= total ? load_dy16(dy, i) : load_dy_few(dy, i, 1, total);
        store_dy_panel(to, j * 16, v);
        i += channels;
    }
}

static void pack_dy_strip(__global const float *dy, long i, long total, __global float *panel, shape_t shape, long count) {
    const long channels = shape.groups * shape.k;
    for (long b = 0; b < shape.groups * shape.k_blocks; ++b) {
        const long k = b % shape.k_blocks * 16;
        const long from = i + b / shape.k_blocks * shape.k + k;
        __global float *to = panel + b * shape.dy_block_stride;
        for (int v = 0; v < 16 && k + v < shape.k; v += 16)
            copy_dy(dy, from + v, channels, total, to + v, count);
    }
}

__kernel
void bwd_weight_panel_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long part = get_group_id(0) % shape.dy_parts;
    const long piece = get_group_id(0) / shape.dy_parts;
    const long first = shape.positions * part / shape.dy_parts;
    const long end = shape.positions * (part + 1) / shape.dy_parts;
    const long total = batch * shape.groups * shape.k * shape.positions;
    __global float *panels = (__global float *)scratch;
    const long channels = shape.groups * shape.k;
    for (long j = first; j < end; j += 8) {
        pack_dy_strip(dy, (piece * shape.positions + j) * channels, total, panels + (piece * shape.positions + j) * 16, shape, min(8L, end - j));
    }
}

static float read_x(__global const float *p, long i) {
    return p[i];
}

static float16 read_x16(__global const float *p, long i) {
    return vload16(0, p + i);
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
    const int16 other = b > 0x7f7fffff;
    const long2 marks = as_long2(convert_char16(other));
    if (!(marks.x | marks.y))
        return;
    const int16 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static void zero_x(__global float *to, long count) {
    long i = 0;
    for (; i + 16 <= count; i += 16)
        vstore16((float16)(0.0f), 0, to + i);
    for (; i < count; ++i)
        to[i] = 0.0f;
}

static float16 read_x_part(__global const float *x, long i, int count) {
    float part[16] = {0.0f};
    for (int j = 0; j < count; ++j)
        part[j] = read_x(x, i + j);
    return vload16(0, part);
}

static void count_x(__global const float *x, long i, long end, seen16_t *seen) {
    for (; i + 16 <= end; i += 16)
        see_x16(seen, read_x16(x, i));
    if (i < end)
        see_x16(seen, read_x_part(x, i, end - i));
}

static float16 take_x16(float16 v, int counting, seen16_t *seen) {
    if (counting)
        see_x16(seen, v);
    return v;
}

static long copy_x_tail(__global const float *x, long i, long total, __global float *to, long columns, long j, long room, int counting, seen16_t *seen) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int count = columns - j;
    if (room - j >= 16 && i + j + 16 <= total) {
        const float16 v = select((float16)(0.0f), read_x16(x, i + j), lane < count);
        vstore16(take_x16(v, counting, seen), 0, to + j);
        return j + 16;
    }
    if (columns >= 16) {
        const float16 v = read_x16(x, i + columns - 16);
        if (counting)
            see_x16(seen, select((float16)(0.0f), v, lane >= 16 - count));
        vstore16(v, 0, to + columns - 16);
        return columns;
    }
    float part[16];
    vstore16(take_x16(read_x_part(x, i + j, count), counting, seen), 0, part);
    for (int k = 0; k < count; ++k)
        to[j + k] = part[k];
    return columns;
}

static void pack_x_row(__global const float *x, long i, long total, __global float *to, long columns, long length, long room, int counting, seen16_t *seen) {
    long done = 0;
    for (; done + 16 <= columns; done += 16)
        vstore16(take_x16(read_x16(x, i + done), counting, seen), 0, to + done);
    if (done < columns)
        done = copy_x_tail(x, i, total, to, columns, done, room, counting, seen);
    zero_x(to + done, length - done);
}

__kernel
void bwd_weight_panel_pack_x(
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    __global uint *x_counts, long x_counts_offset,
    shape_t shape) {
    x += x_offset;
    scratch += scratch_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    const int counting = x_counts != 0;
    seen16_t seen = { 0 };
    const long part = get_group_id(0) % shape.x_parts;
    const long plane = get_group_id(0) / shape.x_parts;
    const long first = shape.x_panel_rows * part / shape.x_parts;
    const long end = shape.x_panel_rows * (part + 1) / shape.x_parts;
    const long start = plane * shape.x_plane;
    const long total = batch * shape.x_planes * shape.x_plane;
    __global float *to = scratch + shape.x_offset + plane / shape.x_planes * shape.x_image_stride + plane % shape.x_planes * shape.x_channel_stride + first * shape.x_pitch;
    zero_x(to, shape.x_left);
    to += shape.x_left;
    long room = (end - first) * shape.x_pitch - shape.x_left;
    for (long i = first; i < end; ++i) {
        const long row = i * shape.x_skip - shape.x_top;
        const long length = min(shape.x_pitch, room);
        if (row < 0 || row >= shape.x_rows)
            zero_x(to, length);
        else
            pack_x_row(x, start + row * shape.x_columns, total, to, shape.x_columns, length, room, counting, &seen);
        if (counting) {
            const long skipped = max(row + 1, 0L) * shape.x_columns;
            const long next = i + 1 < shape.x_panel_rows ? min(row + shape.x_skip, shape.x_rows) * shape.x_columns : shape.x_plane;
            count_x(x, start + skipped, start + next, &seen);
        }
        to += shape.x_pitch;
        room -= shape.x_pitch;
    }
    if (counting) {
        counts_t tally = { 0 };
        fold16(&tally, &seen);
        counts_flush(x_counts, &tally);
    }
}

typedef struct {
    long image, row, column;
    int images, rows, columns;
} segment_t;

static long segment_count(shape_t shape, int batch) {
    return (batch + shape.segment_images - 1) / shape.segment_images * shape.row_parts * shape.column_parts;
}

static segment_t segment_at(shape_t shape, long i, int batch) {
    segment_t s;
    s.column = i % shape.column_parts * shape.segment_columns;
    i /= shape.column_parts;
    s.row = i % shape.row_parts * shape.segment_rows;
    s.image = i / shape.row_parts * shape.segment_images;
    s.images = min(shape.segment_images, batch - s.image);
    s.rows = min(shape.segment_rows, shape.p - s.row);
    s.columns = min(shape.segment_columns, shape.q - s.column);
    return s;
}

static void multiply(__global const float *dy, __global const float *x, const long *offset, shape_t shape, segment_t s, float16 *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum2_0 = 0.0f;
    float16 sum3_0 = 0.0f;
    __global const float *x0 = x + offset[0];
    __global const float *x1 = x + offset[1];
    __global const float *x2 = x + offset[2];
    __global const float *x3 = x + offset[3];
    for (int image = 0; image < s.images; ++image) {
        for (int row = 0; row < s.rows; ++row) {
            long at = image * shape.x_image_stride + row * shape.row_step;
            const long end = at + s.columns * shape.column_step;
            for (; at < end; at += shape.column_step) {
                const float16 dy0 = vload16(0, dy);
                sum0_0 = x0[at] * dy0 + sum0_0;
                sum1_0 = x1[at] * dy0 + sum1_0;
                sum2_0 = x2[at] * dy0 + sum2_0;
                sum3_0 = x3[at] * dy0 + sum3_0;
                dy += 16;
            }
        }
    }
    sums[0] += sum0_0;
    sums[1] += sum1_0;
    sums[2] += sum2_0;
    sums[3] += sum3_0;
}

static long weight_offset(shape_t shape, long channel, long i) {
    const long tap = i / shape.c;
    channel += i % shape.c;
    return channel * shape.x_channel_stride + tap / shape.s * shape.tap_row + tap % shape.s * shape.tap_column;
}

static void add_segment(__global const float *dy, __global const float *x, const long *offset, shape_t shape, segment_t s, int units, float16 *sums) {
    dy += ((s.image * shape.p + s.row) * shape.q + s.column) * 16;
    x += s.image * shape.x_image_stride + s.row * shape.row_step + s.column * shape.column_step;
    for (int i = 0; i < units; ++i)
        multiply(dy, x, offset + i * 4, shape, s, sums + i * 4);
}

/*
 * 16 x 16 floats transposed in registers. Seen as one row of 256 elements,
 * each of four steps moves the element at i to the place that i's eight bits,
 * rotated by one, name; after four of them rows and columns have changed
 * places. Every value has a name of its own: from an array, PoCL's compiler
 * would keep them in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void transpose16(float16 *rows)
{
    const float16 s0_0 = (float16)(rows[0].even, rows[1].even);
    const float16 s0_8 = (float16)(rows[0].odd, rows[1].odd);
    const float16 s0_1 = (float16)(rows[2].even, rows[3].even);
    const float16 s0_9 = (float16)(rows[2].odd, rows[3].odd);
    const float16 s0_2 = (float16)(rows[4].even, rows[5].even);
    const float16 s0_10 = (float16)(rows[4].odd, rows[5].odd);
    const float16 s0_3 = (float16)(rows[6].even, rows[7].even);
    const float16 s0_11 = (float16)(rows[6].odd, rows[7].odd);
    const float16 s0_4 = (float16)(rows[8].even, rows[9].even);
    const float16 s0_12 = (float16)(rows[8].odd, rows[9].odd);
    const float16 s0_5 = (float16)(rows[10].even, rows[11].even);
    const float16 s0_13 = (float16)(rows[10].odd, rows[11].odd);
    const float16 s0_6 = (float16)(rows[12].even, rows[13].even);
    const float16 s0_14 = (float16)(rows[12].odd, rows[13].odd);
    const float16 s0_7 = (float16)(rows[14].even, rows[15].even);
    const float16 s0_15 = (float16)(rows[14].odd, rows[15].odd);
    const float16 s1_0 = (float16)(s0_0.even, s0_1.even);
    const float16 s1_8 = (float16)(s0_0.odd, s0_1.odd);
    const float16 s1_1 = (float16)(s0_2.even, s0_3.even);
    const float16 s1_9 = (float16)(s0_2.odd, s0_3.odd);
    const float16 s1_2 = (float16)(s0_4.even, s0_5.even);
    const float16 s1_10 = (float16)(s0_4.odd, s0_5.odd);
    const float16 s1_3 = (float16)(s0_6.even, s0_7.even);
    const float16 s1_11 = (float16)(s0_6.odd, s0_7.odd);
    const float16 s1_4 = (float16)(s0_8.even, s0_9.even);
    const float16 s1_12 = (float16)(s0_8.odd, s0_9.odd);
    const float16 s1_5 = (float16)(s0_10.even, s0_11.even);
    const float16 s1_13 = (float16)(s0_10.odd, s0_11.odd);
    const float16 s1_6 = (float16)(s0_12.even, s0_13.even);
    const float16 s1_14 = (float16)(s0_12.odd, s0_13.odd);
    const float16 s1_7 = (float16)(s0_14.even, s0_15.even);
    const float16 s1_15 = (float16)(s0_14.odd, s0_15.odd);
    const float16 s2_0 = (float16)(s1_0.even, s1_1.even);
    const float16 s2_8 = (float16)(s1_0.odd, s1_1.odd);
    const float16 s2_1 = (float16)(s1_2.even, s1_3.even);
    const float16 s2_9 = (float16)(s1_2.odd, s1_3.odd);
    const float16 s2_2 = (float16)(s1_4.even, s1_5.even);
    const float16 s2_10 = (float16)(s1_4.odd, s1_5.odd);
    const float16 s2_3 = (float16)(s1_6.even, s1_7.even);
    const float16 s2_11 = (float16)(s1_6.odd, s1_7.odd);
    const float16 s2_4 = (float16)(s1_8.even, s1_9.even);
    const float16 s2_12 = (float16)(s1_8.odd, s1_9.odd);
    const float16 s2_5 = (float16)(s1_10.even, s1_11.even);
    const float16 s2_13 = (float16)(s1_10.odd, s1_11.odd);
    const float16 s2_6 = (float16)(s1_12.even, s1_13.even);
    const float16 s2_14 = (float16)(s1_12.odd, s1_13.odd);
    const float16 s2_7 = (float16)(s1_14.even, s1_15.even);
    const float16 s2_15 = (float16)(s1_14.odd, s1_15.odd);
    const float16 s3_0 = (float16)(s2_0.even, s2_1.even);
    const float16 s3_8 = (float16)(s2_0.odd, s2_1.odd);
    const float16 s3_1 = (float16)(s2_2.even, s2_3.even);
    const float16 s3_9 = (float16)(s2_2.odd, s2_3.odd);
    const float16 s3_2 = (float16)(s2_4.even, s2_5.even);
    const float16 s3_10 = (float16)(s2_4.odd, s2_5.odd);
    const float16 s3_3 = (float16)(s2_6.even, s2_7.even);
    const float16 s3_11 = (float16)(s2_6.odd, s2_7.odd);
    const float16 s3_4 = (float16)(s2_8.even, s2_9.even);
    const float16 s3_12 = (float16)(s2_8.odd, s2_9.odd);
    const float16 s3_5 = (float16)(s2_10.even, s2_11.even);
    const float16 s3_13 = (float16)(s2_10.odd, s2_11.odd);
    const float16 s3_6 = (float16)(s2_12.even, s2_13.even);
    const float16 s3_14 = (float16)(s2_12.odd, s2_13.odd);
    const float16 s3_7 = (float16)(s2_14.even, s2_15.even);
    const float16 s3_15 = (float16)(s2_14.odd, s2_15.odd);
    rows[0] = s3_0;
    rows[1] = s3_1;
    rows[2] = s3_2;
    rows[3] = s3_3;
    rows[4] = s3_4;
    rows[5] = s3_5;
    rows[6] = s3_6;
    rows[7] = s3_7;
    rows[8] = s3_8;
    rows[9] = s3_9;
    rows[10] = s3_10;
    rows[11] = s3_11;
    rows[12] = s3_12;
    rows[13] = s3_13;
    rows[14] = s3_14;
    rows[15] = s3_15;
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_dw16(__global float *p, long i,
    float16 value, float beta) {
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    vstore16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_dw16(__global float *p, long i, long step,
    int count, float16 value, float beta) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_dw(p, i + lane * step, v[lane], beta);
}

static void put_dw16(__global float *p, long i, long step, int count,
    float16 value, float beta) {
    if (step == 1 && count >= 16)
        store_dw16(p, i, value, beta);
    else
        scatter_dw16(p, i, step, min(count, 16), value, beta);
}

static void store_square(float16 *square, int weights, int channels, __global float *dw, long at, long step, float beta) {
    transpose16(square);
    float rows[256];
    #pragma unroll
    for (int i = 0; i < 16; ++i)
        vstore16(square[i], i, rows);
    for (int i = 0; i < channels; ++i)
        put_dw16(dw, at + i * step, 1, weights, vload16(i, rows), beta);
}

static void store_sums(const float16 *sums, int count, int channels, __global float *dw, long at, long step, float beta) {
    for (int v = 0; v < 1; ++v) {
        for (int i = 0; i < count; i += 16) {
            float16 square[16];
            #pragma unroll
            for (int j = 0; j < 16; ++j)
                square[j] = sums[min(i + j, count - 1) * 1 + v];
            store_square(square, min(16, count - i), min(16, channels - v * 16), dw, at + v * 16 * step + i, step, beta);
        }
    }
}

static void sum_square(__global const float *partial, shape_t shape, int weights, int channels, __global float *dw, long at, float beta) {
    const long share_stride = shape.groups * shape.k_blocks * shape.weights * 16;
    float16 square[16];
    #pragma unroll
    for (int i = 0; i < 16; ++i)
        square[i] = vload16(0, partial + min(i, weights - 1) * 16);
    for (int share = 1; share < shape.split_k; ++share) {
        partial += share_stride;
        #pragma unroll
        for (int i = 0; i < 16; ++i)
            square[i] += vload16(0, partial + min(i, weights - 1) * 16);
    }
    store_square(square, weights, channels, dw, at, shape.weights, beta);
}

__kernel
void bwd_weight_panel(
    __global float *scratch, long scratch_offset,
    __global const float *x, long x_offset,
    __global float *dw, long dw_offset,
    float beta,
    int batch,
    shape_t shape) {
    scratch += scratch_offset;
    x += x_offset;
    dw += dw_offset;
    const long part = get_group_id(0) % shape.unit_parts;
    const long rest = get_group_id(0) / shape.unit_parts;
    const long blocks = shape.groups * shape.k_blocks;
    const long block = rest % blocks;
    const long share = rest / blocks;
    const long all_units = (shape.weights + 4 - 1) / 4;
    const long unit = all_units * part / shape.unit_parts;
    const int units = all_units * (part + 1) / shape.unit_parts - unit;
    const long weight = unit * 4;
    const long channel = block / shape.k_blocks * shape.c;
    long offset[96];
    for (int i = 0; i < units * 4; ++i)
        offset[i] = weight_offset(shape, channel, min(weight + i, shape.weights - 1));
    float16 sums[96];
    for (int i = 0; i < units * 4; ++i)
        sums[i] = 0.0f;
    __global const float *dy = (__global const float *)scratch + block * shape.dy_block_stride;
    __global const float *panels = scratch + shape.x_offset;
    panels = shape.x_direct ? x : panels;
    const long segments = segment_count(shape, batch);
    const long first = segments * share / shape.split_k;
    const long end = segments * (share + 1) / shape.split_k;
    for (long i = first; i < end; ++i)
        add_segment(dy, panels, offset, shape, segment_at(shape, i, batch), units, sums);
    const int count = min((long)units * 4, shape.weights - weight);
    if (shape.split_k == 1) {
        const long k = block % shape.k_blocks * 16;
        const long row = block / shape.k_blocks * shape.k + k;
        store_sums(sums, count, min(16L, shape.k - k), dw, row * shape.weights + weight, shape.weights, beta);
    } else {
        __global float *partial = scratch + shape.partials + ((share * shape.groups * shape.k_blocks + block) * shape.weights + weight) * 16;
        for (int i = 0; i < count * 1; ++i)
            vstore16(sums[i], i, partial);
    }
}

__kernel
void bwd_weight_panel_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta,
    shape_t shape) {
    scratch += scratch_offset;
    dw += dw_offset;
    const long parts = (shape.weights + 512 - 1) / 512;
    const long first = get_group_id(0) % parts * 512;
    const long end = min(first + 512, shape.weights);
    const long v = get_group_id(0) / parts % 1;
    const long block = get_group_id(0) / parts / 1;
    const long k = block % shape.k_blocks * 16 + v * 16;
    const int channels = min(16L, shape.k - k);
    const long row = block / shape.k_blocks * shape.k + k;
    __global const float *partial = scratch + shape.partials + block * shape.weights * 16 + v * 16;
    for (long i = first; i < end; i += 16)
        sum_square(partial + i * 16, shape, min(16L, end - i), channels, dw, row * shape.weights + i, beta);
}
