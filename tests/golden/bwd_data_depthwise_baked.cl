/* Step 2: bwd_data_depthwise */

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long r;
    long s;
    long p;
    long q;
    long stride_h;
    long stride_w;
    long pad_top;
    long pad_left;
    long dilation_h;
    long dilation_w;
    long planes;
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long c_blocks;
    long ring;
    long base;
    long block;
    long room;
    long blocks;
    long pitch;
    long band;
    long bands;
    long line;
    long chunk;
    long tap_step_h;
    long tap_step_w;
} shape_t;

typedef struct {
    long n;
} call_t;

/*
 * The first filter tap from r on that a stride lets meet the input at
 * position x (counted from the padding's edge): x - r * dilation must be a
 * multiple of the stride. taps if there is none; r is at most that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
int tap_from(int r, int x, int dilation, int stride, int taps)
{
    if (stride == 1)
        return r;
    while (r < taps && (x - r * dilation) % stride != 0)
        ++r;
    return r;
}

typedef float16 loose16 __attribute__((aligned(4)));

static void keep16(float16 v, float *to) {
    *(loose16 *)to = v;
}

static void clear(float *to, int count) {
    for (int i = 0; i < count; i += 16)
        keep16((float16)(0.0f), to + i);
}

static void split(const float *from, float *to, int count, int step,
    long pitch) {
    if (step == 2) {
        for (int i = 0; i < count; i += 16) {
            const float16 a = vload16(0, from + 2 * i);
            const float16 b = vload16(0, from + 2 * i + 16);
            keep16((float16)(a.even, b.even), to + i);
            keep16((float16)(a.odd, b.odd), to + pitch + i);
        }
        return;
    }
    for (int f = 0; f < step; ++f)
        for (int i = 0; i < count; ++i)
            to[f * pitch + i] = from[i * step + f];
}

static float16 read_dy16(__global const float *p, long i) {
    return vload16(0, p + i);
}

static float read_dy(__global const float *p, long i) {
    return p[i];
}

static float16 rest_of_dy(__global const float *p, long i, int count, long total) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    float rest[16] = {0.0f};
    if (i + 16 <= total)
        return select((float16)(0.0f), read_dy16(p, i), lane < count);
    for (int j = 0; j < count; ++j)
        rest[j] = read_dy(p, i + j);
    return vload16(0, rest);
}

static float16 halve_dy16(float16 v) {
    ushort halves[16];
    vstore_half16_rte(v * 0x1p10f, 0, (half *)halves);
    return vload_half16(0, (const half *)halves);
}

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

static uint16 farther_dy(uint16 beyond, float16 v, int least) {
    const int16 b = as_int16(v) & 0x7fffffff;
    return max(beyond, as_uint16(b - least));
}

static bool is_near_dy(uint16 beyond, int least) {
    const int16 other = beyond > (uint16)(0x427fe000 - least);
    const long2 marks = as_long2(convert_char16(other));
    return !(marks.x | marks.y);
}

static uint16 run_dy(float *to, __global const float *p, long i, int count,
    long end, int least, uint16 beyond) {
    int j = 0;
    for (; j <= count - 16; j += 16) {
        const float16 v = read_dy16(p, i + j);
        beyond = farther_dy(beyond, v, least);
        keep16(halve_dy16(v), to + j);
    }
    if (j >= count)
        return beyond;
    const float16 v = rest_of_dy(p, i + j, count - j, end);
    keep16(halve_dy16(v), to + j);
    return farther_dy(beyond, select((float16)(as_float(least)), v, (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < count - j), least);
}

__attribute__((noinline))
static void clip_run_dy(float *to, __global const float *p, long i, int count,
    long end) {
    for (int j = 0; j < count; j += 16) {
        const float16 v = rest_of_dy(p, i + j, min(count - j, 16), end);
        if (!is_near_dy(farther_dy(0, v, 0), 0))
            keep16(round_dy16(v), to + j);
    }
}

static bool row_dy(float *to, __global const float *p, long i, int columns,
    int channels, long step, long end, int least) {
    uint16 beyond = 0;
    for (int w = 0; w < columns; ++w)
        beyond = run_dy(to + w * 128, p, i + w * step, channels, end, least, beyond);
    if (is_near_dy(beyond, least))
        return true;
    for (int w = 0; w < columns; ++w)
        clip_run_dy(to + w * 128, p, i + w * step, channels, end);
    return false;
}

static void planes_dy(float *to, long pitch, __global const float *dy, long i,
    int columns, int channels, shape_t shape) {
    const int planes = shape.planes;
    const long end = shape.n * shape.dy_image;
    row_dy(to, dy, i, columns, channels, shape.dy_column, end, 0);
}

static float round_w(float v) {
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

static float load_w(__global const float *p, long i) {
    return round_w(p[i]);
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

static float16 load_w16(__global const float *p, long i) {
    return round_w16(vload16(0, p + i));
}

__attribute__((noinline))
static float16 edge_w(__global const float *p, long i, int count) {
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? load_w(p, i + lane) : 0.0f;
    return vload16(0, v);
}

static float16 fetch_w(__global const float *p, long i, int count,
    long end) {
    if (i + 16 > end)
        return edge_w(p, i, count);
    return select((float16)(0.0f), load_w16(p, i), (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < count);
}

typedef struct {
    long n, c;
    int channels, h, end_h, end_p, w, columns, q;
} place_t;

static place_t find_place(long item, shape_t shape) {
    place_t at;
    const int block = item % shape.blocks;
    item /= shape.blocks;
    const int band = item % shape.bands;
    item /= shape.bands;
    at.c = item % shape.c_blocks * 128;
    at.n = item / shape.c_blocks;
    at.channels = min((long)128, shape.c - at.c);
    at.h = band * shape.band;
    at.end_h = min(at.h + shape.band, shape.h);
    at.end_p = min(shape.p, (at.end_h - 1 + shape.pad_top) / shape.stride_h + 1);
    at.w = block * shape.block * shape.stride_w;
    at.columns = min(shape.block * shape.stride_w, shape.w - at.w);
    at.q = shape.base + block * shape.block;
    return at;
}

static void read_weights(float *weights, __global const float *w, shape_t shape,
    place_t at, float *line) {
    const int taps = shape.planes * shape.r * shape.s;
    const int count = at.channels * taps;
    for (int i = 0; i < 128 * taps; i += 16)
        keep16(fetch_w(w, at.c * taps + i, count - i, shape.c * taps), line + i);
    split(line, weights, 128, taps, 128);
}

static void hold_row(float *to, __global const float *dy, shape_t shape,
    place_t at, int p) {
    const int first = max(at.q, 0);
    const int last = min(at.q + shape.room, shape.q);
    const long i = at.n * shape.dy_image + at.c * shape.planes * shape.dy_channel +
        p * shape.dy_row + first * shape.dy_column;
    planes_dy(to + (first - at.q) * 128, shape.ring * shape.pitch, dy, i, last - first,
        at.channels, shape);
}

typedef struct {
    int p, slot, phase;
} meet_t;

static int wrap(int slot, int ring) {
    return slot < 0 ? slot + ring : slot >= ring ? slot - ring : slot;
}

static meet_t next_row(meet_t meet, shape_t shape) {
    if (++meet.phase == shape.stride_h) {
        meet.phase = 0;
        meet.slot = wrap(meet.slot + 1, shape.ring);
        ++meet.p;
    }
    return meet;
}

static int hold_rows(float *ring, __global const float *dy, shape_t shape,
    place_t at, meet_t meet, int row) {
    const int end = min(at.end_p, meet.p + 1);
    for (; row < end; ++row) {
        const int slot = wrap(meet.slot + row - meet.p, shape.ring);
        hold_row(ring + slot * shape.pitch, dy, shape, at, row);
    }
    return row;
}

typedef struct {
    int first, taps, step, column, back;
} phase_t;

static phase_t find_phase(int left, int stride, int dilation, int taps, int step, int base)
{
    phase_t phase;
    phase.first = tap_from(0, left, dilation, stride, taps);
    phase.taps = (taps - phase.first + step - 1) / step;
    phase.step = step;
    phase.column = (left - phase.first * dilation) / stride - base;
    phase.back = step * dilation / stride;
    return phase;
}

static int find_lines(int *row_at, int *tap_at, shape_t shape, meet_t meet, phase_t phase)
{
    int lines = 0;
    int r = phase.first;
    int p = meet.p + phase.column;
    for (int tap = 0; tap < phase.taps; ++tap) {
        const int slot = wrap(meet.slot + p - meet.p, shape.ring);
        const int planes = p >= 0 && p < (int)shape.p ? shape.planes : 0;
        for (int k = 0; k < planes; ++k) {
            row_at[lines] = (k * shape.ring + slot) * shape.pitch;
            tap_at[lines++] = (k * shape.r + r) * shape.s * 128;
        }
        r += phase.step;
        p -= phase.back;
    }
    return lines;
}

static void tile4(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int next, float *to)
{
    const int back = phase.back * 128;
    const int step = phase.step * 128;
    float16 sum0 = 0.0f;
    float16 sum1 = 0.0f;
    float16 sum2 = 0.0f;
    float16 sum3 = 0.0f;
    for (int line = 0; line < lines; ++line) {
        const float *a = ring + row_at[line];
        const float *b = weights + tap_at[line];
        for (int tap = 0; tap < phase.taps; ++tap) {
            const float16 weight = vload16(0, b);
            sum0 = vload16(0, a + 0 * 128) * weight + sum0;
            sum1 = vload16(0, a + 1 * 128) * weight + sum1;
            sum2 = vload16(0, a + 2 * 128) * weight + sum2;
            sum3 = vload16(0, a + 3 * 128) * weight + sum3;
            a -= back;
            b += step;
        }
    }
    keep16(sum0, to + 0 * next);
    keep16(sum1, to + 1 * next);
    keep16(sum2, to + 2 * next);
    keep16(sum3, to + 3 * next);
}

static void tile1(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int next, float *to)
{
    const int back = phase.back * 128;
    const int step = phase.step * 128;
    float16 sum0 = 0.0f;
    for (int line = 0; line < lines; ++line) {
        const float *a = ring + row_at[line];
        const float *b = weights + tap_at[line];
        for (int tap = 0; tap < phase.taps; ++tap) {
            const float16 weight = vload16(0, b);
            sum0 = vload16(0, a + 0 * 128) * weight + sum0;
            a -= back;
            b += step;
        }
    }
    keep16(sum0, to + 0 * next);
}

static void sum_phase(const float *ring, const float *weights, const int *row_at,
    const int *tap_at, int lines, phase_t phase, int vectors, int next, float *to)
{
    int i = 0;
    ring += phase.column * 128;
    weights += phase.first * 128;
    for (; i <= vectors - 4; i += 4)
        tile4(ring + i * 128, weights, row_at, tap_at, lines, phase, next, to + i * next);
    for (; i < vectors; ++i)
        tile1(ring + i * 128, weights, row_at, tap_at, lines, phase, next, to + i * next);
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

static void put(__global float *dx, long i, const float *v, int count,
    float beta) {
    for (; count >= 16; count -= 16) {
        store_dx16(dx, i, vload16(0, v), beta);
        i += 16;
        v += 16;
    }
    if (count & 8) {
        store_dx8(dx, i, vload8(0, v), beta);
        i += 8;
        v += 8;
    }
    if (count & 4) {
        store_dx4(dx, i, vload4(0, v), beta);
        i += 4;
        v += 4;
    }
    if (count & 2) {
        store_dx2(dx, i, vload2(0, v), beta);
        i += 2;
        v += 2;
    }
    if (count & 1) {
        store_dx(dx, i, *v, beta);
        i += 1;
        v += 1;
    }
}

__kernel
void bwd_data_depthwise(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    call_t call) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    const shape_t shape = {
        .n = call.n,
        .c = 18,
        .h = 7,
        .w = 17,
        .r = 3,
        .s = 3,
        .p = 7,
        .q = 17,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 1,
        .dy_image = 2142,
        .dy_channel = 1,
        .dy_row = 306,
        .dy_column = 18,
        .x_image = 2142,
        .x_channel = 1,
        .x_row = 306,
        .x_column = 18,
        .c_blocks = 1,
        .ring = 3,
        .base = -1,
        .block = 17,
        .room = 19,
        .blocks = 1,
        .pitch = 2432,
        .band = 2,
        .bands = 4,
        .line = 32,
        .chunk = 4,
        .tap_step_h = 1,
        .tap_step_w = 1,
    };
    const place_t at = find_place(get_group_id(0), shape);
    __attribute__((aligned(64))) float ring[65792];
    __attribute__((aligned(64))) float line[8448];
    __attribute__((aligned(64))) float weights[8448];
    int row_at[64], tap_at[64];
    phase_t phases[16], row_phases[16];
    read_weights(weights, w, shape, at, line);
    for (int f = 0; f < (int)shape.stride_w; ++f)
        phases[f] = find_phase(f + shape.pad_left, shape.stride_w, shape.dilation_w, shape.s,
            shape.tap_step_w, shape.base);
    for (int f = 0; f < (int)shape.stride_h; ++f)
        row_phases[f] = find_phase(f, shape.stride_h, shape.dilation_h, shape.r, shape.tap_step_h, 0);
    clear(ring, shape.planes * shape.ring * shape.pitch);
    const int stride = shape.stride_w;
    const long to = at.n * shape.x_image + at.c * shape.x_channel + at.w * shape.x_column;
    const int up = at.h + shape.pad_top;
    meet_t meet = { up / shape.stride_h, 0, up % shape.stride_h };
    int row = max(0L, meet.p - shape.ring + 1);
    for (int h = at.h; h < at.end_h; ++h) {
        row = hold_rows(ring, dy, shape, at, meet, row);
        const int lines = find_lines(row_at, tap_at, shape, meet, row_phases[meet.phase]);
        const int columns = shape.chunk;
        const int all = (at.columns - 1) / stride + 1;
        long i = to + h * shape.x_row;
        for (int w = 0; w < all; w += columns) {
            for (int f = 0; f < stride; ++f) {
                const int count = min(columns, (at.columns - 1 - f) / stride + 1 - w);
                for (int c = 0; c < at.channels; c += 16)
                    sum_phase(ring + w * 128 + c, weights + c, row_at, tap_at, lines, phases[f], count,
                        stride * 128, line + f * 128 + c);
            }
            const int pixels = min(columns * stride, at.columns - w * stride);
            for (int j = 0; j < pixels; ++j) {
                put(dx, i, line + j * 128, at.channels, beta);
                i += shape.x_column;
            }
        }
        meet = next_row(meet, shape);
    }
}
