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

static float16 load_dy_short(__global const float *dy, long i, long total, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (i + 16 <= total) {
        return select((float16)(0.0f), load_dy16(dy, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = load_dy(dy, i + j);
    }
    return vload16(0, row);
}

static void store_dy_short(__global float *to, float16 v, int columns, long room) {
    if (room >= 16) {
        vstore16(v, 0, to);
        return;
    }
    float row[16];
    vstore16(v, 0, row);
    for (int j = 0; j < columns; ++j) {
        to[j] = row[j];
    }
}

static void pack_row(__global const float *dy, long from, __global float *to,
    int channels, shape_t shape) {
    const int columns = shape.q;
    const long plane = shape.p * columns;
    const long total = shape.batch * shape.groups * shape.group_k * plane;
    const long width = shape.dy_channel;
    const long room = shape.dy_row - shape.left;
    for (int k = 0; k < channels; ++k) {
        if (columns < 16) {
            store_dy_short(to + k * width, load_dy_short(dy, from + k * plane, total, columns), columns, room - k * width);
        } else {
            copy_dy(dy, from + k * plane, to + k * width, columns);
        }
    }
}

__kernel
void bwd_data_panel_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long block = shape.dy_row / shape.dy_channel;
    const long blocks = shape.dy_group / shape.dy_block;
    const long chunks = (shape.dy_rows + 32 - 1) / 32;
    const long start = get_group_id(0) % chunks * 32;
    const long end = min(start + 32, shape.dy_rows);
    const long item = get_group_id(0) / chunks;
    const long first = item % blocks * block;
    const int channels = min(block, shape.group_k - first);
    const long from = (item / blocks * shape.group_k + first) * shape.p;
    __global float *to = scratch + item * shape.dy_block;
    for (long i = start; i < end; ++i) {
        const long row = i - shape.top;
        __global float *at = to + i * shape.dy_row;
        zero(at, 0, shape.dy_row);
        if (row >= 0 && row < shape.p)
            pack_row(dy, (from + row) * shape.q, at + shape.left, channels, shape);
    }
}

static float16 read_w16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_w(__global const float *p, long i) {
    return p[i];
}

static float16 round_w16(float16 v) {
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

static void store_panel(__global half *p, long i, float16 v, int counting, seen16_t *seen) {
    if (counting)
        see_w16(seen, v);
    vstore_half16(round_w16(v), 0, p + i);
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

static void copy_block(__global const float *w, long from, long step, long channels, __global half *panel, long first, long end, int counting, seen16_t *seen) {
    for (long k = first; k < end; ++k) {
        store_panel(panel, k * 16, read_w_part(w, from + k * step, channels), counting, seen);
    }
}

static void pick_taps(__global const float *w, long from, long k_step, int k_count,
    long taps, int count, long channels, __global half *panel,
    long step, int counting, seen16_t *seen) {
    for (int i = 0; i < count * k_count; ++i) {
        const int t = i / k_count;
        const int k = i % k_count;
        float part[16] = {0.0f};
        for (int c = 0; c < 16 && c < (int)channels; ++c) {
            part[c] = read_w(w, from + k * k_step + c * taps + t);
        }
        store_panel(panel, t * step + k * 16, vload16(0, part), counting, seen);
    }
}

static void transpose_w(__global const float *from, long from_step, float *to, int to_step) {
    const float16 a0 = vload16(0, from + 0 * from_step);
    const float16 a1 = vload16(0, from + 1 * from_step);
    const float16 a2 = vload16(0, from + 2 * from_step);
    const float16 a3 = vload16(0, from + 3 * from_step);
    const float16 a4 = vload16(0, from + 4 * from_step);
    const float16 a5 = vload16(0, from + 5 * from_step);
    const float16 a6 = vload16(0, from + 6 * from_step);
    const float16 a7 = vload16(0, from + 7 * from_step);
    const float16 a8 = vload16(0, from + 8 * from_step);
    const float16 a9 = vload16(0, from + 9 * from_step);
    const float16 a10 = vload16(0, from + 10 * from_step);
    const float16 a11 = vload16(0, from + 11 * from_step);
    const float16 a12 = vload16(0, from + 12 * from_step);
    const float16 a13 = vload16(0, from + 13 * from_step);
    const float16 a14 = vload16(0, from + 14 * from_step);
    const float16 a15 = vload16(0, from + 15 * from_step);
    const float16 b0 = (float16)(a0.even, a1.even);
    const float16 b8 = (float16)(a0.odd, a1.odd);
    const float16 b1 = (float16)(a2.even, a3.even);
    const float16 b9 = (float16)(a2.odd, a3.odd);
    const float16 b2 = (float16)(a4.even, a5.even);
    const float16 b10 = (float16)(a4.odd, a5.odd);
    const float16 b3 = (float16)(a6.even, a7.even);
    const float16 b11 = (float16)(a6.odd, a7.odd);
    const float16 b4 = (float16)(a8.even, a9.even);
    const float16 b12 = (float16)(a8.odd, a9.odd);
    const float16 b5 = (float16)(a10.even, a11.even);
    const float16 b13 = (float16)(a10.odd, a11.odd);
    const float16 b6 = (float16)(a12.even, a13.even);
    const float16 b14 = (float16)(a12.odd, a13.odd);
    const float16 b7 = (float16)(a14.even, a15.even);
    const float16 b15 = (float16)(a14.odd, a15.odd);
    const float16 c0 = (float16)(b0.even, b1.even);
    const float16 c8 = (float16)(b0.odd, b1.odd);
    const float16 c1 = (float16)(b2.even, b3.even);
    const float16 c9 = (float16)(b2.odd, b3.odd);
    const float16 c2 = (float16)(b4.even, b5.even);
    const float16 c10 = (float16)(b4.odd, b5.odd);
    const float16 c3 = (float16)(b6.even, b7.even);
    const float16 c11 = (float16)(b6.odd, b7.odd);
    const float16 c4 = (float16)(b8.even, b9.even);
    const float16 c12 = (float16)(b8.odd, b9.odd);
    const float16 c5 = (float16)(b10.even, b11.even);
    const float16 c13 = (float16)(b10.odd, b11.odd);
    const float16 c6 = (float16)(b12.even, b13.even);
    const float16 c14 = (float16)(b12.odd, b13.odd);
    const float16 c7 = (float16)(b14.even, b15.even);
    const float16 c15 = (float16)(b14.odd, b15.odd);
    const float16 d0 = (float16)(c0.even, c1.even);
    const float16 d8 = (float16)(c0.odd, c1.odd);
    const float16 d1 = (float16)(c2.even, c3.even);
    const float16 d9 = (float16)(c2.odd, c3.odd);
    const float16 d2 = (float16)(c4.even, c5.even);
    const float16 d10 = (float16)(c4.odd, c5.odd);
    const float16 d3 = (float16)(c6.even, c7.even);
    const float16 d11 = (float16)(c6.odd, c7.odd);
    const float16 d4 = (float16)(c8.even, c9.even);
    const float16 d12 = (float16)(c8.odd, c9.odd);
    const float16 d5 = (float16)(c10.even, c11.even);
    const float16 d13 = (float16)(c10.odd, c11.odd);
    const float16 d6 = (float16)(c12.even, c13.even);
    const float16 d14 = (float16)(c12.odd, c13.odd);
    const float16 d7 = (float16)(c14.even, c15.even);
    const float16 d15 = (float16)(c14.odd, c15.odd);
    const float16 e0 = (float16)(d0.even, d1.even);
    const float16 e8 = (float16)(d0.odd, d1.odd);
    const float16 e1 = (float16)(d2.even, d3.even);
    const float16 e9 = (float16)(d2.odd, d3.odd);
    const float16 e2 = (float16)(d4.even, d5.even);
    const float16 e10 = (float16)(d4.odd, d5.odd);
    const float16 e3 = (float16)(d6.even, d7.even);
    const float16 e11 = (float16)(d6.odd, d7.odd);
    const float16 e4 = (float16)(d8.even, d9.even);
    const float16 e12 = (float16)(d8.odd, d9.odd);
    const float16 e5 = (float16)(d10.even, d11.even);
    const float16 e13 = (float16)(d10.odd, d11.odd);
    const float16 e6 = (float16)(d12.even, d13.even);
    const float16 e14 = (float16)(d12.odd, d13.odd);
    const float16 e7 = (float16)(d14.even, d15.even);
    const float16 e15 = (float16)(d14.odd, d15.odd);
    vstore16(e0, 0, to + 0 * to_step);
    vstore16(e1, 0, to + 1 * to_step);
    vstore16(e2, 0, to + 2 * to_step);
    vstore16(e3, 0, to + 3 * to_step);
    vstore16(e4, 0, to + 4 * to_step);
    vstore16(e5, 0, to + 5 * to_step);
    vstore16(e6, 0, to + 6 * to_step);
    vstore16(e7, 0, to + 7 * to_step);
    vstore16(e8, 0, to + 8 * to_step);
    vstore16(e9, 0, to + 9 * to_step);
    vstore16(e10, 0, to + 10 * to_step);
    vstore16(e11, 0, to + 11 * to_step);
    vstore16(e12, 0, to + 12 * to_step);
    vstore16(e13, 0, to + 13 * to_step);
    vstore16(e14, 0, to + 14 * to_step);
    vstore16(e15, 0, to + 15 * to_step);
}

static void turn_taps(__global const float *w, long from, long k_step, int k_count,
    long taps, int count, __global half *panel,
    long step, int counting, seen16_t *seen) {
    float turned[8 * 256];
    for (int k = 0; k < k_count; ++k)
        transpose_w(w + from + k * k_step, taps, turned + k * 256, 16);
    for (int t = 0; t < count; ++t) {
        for (int k = 0; k < k_count; ++k) {
            store_panel(panel, t * step + k * 16, vload16(k * 16 + t, turned), counting, seen);
        }
    }
}

static void copy_taps(__global const float *w, long from, long k_step, int k_count,
    long taps, long channels, long total, __global half *panel,
    long step, int counting, seen16_t *seen) {
    for (long t = 0; t < taps; t += 16) {
        const int count = min(taps - t, 16L);
        const long last = from + (k_count - 1) * k_step + 15 * taps + t;
        if (channels >= 16 && last + 16 <= total)
            turn_taps(w, from + t, k_step, k_count, taps, count, panel + t * step, step, counting, seen);
        else
            pick_taps(w, from + t, k_step, k_count, taps, count, channels, panel + t * step, step, counting, seen);
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
    const long item = get_group_id(0) / shape.c_blocks;
    const long rest = get_group_id(0) % shape.c_blocks;
    const long k_blocks = (shape.group_k + 8 - 1) / 8;
    const long group = item / k_blocks;
    const long first = item % k_blocks * 8;
    const long end = min(first + 8, shape.group_k);
    const long taps = shape.r * shape.s;
    const long block = taps * shape.group_k * 16;
    const long start = group * shape.group_k;
    __global half *panels = (__global half *)(scratch + shape.weights) + group * shape.c_blocks * block;
    const long c = rest * 16;
    const long channels = shape.group_c - c;
    const long total = shape.groups * shape.group_k * shape.group_c * taps;
    panels += rest * block;
    if (taps == 1) {
        copy_block(w, start * shape.group_c + c, shape.group_c, channels, panels, first, end, counting, &seen);
    } else {
        const long k_step = shape.group_c * taps;
        const long from = (start + first) * k_step + c * taps;
        copy_taps(w, from, k_step, end - first, taps, channels, total, panels + first * 16, shape.group_k * 16, counting, &seen);
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

static void store_dx16(__global float *p, long i,
    float16 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    vstore16(value, 0, p + i);
}

static void store_dx8(__global float *p, long i,
    float8 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload8(0, p + i);
    }
    vstore8(value, 0, p + i);
}

static void store_dx4(__global float *p, long i,
    float4 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload4(0, p + i);
    }
    vstore4(value, 0, p + i);
}

static void store_dx2(__global float *p, long i,
    float2 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload2(0, p + i);
    }
    vstore2(value, 0, p + i);
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_dx_run(__global float *p, long i,
    const float *values, int count, float beta) {
    for (; count >= 16; count -= 16) {
        store_dx16(p, i, vload16(0, values), beta);
        i += 16;
        values += 16;
    }
    if (count & 8) {
        store_dx8(p, i, vload8(0, values), beta);
        i += 8;
        values += 8;
    }
    if (count & 4) {
        store_dx4(p, i, vload4(0, values), beta);
        i += 4;
        values += 4;
    }
    if (count & 2) {
        store_dx2(p, i, vload2(0, values), beta);
        i += 2;
        values += 2;
    }
    if (count & 1) {
        store_dx(p, i, *values, beta);
        i += 1;
        values += 1;
    }
}

static void transpose16(const float16 *from, long from_step, float *to, int to_step) {
    const float16 a0 = *(from + 0 * from_step);
    const float16 a1 = *(from + 1 * from_step);
    const float16 a2 = *(from + 2 * from_step);
    const float16 a3 = *(from + 3 * from_step);
    const float16 a4 = *(from + 4 * from_step);
    const float16 a5 = *(from + 5 * from_step);
    const float16 a6 = *(from + 6 * from_step);
    const float16 a7 = *(from + 7 * from_step);
    const float16 a8 = *(from + 8 * from_step);
    const float16 a9 = *(from + 9 * from_step);
    const float16 a10 = *(from + 10 * from_step);
    const float16 a11 = *(from + 11 * from_step);
    const float16 a12 = *(from + 12 * from_step);
    const float16 a13 = *(from + 13 * from_step);
    const float16 a14 = *(from + 14 * from_step);
    const float16 a15 = *(from + 15 * from_step);
    const float16 b0 = (float16)(a0.even, a1.even);
    const float16 b8 = (float16)(a0.odd, a1.odd);
    const float16 b1 = (float16)(a2.even, a3.even);
    const float16 b9 = (float16)(a2.odd, a3.odd);
    const float16 b2 = (float16)(a4.even, a5.even);
    const float16 b10 = (float16)(a4.odd, a5.odd);
    const float16 b3 = (float16)(a6.even, a7.even);
    const float16 b11 = (float16)(a6.odd, a7.odd);
    const float16 b4 = (float16)(a8.even, a9.even);
    const float16 b12 = (float16)(a8.odd, a9.odd);
    const float16 b5 = (float16)(a10.even, a11.even);
    const float16 b13 = (float16)(a10.odd, a11.odd);
    const float16 b6 = (float16)(a12.even, a13.even);
    const float16 b14 = (float16)(a12.odd, a13.odd);
    const float16 b7 = (float16)(a14.even, a15.even);
    const float16 b15 = (float16)(a14.odd, a15.odd);
    const float16 c0 = (float16)(b0.even, b1.even);
    const float16 c8 = (float16)(b0.odd, b1.odd);
    const float16 c1 = (float16)(b2.even, b3.even);
    const float16 c9 = (float16)(b2.odd, b3.odd);
    const float16 c2 = (float16)(b4.even, b5.even);
    const float16 c10 = (float16)(b4.odd, b5.odd);
    const float16 c3 = (float16)(b6.even, b7.even);
    const float16 c11 = (float16)(b6.odd, b7.odd);
    const float16 c4 = (float16)(b8.even, b9.even);
    const float16 c12 = (float16)(b8.odd, b9.odd);
    const float16 c5 = (float16)(b10.even, b11.even);
    const float16 c13 = (float16)(b10.odd, b11.odd);
    const float16 c6 = (float16)(b12.even, b13.even);
    const float16 c14 = (float16)(b12.odd, b13.odd);
    const float16 c7 = (float16)(b14.even, b15.even);
    const float16 c15 = (float16)(b14.odd, b15.odd);
    const float16 d0 = (float16)(c0.even, c1.even);
    const float16 d8 = (float16)(c0.odd, c1.odd);
    const float16 d1 = (float16)(c2.even, c3.even);
    const float16 d9 = (float16)(c2.odd, c3.odd);
    const float16 d2 = (float16)(c4.even, c5.even);
    const float16 d10 = (float16)(c4.odd, c5.odd);
    const float16 d3 = (float16)(c6.even, c7.even);
    const float16 d11 = (float16)(c6.odd, c7.odd);
    const float16 d4 = (float16)(c8.even, c9.even);
    const float16 d12 = (float16)(c8.odd, c9.odd);
    const float16 d5 = (float16)(c10.even, c11.even);
    const float16 d13 = (float16)(c10.odd, c11.odd);
    const float16 d6 = (float16)(c12.even, c13.even);
    const float16 d14 = (float16)(c12.odd, c13.odd);
    const float16 d7 = (float16)(c14.even, c15.even);
    const float16 d15 = (float16)(c14.odd, c15.odd);
    const float16 e0 = (float16)(d0.even, d1.even);
    const float16 e8 = (float16)(d0.odd, d1.odd);
    const float16 e1 = (float16)(d2.even, d3.even);
    const float16 e9 = (float16)(d2.odd, d3.odd);
    const float16 e2 = (float16)(d4.even, d5.even);
    const float16 e10 = (float16)(d4.odd, d5.odd);
    const float16 e3 = (float16)(d6.even, d7.even);
    const float16 e11 = (float16)(d6.odd, d7.odd);
    const float16 e4 = (float16)(d8.even, d9.even);
    const float16 e12 = (float16)(d8.odd, d9.odd);
    const float16 e5 = (float16)(d10.even, d11.even);
    const float16 e13 = (float16)(d10.odd, d11.odd);
    const float16 e6 = (float16)(d12.even, d13.even);
    const float16 e14 = (float16)(d12.odd, d13.odd);
    const float16 e7 = (float16)(d14.even, d15.even);
    const float16 e15 = (float16)(d14.odd, d15.odd);
    vstore16(e0, 0, to + 0 * to_step);
    vstore16(e1, 0, to + 1 * to_step);
    vstore16(e2, 0, to + 2 * to_step);
    vstore16(e3, 0, to + 3 * to_step);
    vstore16(e4, 0, to + 4 * to_step);
    vstore16(e5, 0, to + 5 * to_step);
    vstore16(e6, 0, to + 6 * to_step);
    vstore16(e7, 0, to + 7 * to_step);
    vstore16(e8, 0, to + 8 * to_step);
    vstore16(e9, 0, to + 9 * to_step);
    vstore16(e10, 0, to + 10 * to_step);
    vstore16(e11, 0, to + 11 * to_step);
    vstore16(e12, 0, to + 12 * to_step);
    vstore16(e13, 0, to + 13 * to_step);
    vstore16(e14, 0, to + 14 * to_step);
    vstore16(e15, 0, to + 15 * to_step);
}

static void store_steps(__global float *dx, long i, long step,
    const float *sums, int count, float beta) {
    if (step == 1) {
        store_dx_run(dx, i, sums, count, beta);
    } else {
        for (int j = 0; j < count; ++j) {
            store_dx(dx, i + j * step, sums[j], beta);
        }
    }
}

static void store_tile(__global float *dx, const long *in_dx, int count,
    int channels, shape_t shape, const float16 *sums,
    float beta) {
    float rows[16 * 16];
    for (int i = 0; i < 16 / 16; ++i)
        transpose16(sums + i * 16, 1, rows + i * 16, 16);
    const long step = shape.stride_w;
    for (int first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count; ++last)
            if (in_dx[last] - in_dx[last - 1] != step)
                break;
        for (int j = 0; j < channels; ++j) {
            store_steps(dx, in_dx[first] + j * shape.dx_channel, step, rows + j * 16 + first, last - first, beta);
        }
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
    long offset, __global const half *panel, taps_t taps, int first, int last,
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
        __global const half *panel_tap = panel + r * taps.panel_row + s * taps.panel_column;
        for (int k = 0; k < channels; ++k) {
            const long at = start + steps[k];
            const float16 w = vload_half16(k, panel_tap);
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
    __global const half *panel, shape_t shape, taps_t taps,
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
    __global float *dx, long dx_offset,
    float beta,
    shape_t shape) {
    scratch += scratch_offset;
    dx += dx_offset;
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
    __global const half *panels = (__global const half *)(scratch + shape.weights) + group * shape.c_blocks * block + (r * shape.s + s) * tap;
    long in_dy[8];
    long in_dx[8];
    float16 sums[16];
    long steps[128];
    set_steps(shape, steps);
    for (long j = first_block; j < end_block; ++j) {
        for (long i = start; i < end; i += 8) {
            const int count = place(i, positions, rows, columns, shape, in_dy, in_dx);
            const long c = j * 16;
            sum_tile(dy, in_dy, steps, panels + j * block, shape, taps, sums);
            store_tile(dx + c * shape.dx_channel, in_dx, count, min(16L, shape.group_c - c), shape, sums, beta);
        }
    }
}
