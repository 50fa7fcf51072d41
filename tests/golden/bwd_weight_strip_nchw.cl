/* Step 3: bwd_weight_strip */

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long p;
    long q;
    long dy_image;
    long dy_channel;
    long dy_row;
    long x_image;
    long x_channel;
    long x_row;
    long blocks;
    long strips;
    long parts;
    long runs;
    long pad_top;
    long pad_left;
    long elements;
} shape_t;

/*
 * Two fp16 numbers side by side in a word, from and to floats that fp16 holds
 * or is to round, to nearest even.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float2 word_floats(uint word)
{
    return vload_half2(0, (const half *)&word);
}

static uint floats_word(float2 v)
{
    uint word;
    vstore_half2_rte(v, 0, (half *)&word);
    return word;
}

static ushort to_words(float v) {
    return (ushort)floats_word((float2)(v, 0.0f));
}

static float to_floats(ushort v) {
    return word_floats(v).x;
}

static float clip_dy(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int)(0x427fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits) * 0x1p10f;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static void tame_dy(float *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        most = fmax(most, fabs(v[j]));
    if (most > as_float(0x427fe000)) {
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            v[j] = clip_dy(v[j]);
        return;
    }
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        v[j] *= 0x1p10f;
}

static float fetch_dy(__global const float *p, long i) {
    return *(__global const float *)(p + i);
}

static void floats_dy(float *to, const float *from) {
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        to[j] = from[j];
    tame_dy(to);
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        to[j] = to_floats(to_words(to[j]));
}

static float clip_x(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int)(0x477fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static void tame_x(float *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        most = fmax(most, fabs(v[j]));
    if (most > as_float(0x477fe000)) {
        #pragma unroll
        for (int j = 0; j < 9; ++j)
            v[j] = clip_x(v[j]);
        return;
    }
}

static float fetch_x(__global const float *p, long i) {
    return *(__global const float *)(p + i);
}

static void floats_x(float *to, const float *from) {
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = from[j];
    tame_x(to);
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = to_floats(to_words(to[j]));
}

static void row_dy(float *to, __global const float *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_dy(p, row + (first + j) * step);
    }
}

static void row_x(float *to, __global const float *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 9; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_x(p, row + (first + j) * step);
    }
}

__kernel
void bwd_weight_strip(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    shape_t shape) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    __local float shared[2304];
    const int id = get_local_id(0);
    const long group = get_group_id(0);
    const int first_c = group % shape.blocks * (1 * 1);
    const int c = first_c + id % 1 * 1;
    const long part = group / shape.blocks;
    const long slot = part * 256 + id / 1;
    const long run = slot / shape.strips;
    const int first_q = slot % shape.strips * 4;
    const int first_w = first_q * 2 - (int)shape.pad_left;
    const int columns = shape.q;
    float next_x[18];
    float next_dy[4];
    float window[27], d[4], sums[9];
    #pragma unroll
    for (int i = 0; i < 9; ++i)
        sums[i] = 0.0f;
    const long rows = c < (int)shape.c && run < shape.runs ? shape.n * shape.p : 0;
    const long end = rows * (run + 1) / shape.runs;
    long row = rows * run / shape.runs;
    while (row < end) {
        const long n = row / shape.p;
        int h, p = row - n * shape.p;
        const int stop = min(shape.p, p + end - row);
        const long from = n * shape.dy_image + c * shape.dy_channel;
        const long x_from = n * shape.x_image + c * shape.x_channel;
        row += stop - p;
        h = p * 2 - (int)shape.pad_top;
        row_x(next_x + 0, x, x_from + h * shape.x_row, 1, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        floats_x(window + 0, next_x);
        ++h;
        row_dy(next_dy, dy, from + (p + 0) * shape.dy_row, 1, first_q,
            p + 0 < stop ? columns : 0);
        h = (p + 0) * 2 - (int)shape.pad_top + 1;
        row_x(next_x + 0, x, x_from + h * shape.x_row, 1, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        ++h;
        row_x(next_x + 9, x, x_from + h * shape.x_row, 1, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        ++h;
        while (p < stop) {
            floats_x(window + 9, next_x + 0);
            floats_x(window + 18, next_x + 9);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, 1, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 2 - (int)shape.pad_top + 1;
            row_x(next_x + 0, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            row_x(next_x + 9, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            sums[0] = d[0] * window[0] + sums[0];
            sums[1] = d[0] * window[1] + sums[1];
            sums[2] = d[0] * window[2] + sums[2];
            sums[3] = d[0] * window[9] + sums[3];
            sums[4] = d[0] * window[10] + sums[4];
            sums[5] = d[0] * window[11] + sums[5];
            sums[6] = d[0] * window[18] + sums[6];
            sums[7] = d[0] * window[19] + sums[7];
            sums[8] = d[0] * window[20] + sums[8];
            sums[0] = d[1] * window[2] + sums[0];
            sums[1] = d[1] * window[3] + sums[1];
            sums[2] = d[1] * window[4] + sums[2];
            sums[3] = d[1] * window[11] + sums[3];
            sums[4] = d[1] * window[12] + sums[4];
            sums[5] = d[1] * window[13] + sums[5];
            sums[6] = d[1] * window[20] + sums[6];
            sums[7] = d[1] * window[21] + sums[7];
            sums[8] = d[1] * window[22] + sums[8];
            sums[0] = d[2] * window[4] + sums[0];
            sums[1] = d[2] * window[5] + sums[1];
            sums[2] = d[2] * window[6] + sums[2];
            sums[3] = d[2] * window[13] + sums[3];
            sums[4] = d[2] * window[14] + sums[4];
            sums[5] = d[2] * window[15] + sums[5];
            sums[6] = d[2] * window[22] + sums[6];
            sums[7] = d[2] * window[23] + sums[7];
            sums[8] = d[2] * window[24] + sums[8];
            sums[0] = d[3] * window[6] + sums[0];
            sums[1] = d[3] * window[7] + sums[1];
            sums[2] = d[3] * window[8] + sums[2];
            sums[3] = d[3] * window[15] + sums[3];
            sums[4] = d[3] * window[16] + sums[4];
            sums[5] = d[3] * window[17] + sums[5];
            sums[6] = d[3] * window[24] + sums[6];
            sums[7] = d[3] * window[25] + sums[7];
            sums[8] = d[3] * window[26] + sums[8];
            ++p;
            if (p == stop)
                break;
            floats_x(window + 0, next_x + 0);
            floats_x(window + 9, next_x + 9);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, 1, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 2 - (int)shape.pad_top + 1;
            row_x(next_x + 0, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            row_x(next_x + 9, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            sums[0] = d[0] * window[18] + sums[0];
            sums[1] = d[0] * window[19] + sums[1];
            sums[2] = d[0] * window[20] + sums[2];
            sums[3] = d[0] * window[0] + sums[3];
            sums[4] = d[0] * window[1] + sums[4];
            sums[5] = d[0] * window[2] + sums[5];
            sums[6] = d[0] * window[9] + sums[6];
            sums[7] = d[0] * window[10] + sums[7];
            sums[8] = d[0] * window[11] + sums[8];
            sums[0] = d[1] * window[20] + sums[0];
            sums[1] = d[1] * window[21] + sums[1];
            sums[2] = d[1] * window[22] + sums[2];
            sums[3] = d[1] * window[2] + sums[3];
            sums[4] = d[1] * window[3] + sums[4];
            sums[5] = d[1] * window[4] + sums[5];
            sums[6] = d[1] * window[11] + sums[6];
            sums[7] = d[1] * window[12] + sums[7];
            sums[8] = d[1] * window[13] + sums[8];
            sums[0] = d[2] * window[22] + sums[0];
            sums[1] = d[2] * window[23] + sums[1];
            sums[2] = d[2] * window[24] + sums[2];
            sums[3] = d[2] * window[4] + sums[3];
            sums[4] = d[2] * window[5] + sums[4];
            sums[5] = d[2] * window[6] + sums[5];
            sums[6] = d[2] * window[13] + sums[6];
            sums[7] = d[2] * window[14] + sums[7];
            sums[8] = d[2] * window[15] + sums[8];
            sums[0] = d[3] * window[24] + sums[0];
            sums[1] = d[3] * window[25] + sums[1];
            sums[2] = d[3] * window[26] + sums[2];
            sums[3] = d[3] * window[6] + sums[3];
            sums[4] = d[3] * window[7] + sums[4];
            sums[5] = d[3] * window[8] + sums[5];
            sums[6] = d[3] * window[15] + sums[6];
            sums[7] = d[3] * window[16] + sums[7];
            sums[8] = d[3] * window[17] + sums[8];
            ++p;
            if (p == stop)
                break;
            floats_x(window + 18, next_x + 0);
            floats_x(window + 0, next_x + 9);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, 1, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 2 - (int)shape.pad_top + 1;
            row_x(next_x + 0, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            row_x(next_x + 9, x, x_from + h * shape.x_row, 1, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            sums[0] = d[0] * window[9] + sums[0];
            sums[1] = d[0] * window[10] + sums[1];
            sums[2] = d[0] * window[11] + sums[2];
            sums[3] = d[0] * window[18] + sums[3];
            sums[4] = d[0] * window[19] + sums[4];
            sums[5] = d[0] * window[20] + sums[5];
            sums[6] = d[0] * window[0] + sums[6];
            sums[7] = d[0] * window[1] + sums[7];
            sums[8] = d[0] * window[2] + sums[8];
            sums[0] = d[1] * window[11] + sums[0];
            sums[1] = d[1] * window[12] + sums[1];
            sums[2] = d[1] * window[13] + sums[2];
            sums[3] = d[1] * window[20] + sums[3];
            sums[4] = d[1] * window[21] + sums[4];
            sums[5] = d[1] * window[22] + sums[5];
            sums[6] = d[1] * window[2] + sums[6];
            sums[7] = d[1] * window[3] + sums[7];
            sums[8] = d[1] * window[4] + sums[8];
            sums[0] = d[2] * window[13] + sums[0];
            sums[1] = d[2] * window[14] + sums[1];
            sums[2] = d[2] * window[15] + sums[2];
            sums[3] = d[2] * window[22] + sums[3];
            sums[4] = d[2] * window[23] + sums[4];
            sums[5] = d[2] * window[24] + sums[5];
            sums[6] = d[2] * window[4] + sums[6];
            sums[7] = d[2] * window[5] + sums[7];
            sums[8] = d[2] * window[6] + sums[8];
            sums[0] = d[3] * window[15] + sums[0];
            sums[1] = d[3] * window[16] + sums[1];
            sums[2] = d[3] * window[17] + sums[2];
            sums[3] = d[3] * window[24] + sums[3];
            sums[4] = d[3] * window[25] + sums[4];
            sums[5] = d[3] * window[26] + sums[5];
            sums[6] = d[3] * window[6] + sums[6];
            sums[7] = d[3] * window[7] + sums[7];
            sums[8] = d[3] * window[8] + sums[8];
            ++p;
        }
    }
    shared[0 * 256 + id] = sums[0];
    shared[1 * 256 + id] = sums[1];
    shared[2 * 256 + id] = sums[2];
    shared[3 * 256 + id] = sums[3];
    shared[4 * 256 + id] = sums[4];
    shared[5 * 256 + id] = sums[5];
    shared[6 * 256 + id] = sums[6];
    shared[7 * 256 + id] = sums[7];
    shared[8 * 256 + id] = sums[8];
    for (int active = 256 / 2; active >= 1; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < active * (9 * 1); i += 256) {
            const int at = i / active * 256 + i % active;
            shared[at] += shared[at + active];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int filters = min(1 * 1, (int)shape.c - first_c);
    scratch += part * shape.elements + (long)first_c * 9;
    for (int i = id; i < filters * 9; i += 256) {
        const int filter = i / 9;
        scratch[i] = shared[(i % 9 * 1 + filter % 1) * 256 + filter / 1];
    }
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
void bwd_weight_strip_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta,
    shape_t shape) {
    scratch += scratch_offset;
    dw += dw_offset;
    __local float shared[256];
    const int id = get_local_id(0);
    const long i = get_group_id(0) * (long)16 + id % 16;
    const int parts = i < shape.elements ? shape.parts : 0;
    float total = 0.0f;
    #pragma unroll 4
    for (int part = id / 16; part < parts; part += 256 / 16)
        total += scratch[part * shape.elements + i];
    shared[id] = total;
    for (int active = 256 / 2; active >= 16; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < active)
            shared[id] += shared[id + active];
    }
    if (id < 16 && i < shape.elements)
        store_dw(dw, i, shared[id], beta);
}
