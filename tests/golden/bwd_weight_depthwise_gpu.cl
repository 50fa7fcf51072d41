/* Step 3: bwd_weight_depthwise_gpu */

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
    long k;
    long k_blocks;
    long tap_blocks;
    long elements;
    long parts;
    long band;
    long bands;
} shape_t;

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long p;
    long q;
    long pad_top;
    long pad_left;
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long k;
    long k_blocks;
    long tap_blocks;
    long elements;
    long parts;
    long band;
    long bands;
} call_t;

static float load_dy(__global const half *p, long i) {
    return vload_half(i, p);
}

static float load_x(__global const half *p, long i) {
    return vload_half(i, p);
}

__kernel
void bwd_weight_depthwise_gpu(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
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
        .r = 3,
        .s = 3,
        .p = call.p,
        .q = call.q,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = call.pad_top,
        .pad_left = call.pad_left,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 1,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .dy_column = call.dy_column,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .x_column = call.x_column,
        .k = call.k,
        .k_blocks = call.k_blocks,
        .tap_blocks = call.tap_blocks,
        .elements = call.elements,
        .parts = call.parts,
        .band = call.band,
        .bands = call.bands,
    };
    __local float shared[128];
    const int id = get_local_id(0);
    long group = get_group_id(0);
    const long k = group % shape.k_blocks * 1 + id % 1;
    group /= shape.k_blocks;
    const int first_tap = group % shape.tap_blocks * 9;
    const long part = group / shape.tap_blocks;
    const int h_end = shape.h, w_end = shape.w;
    const int filter = shape.r * shape.s;
    float sums[9], totals[9];
    int up[9], left[9];
    #pragma unroll
    for (int t = 0; t < 9; ++t) {
        const int tap = first_tap + t;
        sums[t] = totals[t] = 0.0f;
        left[t] = tap % shape.s * shape.dilation_w - shape.pad_left;
        up[t] = tap < filter ? tap / shape.s * shape.dilation_h - shape.pad_top : (int)0x80000000;
    }
    const long strips = k < shape.k ? shape.n * shape.bands : 0;
    const long last = strips * (part + 1) / shape.parts;
    const int columns = shape.q;
    int pending = 0;
    for (long strip = strips * part / shape.parts; strip < last; ++strip) {
        const int first_p = strip % shape.bands * shape.band;
        const int pixels = (min(first_p + shape.band, shape.p) - first_p) * columns;
        const long n = strip / shape.bands;
        const long from = n * shape.dy_image + k * shape.dy_channel;
        const long x_from = n * shape.x_image + k / shape.planes * shape.x_channel;
        for (int pixel = id / 1; pixel < pixels; pixel += 128 / 1) {
            const int p = first_p + pixel / columns;
            const int q = pixel % columns;
            const float d = load_dy(dy, from + p * shape.dy_row + q * shape.dy_column);
            const int first_h = p * shape.stride_h;
            const int first_w = q * shape.stride_w;
            #pragma unroll
            for (int t = 0; t < 9; ++t) {
                const int h = first_h + up[t];
                const int w = first_w + left[t];
                if (h >= 0 && h < h_end && w >= 0 && w < w_end)
                    sums[t] += d * load_x(x, x_from + h * shape.x_row + w * shape.x_column);
            }
            if (++pending == 256) {
                pending = 0;
                #pragma unroll
                for (int t = 0; t < 9; ++t) {
                    totals[t] += sums[t];
                    sums[t] = 0.0f;
                }
            }
        }
    }
    #pragma unroll
    for (int t = 0; t < 9; ++t) {
        totals[t] += sums[t];
        sums[t] = 0.0f;
    }
    #pragma unroll
    for (int t = 0; t < 9; ++t) {
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = totals[t];
        for (int half_size = 128 / 2; half_size >= 1; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (id < half_size)
                shared[id] += shared[id + half_size];
        }
        if (id < 1 && k < shape.k && first_tap + t < filter)
            scratch[part * shape.elements + k * filter + first_tap + t] = shared[id];
    }
}

/*
 * Partial sums in scratch: the first count elements of a
 * vector, written step apart.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float get_part(__global const float *p, long i, int count)
{
    return count > 0 ? p[i] : 0.0f;
}

static void put_part(__global float *p, long i, long step, int count,
                     float value)
{
    if (count > 0)
        p[i] = value;
}

static float16 get_part16(__global const float *p, long i, int count)
{
    if (count >= 16)
        return vload16(0, p + i);
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? p[i + lane] : 0.0f;
    return vload16(0, v);
}

static void put_part16(__global float *p, long i, long step, int count,
                       float16 value)
{
    if (step == 1 && count >= 16) {
        vstore16(value, 0, p + i);
        return;
    }
    float v[16];
    vstore16(value, 0, v);
    count = min(count, 16);
    for (int lane = 0; lane < count; ++lane)
        p[i + lane * step] = v[lane];
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void put_dw(__global float *p, long i, long step, int count,
    float value, float beta) {
    if (count > 0)
        store_dw(p, i, value, beta);
}

__kernel
void bwd_weight_depthwise_gpu_sum(
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
        .r = 3,
        .s = 3,
        .p = call.p,
        .q = call.q,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = call.pad_top,
        .pad_left = call.pad_left,
        .dilation_h = 1,
        .dilation_w = 1,
        .planes = 1,
        .dy_image = call.dy_image,
        .dy_channel = call.dy_channel,
        .dy_row = call.dy_row,
        .dy_column = call.dy_column,
        .x_image = call.x_image,
        .x_channel = call.x_channel,
        .x_row = call.x_row,
        .x_column = call.x_column,
        .k = call.k,
        .k_blocks = call.k_blocks,
        .tap_blocks = call.tap_blocks,
        .elements = call.elements,
        .parts = call.parts,
        .band = call.band,
        .bands = call.bands,
    };
    const long i = (long)get_global_id(0) * 1;
    const int count = min((long)1, shape.elements - i);
    if (count <= 0)
        return;
    float total = 0.0f;
    for (int part = 0; part < (int)shape.parts; ++part)
        total += get_part(scratch, part * shape.elements + i, count);
    put_dw(dw, i, 1, count, total, beta);
}
