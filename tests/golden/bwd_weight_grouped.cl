/* Step 3: bwd_weight_grouped */

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
    long k;
    long r;
    long s;
    long stride_h;
    long dilation_h;
    long pad_top;
    long w_image;
    long w_channel;
    long w_tap;
    long plane_blocks;
    long strips;
    long parts;
    long runs;
    long pad_left;
    long elements;
} shape_t;

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
    long k;
    long pad_top;
    long plane_blocks;
    long strips;
    long parts;
    long runs;
    long pad_left;
    long elements;
} call_t;

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

static uint2 to_words4(float4 v) {
    return (uint2)(floats_word(v.lo), floats_word(v.hi));
}

static float4 to_floats4(uint2 v) {
    return (float4)(word_floats(v.x), word_floats(v.y));
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

static void strip_dy(float4 *to, __global const float *p, long row,
    long channel, int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        const long i = row + (first + j) * step;
        to[j] = 0.0f;
        if ((uint)(first + j) < (uint)end)
            to[j] = (float4)(load_dy(p, i), load_dy(p, i + channel), load_dy(p, i + 2 * channel), load_dy(p, i + 3 * channel));
    }
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

static void strip_x(float4 *to, __global const float *p, long row,
    long channel, int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 6; ++j) {
        const long i = row + (first + j) * step;
        to[j] = 0.0f;
        if ((uint)(first + j) < (uint)end)
            to[j] = (float4)(load_x(p, i), load_x(p, i + channel), load_x(p, i + 2 * channel), load_x(p, i + 3 * channel));
    }
}

static void reduce(__local float *shared, int id) {
    for (int active = 32 / 2; active > 0; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < active * 4 * 12; i += 128) {
            const int pair = i % (active * 4);
            const int from = pair / active * 32 + pair % active, to = active;
            const int at = i / (active * 4) * 128 + from;
            shared[at] += shared[at + to];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

static void put_part(__global float *to, __local const float *shared, int first_c,
    int k, int r, int id, shape_t shape) {
    for (int i = id; i < 4 * 12; i += 128) {
        const int c = first_c + i % (4 * 4);
        const int s = i / (4 * 4);
        const long filter = c / 8 * 8 + k;
        const int lane = i % (4 * 4) / 4 * 32;
        to[filter * shape.w_image + c % 8 * shape.w_channel + (r * shape.s + s) * shape.w_tap] =
            shared[(s * 4 + i % 4) * 128 + lane];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel
void bwd_weight_grouped(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    call_t call) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    const shape_t shape = {
        .n = call.n,
        .c = call.c,
        .h = call.h,
        .w = call.w,
        .p = call.p,
        .q = call.q,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .blocks = call.blocks,
        .k = call.k,
        .r = 3,
        .s = 3,
        .stride_h = 1,
        .dilation_h = 1,
        .pad_top = call.pad_top,
        .w_image = 72,
        .w_channel = 9,
        .w_tap = 1,
        .plane_blocks = call.plane_blocks,
        .strips = call.strips,
        .parts = call.parts,
        .runs = call.runs,
        .pad_left = call.pad_left,
        .elements = call.elements,
    };
    __local float shared[12 * 128];
    const int id = get_local_id(0);
    const int lane = id / 32, slot = id % 32;
    long group = get_group_id(0);
    const int first_c = group % shape.blocks * (4 * 4);
    group /= shape.blocks;
    const int plane = group % shape.plane_blocks * 8;
    group /= shape.plane_blocks;
    const int r = group % shape.r;
    const long part = group / shape.r;
    const int c = first_c + lane * 4;
    const int first_k = c / 8 * 8 + plane;
    const long at = part * 32 + slot;
    const long run = at / shape.strips;
    const int first_q = at % shape.strips * 4;
    const int first_w = first_q * 1 - (int)shape.pad_left;
    float4 d[8], xs[6], sums[24];
    #pragma unroll
    for (int i = 0; i < 24; ++i)
        sums[i] = 0.0f;
    const long rows = run < shape.runs ? shape.n * shape.p : 0;
    long left = rows * (run + 1) / shape.runs;
    const long first = rows * run / shape.runs;
    long n = first / shape.p;
    int p = first - n * shape.p;
    for (left -= first; left > 0; --left) {
        const int h = p * (int)shape.stride_h + r * (int)shape.dilation_h - (int)shape.pad_top;
        if (h >= 0 && h < (int)shape.h) {
            strip_x(xs, x, n * shape.x_image + c * shape.x_channel + h * shape.x_row, shape.x_channel,
                1, first_w, (int)shape.w);
            strip_dy(d + 0, dy, n * shape.dy_image + (first_k + 0) * shape.dy_channel + p * shape.dy_row,
                shape.dy_channel, 1, first_q, (int)shape.q);
            strip_dy(d + 4, dy, n * shape.dy_image + (first_k + 4) * shape.dy_channel + p * shape.dy_row,
                shape.dy_channel, 1, first_q, (int)shape.q);
            if (first_q + 0 < (int)shape.q) {
                sums[0] = d[0].s0 * xs[0] + sums[0];
                sums[1] = d[0].s0 * xs[1] + sums[1];
                sums[2] = d[0].s0 * xs[2] + sums[2];
                sums[3] = d[0].s1 * xs[0] + sums[3];
                sums[4] = d[0].s1 * xs[1] + sums[4];
                sums[5] = d[0].s1 * xs[2] + sums[5];
                sums[6] = d[0].s2 * xs[0] + sums[6];
                sums[7] = d[0].s2 * xs[1] + sums[7];
                sums[8] = d[0].s2 * xs[2] + sums[8];
                sums[9] = d[0].s3 * xs[0] + sums[9];
                sums[10] = d[0].s3 * xs[1] + sums[10];
                sums[11] = d[0].s3 * xs[2] + sums[11];
                sums[12] = d[4].s0 * xs[0] + sums[12];
                sums[13] = d[4].s0 * xs[1] + sums[13];
                sums[14] = d[4].s0 * xs[2] + sums[14];
                sums[15] = d[4].s1 * xs[0] + sums[15];
                sums[16] = d[4].s1 * xs[1] + sums[16];
                sums[17] = d[4].s1 * xs[2] + sums[17];
                sums[18] = d[4].s2 * xs[0] + sums[18];
                sums[19] = d[4].s2 * xs[1] + sums[19];
                sums[20] = d[4].s2 * xs[2] + sums[20];
                sums[21] = d[4].s3 * xs[0] + sums[21];
                sums[22] = d[4].s3 * xs[1] + sums[22];
                sums[23] = d[4].s3 * xs[2] + sums[23];
            }
            if (first_q + 1 < (int)shape.q) {
                sums[0] = d[1].s0 * xs[1] + sums[0];
                sums[1] = d[1].s0 * xs[2] + sums[1];
                sums[2] = d[1].s0 * xs[3] + sums[2];
                sums[3] = d[1].s1 * xs[1] + sums[3];
                sums[4] = d[1].s1 * xs[2] + sums[4];
                sums[5] = d[1].s1 * xs[3] + sums[5];
                sums[6] = d[1].s2 * xs[1] + sums[6];
                sums[7] = d[1].s2 * xs[2] + sums[7];
                sums[8] = d[1].s2 * xs[3] + sums[8];
                sums[9] = d[1].s3 * xs[1] + sums[9];
                sums[10] = d[1].s3 * xs[2] + sums[10];
                sums[11] = d[1].s3 * xs[3] + sums[11];
                sums[12] = d[5].s0 * xs[1] + sums[12];
                sums[13] = d[5].s0 * xs[2] + sums[13];
                sums[14] = d[5].s0 * xs[3] + sums[14];
                sums[15] = d[5].s1 * xs[1] + sums[15];
                sums[16] = d[5].s1 * xs[2] + sums[16];
                sums[17] = d[5].s1 * xs[3] + sums[17];
                sums[18] = d[5].s2 * xs[1] + sums[18];
                sums[19] = d[5].s2 * xs[2] + sums[19];
                sums[20] = d[5].s2 * xs[3] + sums[20];
                sums[21] = d[5].s3 * xs[1] + sums[21];
                sums[22] = d[5].s3 * xs[2] + sums[22];
                sums[23] = d[5].s3 * xs[3] + sums[23];
            }
            if (first_q + 2 < (int)shape.q) {
                sums[0] = d[2].s0 * xs[2] + sums[0];
                sums[1] = d[2].s0 * xs[3] + sums[1];
                sums[2] = d[2].s0 * xs[4] + sums[2];
                sums[3] = d[2].s1 * xs[2] + sums[3];
                sums[4] = d[2].s1 * xs[3] + sums[4];
                sums[5] = d[2].s1 * xs[4] + sums[5];
                sums[6] = d[2].s2 * xs[2] + sums[6];
                sums[7] = d[2].s2 * xs[3] + sums[7];
                sums[8] = d[2].s2 * xs[4] + sums[8];
                sums[9] = d[2].s3 * xs[2] + sums[9];
                sums[10] = d[2].s3 * xs[3] + sums[10];
                sums[11] = d[2].s3 * xs[4] + sums[11];
                sums[12] = d[6].s0 * xs[2] + sums[12];
                sums[13] = d[6].s0 * xs[3] + sums[13];
                sums[14] = d[6].s0 * xs[4] + sums[14];
                sums[15] = d[6].s1 * xs[2] + sums[15];
                sums[16] = d[6].s1 * xs[3] + sums[16];
                sums[17] = d[6].s1 * xs[4] + sums[17];
                sums[18] = d[6].s2 * xs[2] + sums[18];
                sums[19] = d[6].s2 * xs[3] + sums[19];
                sums[20] = d[6].s2 * xs[4] + sums[20];
                sums[21] = d[6].s3 * xs[2] + sums[21];
                sums[22] = d[6].s3 * xs[3] + sums[22];
                sums[23] = d[6].s3 * xs[4] + sums[23];
            }
            if (first_q + 3 < (int)shape.q) {
                sums[0] = d[3].s0 * xs[3] + sums[0];
                sums[1] = d[3].s0 * xs[4] + sums[1];
                sums[2] = d[3].s0 * xs[5] + sums[2];
                sums[3] = d[3].s1 * xs[3] + sums[3];
                sums[4] = d[3].s1 * xs[4] + sums[4];
                sums[5] = d[3].s1 * xs[5] + sums[5];
                sums[6] = d[3].s2 * xs[3] + sums[6];
                sums[7] = d[3].s2 * xs[4] + sums[7];
                sums[8] = d[3].s2 * xs[5] + sums[8];
                sums[9] = d[3].s3 * xs[3] + sums[9];
                sums[10] = d[3].s3 * xs[4] + sums[10];
                sums[11] = d[3].s3 * xs[5] + sums[11];
                sums[12] = d[7].s0 * xs[3] + sums[12];
                sums[13] = d[7].s0 * xs[4] + sums[13];
                sums[14] = d[7].s0 * xs[5] + sums[14];
                sums[15] = d[7].s1 * xs[3] + sums[15];
                sums[16] = d[7].s1 * xs[4] + sums[16];
                sums[17] = d[7].s1 * xs[5] + sums[17];
                sums[18] = d[7].s2 * xs[3] + sums[18];
                sums[19] = d[7].s2 * xs[4] + sums[19];
                sums[20] = d[7].s2 * xs[5] + sums[20];
                sums[21] = d[7].s3 * xs[3] + sums[21];
                sums[22] = d[7].s3 * xs[4] + sums[22];
                sums[23] = d[7].s3 * xs[5] + sums[23];
            }
        }
        if (++p == (int)shape.p) {
            p = 0;
            ++n;
        }
    }
    scratch += part * shape.elements;
    shared[0 * 128 + id] = sums[0].s0;
    shared[1 * 128 + id] = sums[0].s1;
    shared[2 * 128 + id] = sums[0].s2;
    shared[3 * 128 + id] = sums[0].s3;
    shared[4 * 128 + id] = sums[1].s0;
    shared[5 * 128 + id] = sums[1].s1;
    shared[6 * 128 + id] = sums[1].s2;
    shared[7 * 128 + id] = sums[1].s3;
    shared[8 * 128 + id] = sums[2].s0;
    shared[9 * 128 + id] = sums[2].s1;
    shared[10 * 128 + id] = sums[2].s2;
    shared[11 * 128 + id] = sums[2].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 0, r, id, shape);
    shared[0 * 128 + id] = sums[3].s0;
    shared[1 * 128 + id] = sums[3].s1;
    shared[2 * 128 + id] = sums[3].s2;
    shared[3 * 128 + id] = sums[3].s3;
    shared[4 * 128 + id] = sums[4].s0;
    shared[5 * 128 + id] = sums[4].s1;
    shared[6 * 128 + id] = sums[4].s2;
    shared[7 * 128 + id] = sums[4].s3;
    shared[8 * 128 + id] = sums[5].s0;
    shared[9 * 128 + id] = sums[5].s1;
    shared[10 * 128 + id] = sums[5].s2;
    shared[11 * 128 + id] = sums[5].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 1, r, id, shape);
    shared[0 * 128 + id] = sums[6].s0;
    shared[1 * 128 + id] = sums[6].s1;
    shared[2 * 128 + id] = sums[6].s2;
    shared[3 * 128 + id] = sums[6].s3;
    shared[4 * 128 + id] = sums[7].s0;
    shared[5 * 128 + id] = sums[7].s1;
    shared[6 * 128 + id] = sums[7].s2;
    shared[7 * 128 + id] = sums[7].s3;
    shared[8 * 128 + id] = sums[8].s0;
    shared[9 * 128 + id] = sums[8].s1;
    shared[10 * 128 + id] = sums[8].s2;
    shared[11 * 128 + id] = sums[8].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 2, r, id, shape);
    shared[0 * 128 + id] = sums[9].s0;
    shared[1 * 128 + id] = sums[9].s1;
    shared[2 * 128 + id] = sums[9].s2;
    shared[3 * 128 + id] = sums[9].s3;
    shared[4 * 128 + id] = sums[10].s0;
    shared[5 * 128 + id] = sums[10].s1;
    shared[6 * 128 + id] = sums[10].s2;
    shared[7 * 128 + id] = sums[10].s3;
    shared[8 * 128 + id] = sums[11].s0;
    shared[9 * 128 + id] = sums[11].s1;
    shared[10 * 128 + id] = sums[11].s2;
    shared[11 * 128 + id] = sums[11].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 3, r, id, shape);
    shared[0 * 128 + id] = sums[12].s0;
    shared[1 * 128 + id] = sums[12].s1;
    shared[2 * 128 + id] = sums[12].s2;
    shared[3 * 128 + id] = sums[12].s3;
    shared[4 * 128 + id] = sums[13].s0;
    shared[5 * 128 + id] = sums[13].s1;
    shared[6 * 128 + id] = sums[13].s2;
    shared[7 * 128 + id] = sums[13].s3;
    shared[8 * 128 + id] = sums[14].s0;
    shared[9 * 128 + id] = sums[14].s1;
    shared[10 * 128 + id] = sums[14].s2;
    shared[11 * 128 + id] = sums[14].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 4, r, id, shape);
    shared[0 * 128 + id] = sums[15].s0;
    shared[1 * 128 + id] = sums[15].s1;
    shared[2 * 128 + id] = sums[15].s2;
    shared[3 * 128 + id] = sums[15].s3;
    shared[4 * 128 + id] = sums[16].s0;
    shared[5 * 128 + id] = sums[16].s1;
    shared[6 * 128 + id] = sums[16].s2;
    shared[7 * 128 + id] = sums[16].s3;
    shared[8 * 128 + id] = sums[17].s0;
    shared[9 * 128 + id] = sums[17].s1;
    shared[10 * 128 + id] = sums[17].s2;
    shared[11 * 128 + id] = sums[17].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 5, r, id, shape);
    shared[0 * 128 + id] = sums[18].s0;
    shared[1 * 128 + id] = sums[18].s1;
    shared[2 * 128 + id] = sums[18].s2;
    shared[3 * 128 + id] = sums[18].s3;
    shared[4 * 128 + id] = sums[19].s0;
    shared[5 * 128 + id] = sums[19].s1;
    shared[6 * 128 + id] = sums[19].s2;
    shared[7 * 128 + id] = sums[19].s3;
    shared[8 * 128 + id] = sums[20].s0;
    shared[9 * 128 + id] = sums[20].s1;
    shared[10 * 128 + id] = sums[20].s2;
    shared[11 * 128 + id] = sums[20].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 6, r, id, shape);
    shared[0 * 128 + id] = sums[21].s0;
    shared[1 * 128 + id] = sums[21].s1;
    shared[2 * 128 + id] = sums[21].s2;
    shared[3 * 128 + id] = sums[21].s3;
    shared[4 * 128 + id] = sums[22].s0;
    shared[5 * 128 + id] = sums[22].s1;
    shared[6 * 128 + id] = sums[22].s2;
    shared[7 * 128 + id] = sums[22].s3;
    shared[8 * 128 + id] = sums[23].s0;
    shared[9 * 128 + id] = sums[23].s1;
    shared[10 * 128 + id] = sums[23].s2;
    shared[11 * 128 + id] = sums[23].s3;
    reduce(shared, id);
    put_part(scratch, shared, first_c, plane + 7, r, id, shape);
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
void bwd_weight_grouped_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta,
    call_t call) {
    scratch += scratch_offset;
    dw += dw_offset;
    const shape_t shape = {
        .n = call.n,
        .c = call.c,
        .h = call.h,
        .w = call.w,
        .p = call.p,
        .q = call.q,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .blocks = call.blocks,
        .k = call.k,
        .r = 3,
        .s = 3,
        .stride_h = 1,
        .dilation_h = 1,
        .pad_top = call.pad_top,
        .w_image = 72,
        .w_channel = 9,
        .w_tap = 1,
        .plane_blocks = call.plane_blocks,
        .strips = call.strips,
        .parts = call.parts,
        .runs = call.runs,
        .pad_left = call.pad_left,
        .elements = call.elements,
    };
    __local float shared[128];
    const int id = get_local_id(0);
    const long i = get_group_id(0) * (long)16 + id % 16;
    const int parts = i < shape.elements ? shape.parts : 0;
    float total = 0.0f;
    #pragma unroll 4
    for (int part = id / 16; part < parts; part += 128 / 16)
        total += scratch[part * shape.elements + i];
    shared[id] = total;
    for (int active = 128 / 2; active >= 16; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < active)
            shared[id] += shared[id + active];
    }
    if (id < 16 && i < shape.elements)
        store_dw(dw, i, shared[id], beta);
}
