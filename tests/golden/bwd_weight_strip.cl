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

typedef struct {
    long n;
} call_t;

/*
 * half_words.cl for NVIDIA's compiler: the word never leaves its register.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float2 word_floats(uint word)
{
    float low, high;
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; "
        "cvt.f32.f16 %1, b; }" : "=f"(low), "=f"(high) : "r"(word));
    return (float2)(low, high);
}

static uint floats_word(float2 v)
{
    uint word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v.y), "f"(v.x));
    return word;
}

static uint to_words2(float2 v) {
    return floats_word(v);
}

static float2 to_floats2(uint v) {
    return word_floats(v);
}

static uint fetch_dy(__global const half *p, long i) {
    return *(__global const uint *)(p + i);
}

static void floats_dy(float2 *to, const uint *from) {
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        to[j] = to_floats2(from[j]);
}

static uint fetch_x(__global const half *p, long i) {
    return *(__global const uint *)(p + i);
}

static void floats_x(float2 *to, const uint *from) {
    #pragma unroll
    for (int j = 0; j < 6; ++j)
        to[j] = to_floats2(from[j]);
}

static void row_dy(uint *to, __global const half *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_dy(p, row + (first + j) * step);
    }
}

static void row_x(uint *to, __global const half *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 6; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_x(p, row + (first + j) * step);
    }
}

__kernel
void bwd_weight_strip(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
    __global float *scratch, long scratch_offset,
    call_t call) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    const shape_t shape = {
        .n = call.n,
        .c = 16,
        .h = 7,
        .w = 17,
        .p = 7,
        .q = 17,
        .dy_image = 1904,
        .dy_channel = 1,
        .dy_row = 272,
        .x_image = 1904,
        .x_channel = 1,
        .x_row = 272,
        .blocks = 1,
        .strips = 5,
        .parts = 3,
        .runs = 19,
        .pad_top = 1,
        .pad_left = 1,
        .elements = 144,
    };
    __local float shared[4608];
    const int id = get_local_id(0);
    const long group = get_group_id(0);
    const int first_c = group % shape.blocks * (8 * 2);
    const int c = first_c + id % 8 * 2;
    const long part = group / shape.blocks;
    const long slot = part * 32 + id / 8;
    const long run = slot / shape.strips;
    const int first_q = slot % shape.strips * 4;
    const int first_w = first_q * 1 - (int)shape.pad_left;
    const int columns = shape.q;
    uint next_x[6];
    uint next_dy[4];
    float2 window[18], d[4], sums[9];
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
        h = p * 1 - (int)shape.pad_top;
        row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        floats_x(window + 0, next_x);
        ++h;
        row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        floats_x(window + 6, next_x);
        ++h;
        row_dy(next_dy, dy, from + (p + 0) * shape.dy_row, (int)shape.c, first_q,
            p + 0 < stop ? columns : 0);
        h = (p + 0) * 1 - (int)shape.pad_top + 2;
        row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
            p + 0 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
        ++h;
        while (p < stop) {
            floats_x(window + 12, next_x + 0);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 1 - (int)shape.pad_top + 2;
            row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            if (first_q + 0 < columns) {
                sums[0] = d[0] * window[0] + sums[0];
                sums[1] = d[0] * window[1] + sums[1];
                sums[2] = d[0] * window[2] + sums[2];
                sums[3] = d[0] * window[6] + sums[3];
                sums[4] = d[0] * window[7] + sums[4];
                sums[5] = d[0] * window[8] + sums[5];
                sums[6] = d[0] * window[12] + sums[6];
                sums[7] = d[0] * window[13] + sums[7];
                sums[8] = d[0] * window[14] + sums[8];
            }
            if (first_q + 1 < columns) {
                sums[0] = d[1] * window[1] + sums[0];
                sums[1] = d[1] * window[2] + sums[1];
                sums[2] = d[1] * window[3] + sums[2];
                sums[3] = d[1] * window[7] + sums[3];
                sums[4] = d[1] * window[8] + sums[4];
                sums[5] = d[1] * window[9] + sums[5];
                sums[6] = d[1] * window[13] + sums[6];
                sums[7] = d[1] * window[14] + sums[7];
                sums[8] = d[1] * window[15] + sums[8];
            }
            if (first_q + 2 < columns) {
                sums[0] = d[2] * window[2] + sums[0];
                sums[1] = d[2] * window[3] + sums[1];
                sums[2] = d[2] * window[4] + sums[2];
                sums[3] = d[2] * window[8] + sums[3];
                sums[4] = d[2] * window[9] + sums[4];
                sums[5] = d[2] * window[10] + sums[5];
                sums[6] = d[2] * window[14] + sums[6];
                sums[7] = d[2] * window[15] + sums[7];
                sums[8] = d[2] * window[16] + sums[8];
            }
            if (first_q + 3 < columns) {
                sums[0] = d[3] * window[3] + sums[0];
                sums[1] = d[3] * window[4] + sums[1];
                sums[2] = d[3] * window[5] + sums[2];
                sums[3] = d[3] * window[9] + sums[3];
                sums[4] = d[3] * window[10] + sums[4];
                sums[5] = d[3] * window[11] + sums[5];
                sums[6] = d[3] * window[15] + sums[6];
                sums[7] = d[3] * window[16] + sums[7];
                sums[8] = d[3] * window[17] + sums[8];
            }
            ++p;
            if (p == stop)
                break;
            floats_x(window + 0, next_x + 0);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 1 - (int)shape.pad_top + 2;
            row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            if (first_q + 0 < columns) {
                sums[0] = d[0] * window[6] + sums[0];
                sums[1] = d[0] * window[7] + sums[1];
                sums[2] = d[0] * window[8] + sums[2];
                sums[3] = d[0] * window[12] + sums[3];
                sums[4] = d[0] * window[13] + sums[4];
                sums[5] = d[0] * window[14] + sums[5];
                sums[6] = d[0] * window[0] + sums[6];
                sums[7] = d[0] * window[1] + sums[7];
                sums[8] = d[0] * window[2] + sums[8];
            }
            if (first_q + 1 < columns) {
                sums[0] = d[1] * window[7] + sums[0];
                sums[1] = d[1] * window[8] + sums[1];
                sums[2] = d[1] * window[9] + sums[2];
                sums[3] = d[1] * window[13] + sums[3];
                sums[4] = d[1] * window[14] + sums[4];
                sums[5] = d[1] * window[15] + sums[5];
                sums[6] = d[1] * window[1] + sums[6];
                sums[7] = d[1] * window[2] + sums[7];
                sums[8] = d[1] * window[3] + sums[8];
            }
            if (first_q + 2 < columns) {
                sums[0] = d[2] * window[8] + sums[0];
                sums[1] = d[2] * window[9] + sums[1];
                sums[2] = d[2] * window[10] + sums[2];
                sums[3] = d[2] * window[14] + sums[3];
                sums[4] = d[2] * window[15] + sums[4];
                sums[5] = d[2] * window[16] + sums[5];
                sums[6] = d[2] * window[2] + sums[6];
                sums[7] = d[2] * window[3] + sums[7];
                sums[8] = d[2] * window[4] + sums[8];
            }
            if (first_q + 3 < columns) {
                sums[0] = d[3] * window[9] + sums[0];
                sums[1] = d[3] * window[10] + sums[1];
                sums[2] = d[3] * window[11] + sums[2];
                sums[3] = d[3] * window[15] + sums[3];
                sums[4] = d[3] * window[16] + sums[4];
                sums[5] = d[3] * window[17] + sums[5];
                sums[6] = d[3] * window[3] + sums[6];
                sums[7] = d[3] * window[4] + sums[7];
                sums[8] = d[3] * window[5] + sums[8];
            }
            ++p;
            if (p == stop)
                break;
            floats_x(window + 6, next_x + 0);
            floats_dy(d, next_dy);
            row_dy(next_dy, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q,
                p + 1 < stop ? columns : 0);
            h = (p + 1) * 1 - (int)shape.pad_top + 2;
            row_x(next_x + 0, x, x_from + h * shape.x_row, (int)shape.c, first_w,
                p + 1 < stop && h >= 0 && h < (int)shape.h ? (int)shape.w : 0);
            ++h;
            if (first_q + 0 < columns) {
                sums[0] = d[0] * window[12] + sums[0];
                sums[1] = d[0] * window[13] + sums[1];
                sums[2] = d[0] * window[14] + sums[2];
                sums[3] = d[0] * window[0] + sums[3];
                sums[4] = d[0] * window[1] + sums[4];
                sums[5] = d[0] * window[2] + sums[5];
                sums[6] = d[0] * window[6] + sums[6];
                sums[7] = d[0] * window[7] + sums[7];
                sums[8] = d[0] * window[8] + sums[8];
            }
            if (first_q + 1 < columns) {
                sums[0] = d[1] * window[13] + sums[0];
                sums[1] = d[1] * window[14] + sums[1];
                sums[2] = d[1] * window[15] + sums[2];
                sums[3] = d[1] * window[1] + sums[3];
                sums[4] = d[1] * window[2] + sums[4];
                sums[5] = d[1] * window[3] + sums[5];
                sums[6] = d[1] * window[7] + sums[6];
                sums[7] = d[1] * window[8] + sums[7];
                sums[8] = d[1] * window[9] + sums[8];
            }
            if (first_q + 2 < columns) {
                sums[0] = d[2] * window[14] + sums[0];
                sums[1] = d[2] * window[15] + sums[1];
                sums[2] = d[2] * window[16] + sums[2];
                sums[3] = d[2] * window[2] + sums[3];
                sums[4] = d[2] * window[3] + sums[4];
                sums[5] = d[2] * window[4] + sums[5];
                sums[6] = d[2] * window[8] + sums[6];
                sums[7] = d[2] * window[9] + sums[7];
                sums[8] = d[2] * window[10] + sums[8];
            }
            if (first_q + 3 < columns) {
                sums[0] = d[3] * window[15] + sums[0];
                sums[1] = d[3] * window[16] + sums[1];
                sums[2] = d[3] * window[17] + sums[2];
                sums[3] = d[3] * window[3] + sums[3];
                sums[4] = d[3] * window[4] + sums[4];
                sums[5] = d[3] * window[5] + sums[5];
                sums[6] = d[3] * window[9] + sums[6];
                sums[7] = d[3] * window[10] + sums[7];
                sums[8] = d[3] * window[11] + sums[8];
            }
            ++p;
        }
    }
    shared[0 * 256 + id] = sums[0].s0;
    shared[1 * 256 + id] = sums[0].s1;
    shared[2 * 256 + id] = sums[1].s0;
    shared[3 * 256 + id] = sums[1].s1;
    shared[4 * 256 + id] = sums[2].s0;
    shared[5 * 256 + id] = sums[2].s1;
    shared[6 * 256 + id] = sums[3].s0;
    shared[7 * 256 + id] = sums[3].s1;
    shared[8 * 256 + id] = sums[4].s0;
    shared[9 * 256 + id] = sums[4].s1;
    shared[10 * 256 + id] = sums[5].s0;
    shared[11 * 256 + id] = sums[5].s1;
    shared[12 * 256 + id] = sums[6].s0;
    shared[13 * 256 + id] = sums[6].s1;
    shared[14 * 256 + id] = sums[7].s0;
    shared[15 * 256 + id] = sums[7].s1;
    shared[16 * 256 + id] = sums[8].s0;
    shared[17 * 256 + id] = sums[8].s1;
    for (int active = 256 / 2; active >= 8; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < active * (9 * 2); i += 256) {
            const int at = i / active * 256 + i % active;
            shared[at] += shared[at + active];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int filters = min(8 * 2, (int)shape.c - first_c);
    scratch += part * shape.elements + (long)first_c * 9;
    for (int i = id; i < filters * 9; i += 256) {
        const int filter = i / 9;
        scratch[i] = shared[(i % 9 * 2 + filter % 2) * 256 + filter / 2];
    }
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
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
    call_t call) {
    scratch += scratch_offset;
    dw += dw_offset;
    const shape_t shape = {
        .n = call.n,
        .c = 16,
        .h = 7,
        .w = 17,
        .p = 7,
        .q = 17,
        .dy_image = 1904,
        .dy_channel = 1,
        .dy_row = 272,
        .x_image = 1904,
        .x_channel = 1,
        .x_row = 272,
        .blocks = 1,
        .strips = 5,
        .parts = 3,
        .runs = 19,
        .pad_top = 1,
        .pad_left = 1,
        .elements = 144,
    };
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
