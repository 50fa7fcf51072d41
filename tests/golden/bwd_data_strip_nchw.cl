/* Step 2: bwd_data_strip */

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
    long bands;
    long band;
    long first_p;
    long end_p;
    long first_q;
    long pad_top;
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

static uint2 to_words4(float4 v) {
    return (uint2)(floats_word(v.lo), floats_word(v.hi));
}

static float4 to_floats4(uint2 v) {
    return (float4)(word_floats(v.x), word_floats(v.y));
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
    for (int j = 0; j < 5; ++j)
        most = fmax(most, fabs(v[j]));
    if (most > as_float(0x427fe000)) {
        #pragma unroll
        for (int j = 0; j < 5; ++j)
            v[j] = clip_dy(v[j]);
        return;
    }
    #pragma unroll
    for (int j = 0; j < 5; ++j)
        v[j] *= 0x1p10f;
}

static float fetch_dy(__global const float *p, long i) {
    return *(__global const float *)(p + i);
}

static void floats_dy(float *to, const float *from) {
    #pragma unroll
    for (int j = 0; j < 5; ++j)
        to[j] = from[j];
    tame_dy(to);
    #pragma unroll
    for (int j = 0; j < 5; ++j)
        to[j] = to_floats(to_words(to[j]));
}

static float clip_w(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int)(0x477fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static void tame_w(float *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        most = fmax(most, fabs(v[j]));
    if (most > as_float(0x477fe000)) {
        #pragma unroll
        for (int j = 0; j < 9; ++j)
            v[j] = clip_w(v[j]);
        return;
    }
}

static float fetch_w(__global const float *p, long i) {
    return *(__global const float *)(p + i);
}

static void floats_w(float *to, const float *from) {
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = from[j];
    tame_w(to);
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = to_floats(to_words(to[j]));
}

static void row_dy(float *to, __global const float *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 5; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_dy(p, row + (first + j) * step);
    }
}

static void read_weights(float *weights, __global const float *w, long i) {
    float raw[9];
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        raw[j] = fetch_w(w, i + j * 1);
    floats_w(weights, raw);
}

static void store_dx4(__global float *p, long i,
    float4 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload4(0, p + i);
    }
    vstore4(value, 0, p + i);
}

static void keep(__global float *dx, long i, float4 *values, int count,
    int step) {
    #pragma unroll
    for (int j = 0; j < 2; ++j)
        values[j] *= 0x1p-10f;
    #pragma unroll
    for (int j = 0; j < 2; ++j)
        if (j < count)
            *(__global float4 *)(dx + i + j * step) = values[j];
}

static void put_row(__global float *dx, long i, float4 *values, int count,
    int step, float beta, int plain) {
    if (plain) {
        keep(dx, i, values, count, step);
        return;
    }
    #pragma unroll 1
    for (int j = 0; j < min(count, 2); ++j) {
        store_dx4(dx, i + j * step, values[0], beta);
        #pragma unroll
        for (int k = 1; k < 2; ++k)
            values[k - 1] = values[k];
    }
}

__kernel
void bwd_data_strip(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    shape_t shape) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    uint item = (uint)get_global_id(0);
    int strip = (int)(item % (int)shape.strips);
    item /= (int)shape.strips;
    int band = (int)(item % (int)shape.bands);
    item /= (int)shape.bands;
    int block = (int)(item % (int)shape.blocks);
    item /= (int)shape.blocks;
    if (item >= shape.n)
        return;
    const int c = block * 1;
    const int left = strip * 8;
    const int first_q = shape.first_q + strip * 4;
    const int first_p = shape.first_p + band * shape.band;
    const int end_p = min(first_p + (int)shape.band, (int)shape.end_p);
    const int stop = min(end_p, (int)shape.p);
    const int columns = shape.q;
    const long from = item * shape.dy_image + c * shape.dy_channel;
    const long to = item * shape.x_image + c * shape.x_channel + (long)left * 1;
    const int plain = beta == 0.0f;
    float weights[9], sums[24];
    float next[5];
    read_weights(weights, w, (long)c * 9);
    int h, p = first_p - 1;
    float d[5];
    #pragma unroll
    for (int i = 0; i < 24; ++i)
        sums[0 + i] = 0.0f;
    row_dy(next, dy, from + (p) * shape.dy_row, 1, first_q, p >= 0 && p < stop ? columns : 0);
    while (p < end_p) {
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, 1, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[0] = d[0] * weights[1] + sums[0];
        sums[1] = d[0] * weights[2] + sums[1];
        sums[8] = d[0] * weights[4] + sums[8];
        sums[9] = d[0] * weights[5] + sums[9];
        sums[16] = d[0] * weights[7] + sums[16];
        sums[17] = d[0] * weights[8] + sums[17];
        sums[1] = d[1] * weights[0] + sums[1];
        sums[2] = d[1] * weights[1] + sums[2];
        sums[3] = d[1] * weights[2] + sums[3];
        sums[9] = d[1] * weights[3] + sums[9];
        sums[10] = d[1] * weights[4] + sums[10];
        sums[11] = d[1] * weights[5] + sums[11];
        sums[17] = d[1] * weights[6] + sums[17];
        sums[18] = d[1] * weights[7] + sums[18];
        sums[19] = d[1] * weights[8] + sums[19];
        sums[3] = d[2] * weights[0] + sums[3];
        sums[4] = d[2] * weights[1] + sums[4];
        sums[5] = d[2] * weights[2] + sums[5];
        sums[11] = d[2] * weights[3] + sums[11];
        sums[12] = d[2] * weights[4] + sums[12];
        sums[13] = d[2] * weights[5] + sums[13];
        sums[19] = d[2] * weights[6] + sums[19];
        sums[20] = d[2] * weights[7] + sums[20];
        sums[21] = d[2] * weights[8] + sums[21];
        sums[5] = d[3] * weights[0] + sums[5];
        sums[6] = d[3] * weights[1] + sums[6];
        sums[7] = d[3] * weights[2] + sums[7];
        sums[13] = d[3] * weights[3] + sums[13];
        sums[14] = d[3] * weights[4] + sums[14];
        sums[15] = d[3] * weights[5] + sums[15];
        sums[21] = d[3] * weights[6] + sums[21];
        sums[22] = d[3] * weights[7] + sums[22];
        sums[23] = d[3] * weights[8] + sums[23];
        sums[7] = d[4] * weights[0] + sums[7];
        sums[15] = d[4] * weights[3] + sums[15];
        sums[23] = d[4] * weights[6] + sums[23];
        h = p * 2 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[0], sums[1], sums[2], sums[3]);
            values[1] = (float4)(sums[4], sums[5], sums[6], sums[7]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[0 + i] = 0.0f;
        h = p * 2 + 1 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[8], sums[9], sums[10], sums[11]);
            values[1] = (float4)(sums[12], sums[13], sums[14], sums[15]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[8 + i] = 0.0f;
        ++p;
        if (p == end_p)
            break;
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, 1, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[16] = d[0] * weights[1] + sums[16];
        sums[17] = d[0] * weights[2] + sums[17];
        sums[0] = d[0] * weights[4] + sums[0];
        sums[1] = d[0] * weights[5] + sums[1];
        sums[8] = d[0] * weights[7] + sums[8];
        sums[9] = d[0] * weights[8] + sums[9];
        sums[17] = d[1] * weights[0] + sums[17];
        sums[18] = d[1] * weights[1] + sums[18];
        sums[19] = d[1] * weights[2] + sums[19];
        sums[1] = d[1] * weights[3] + sums[1];
        sums[2] = d[1] * weights[4] + sums[2];
        sums[3] = d[1] * weights[5] + sums[3];
        sums[9] = d[1] * weights[6] + sums[9];
        sums[10] = d[1] * weights[7] + sums[10];
        sums[11] = d[1] * weights[8] + sums[11];
        sums[19] = d[2] * weights[0] + sums[19];
        sums[20] = d[2] * weights[1] + sums[20];
        sums[21] = d[2] * weights[2] + sums[21];
        sums[3] = d[2] * weights[3] + sums[3];
        sums[4] = d[2] * weights[4] + sums[4];
        sums[5] = d[2] * weights[5] + sums[5];
        sums[11] = d[2] * weights[6] + sums[11];
        sums[12] = d[2] * weights[7] + sums[12];
        sums[13] = d[2] * weights[8] + sums[13];
        sums[21] = d[3] * weights[0] + sums[21];
        sums[22] = d[3] * weights[1] + sums[22];
        sums[23] = d[3] * weights[2] + sums[23];
        sums[5] = d[3] * weights[3] + sums[5];
        sums[6] = d[3] * weights[4] + sums[6];
        sums[7] = d[3] * weights[5] + sums[7];
        sums[13] = d[3] * weights[6] + sums[13];
        sums[14] = d[3] * weights[7] + sums[14];
        sums[15] = d[3] * weights[8] + sums[15];
        sums[23] = d[4] * weights[0] + sums[23];
        sums[7] = d[4] * weights[3] + sums[7];
        sums[15] = d[4] * weights[6] + sums[15];
        h = p * 2 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[16], sums[17], sums[18], sums[19]);
            values[1] = (float4)(sums[20], sums[21], sums[22], sums[23]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[16 + i] = 0.0f;
        h = p * 2 + 1 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[0], sums[1], sums[2], sums[3]);
            values[1] = (float4)(sums[4], sums[5], sums[6], sums[7]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[0 + i] = 0.0f;
        ++p;
        if (p == end_p)
            break;
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, 1, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[8] = d[0] * weights[1] + sums[8];
        sums[9] = d[0] * weights[2] + sums[9];
        sums[16] = d[0] * weights[4] + sums[16];
        sums[17] = d[0] * weights[5] + sums[17];
        sums[0] = d[0] * weights[7] + sums[0];
        sums[1] = d[0] * weights[8] + sums[1];
        sums[9] = d[1] * weights[0] + sums[9];
        sums[10] = d[1] * weights[1] + sums[10];
        sums[11] = d[1] * weights[2] + sums[11];
        sums[17] = d[1] * weights[3] + sums[17];
        sums[18] = d[1] * weights[4] + sums[18];
        sums[19] = d[1] * weights[5] + sums[19];
        sums[1] = d[1] * weights[6] + sums[1];
        sums[2] = d[1] * weights[7] + sums[2];
        sums[3] = d[1] * weights[8] + sums[3];
        sums[11] = d[2] * weights[0] + sums[11];
        sums[12] = d[2] * weights[1] + sums[12];
        sums[13] = d[2] * weights[2] + sums[13];
        sums[19] = d[2] * weights[3] + sums[19];
        sums[20] = d[2] * weights[4] + sums[20];
        sums[21] = d[2] * weights[5] + sums[21];
        sums[3] = d[2] * weights[6] + sums[3];
        sums[4] = d[2] * weights[7] + sums[4];
        sums[5] = d[2] * weights[8] + sums[5];
        sums[13] = d[3] * weights[0] + sums[13];
        sums[14] = d[3] * weights[1] + sums[14];
        sums[15] = d[3] * weights[2] + sums[15];
        sums[21] = d[3] * weights[3] + sums[21];
        sums[22] = d[3] * weights[4] + sums[22];
        sums[23] = d[3] * weights[5] + sums[23];
        sums[5] = d[3] * weights[6] + sums[5];
        sums[6] = d[3] * weights[7] + sums[6];
        sums[7] = d[3] * weights[8] + sums[7];
        sums[15] = d[4] * weights[0] + sums[15];
        sums[23] = d[4] * weights[3] + sums[23];
        sums[7] = d[4] * weights[6] + sums[7];
        h = p * 2 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[8], sums[9], sums[10], sums[11]);
            values[1] = (float4)(sums[12], sums[13], sums[14], sums[15]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[8 + i] = 0.0f;
        h = p * 2 + 1 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = (float4)(sums[16], sums[17], sums[18], sums[19]);
            values[1] = (float4)(sums[20], sums[21], sums[22], sums[23]);
            put_row(dx, to + h * shape.x_row, values,
                ((int)shape.w - left) / 4, 4, beta, plain);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[16 + i] = 0.0f;
        ++p;
    }
}
