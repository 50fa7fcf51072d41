/* Step 3: bwd_weight_generic */

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
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long w_image;
    long w_channel;
    long w_row;
    long w_column;
    int n;
    int c;
    int h;
    int w;
    int k;
    int r;
    int s;
    int p;
    int q;
    int stride_h;
    int stride_w;
    int pad_top;
    int pad_left;
    int dilation_h;
    int dilation_w;
    int groups;
    int group_c;
    int group_k;
} sizes_t;

static float16 load_dy16(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

__attribute__((noinline))
static float16 edge_dy16(__global const half *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? vload_half(i, p) : 0.0f;
    return vload16(0, v);
}

static float16 window_dy16(__global const half *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_dy16(p, i);
    return edge_dy16(p, i, end);
}

static float16 load_x16(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

__attribute__((noinline))
static float16 edge_x16(__global const half *p, long i,
    long end) {
    float v[16];
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, ++i)
        v[lane] = i >= 0 && i < end ? vload_half(i, p) : 0.0f;
    return vload16(0, v);
}

static float16 window_x16(__global const half *p, long i,
    long end) {
    if (i >= 0 && i + 16 <= end)
        return load_x16(p, i);
    return edge_x16(p, i, end);
}

static float16 spread_x(__global const half *p, long i, long step, int16 hit,
    long end) {
    if (step <= 2) {
        float16 a = window_x16(p, i, end);
        if (step == 1)
            return a;
        float16 b = window_x16(p, i + 16, end);
        return (float16)(a.even, b.even);
    }
    float v[16];
    int in[16];
    vstore16(hit, 0, in);
    #pragma unroll 1
    for (int lane = 0; lane < 16; ++lane, i += step)
        v[lane] = in[lane] ? vload_half(i, p) : 0.0f;
    return vload16(0, v);
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

typedef struct {
    int part, group, k, c, r, s;
} place_t;

__attribute__((noinline))
static void tile(__global const half *dy, __global const half *x,
    __global float *dw, float beta, sizes_t sizes, long item) {
    int blocks_k = (sizes.group_k - 1) / 1 + 1;
    int blocks_c = (sizes.group_c - 1) / 1 + 1;
    int s = (int)(item % sizes.s);
    item /= sizes.s;
    int r = (int)(item % sizes.r);
    item /= sizes.r;
    int c = (int)(item % blocks_c);
    item /= blocks_c;
    int k = (int)(item % blocks_k);
    item /= blocks_k;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= 1)
        return;
    place_t at = { (int)item, group, k * 1, c * 1, r, s };
    long first_k = at.group * sizes.group_k;
    long first_c = at.group * sizes.group_c;
    long dy_end = sizes.n * sizes.dy_image;
    long x_end = sizes.n * sizes.x_image;
    int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 sum[1], total[1];
    #pragma unroll
    for (int t = 0; t < 1; ++t)
        sum[t] = total[t] = 0.0f;
    long rows = (long)sizes.n * sizes.p;
    long row = rows / 1 * at.part + min((long)at.part, rows % 1);
    long last = row + rows / 1 + (at.part < rows % 1);
    int pending = 0;
    for (; row < last; ++row) {
        int n = (int)(row / sizes.p);
        int p = (int)(row % sizes.p);
        int h = p * sizes.stride_h + at.r * sizes.dilation_h - sizes.pad_top;
        if (h < 0 || h >= sizes.h)
            continue;
        int step = sizes.stride_w;
        int left = at.s * sizes.dilation_w - sizes.pad_left;
        long dy_row = n * sizes.dy_image + p * sizes.dy_row;
        long x_row = n * sizes.x_image + h * sizes.x_row;
        long i[1], j[1];
        #pragma unroll
        for (int k = 0; k < 1; ++k)
            i[k] = dy_row + sizes.dy_channel * (first_k + min(at.k + k, sizes.group_k - 1));
        #pragma unroll
        for (int c = 0; c < 1; ++c)
            j[c] = x_row + sizes.x_channel * (first_c + min(at.c + c, sizes.group_c - 1));
        for (int q = 0; q < sizes.q; q += 16) {
            int first_w = left + q * step;
            int16 w = first_w + lanes * step;
            int16 hit = (q + lanes < sizes.q) & (w >= 0) & (w < sizes.w);
            float16 d[1], v[1];
            #pragma unroll
            for (int k = 0; k < 1; ++k)
                d[k] = select((float16)0.0f, window_dy16(dy, i[k] + q, dy_end), hit);
            #pragma unroll
            for (int c = 0; c < 1; ++c)
                v[c] = select((float16)0.0f, spread_x(x, j[c] + first_w, step, hit, x_end), hit);
            #pragma unroll
            for (int t = 0; t < 1; ++t)
                sum[t] += d[t / 1] * v[t % 1];
        }
        if (++pending == 8) {
            pending = 0;
            #pragma unroll
            for (int t = 0; t < 1; ++t) {
                total[t] += sum[t];
                sum[t] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int t = 0; t < 1; ++t)
        total[t] += sum[t];
    #pragma unroll
    for (int t = 0; t < 1; ++t) {
        int k = at.k + t / 1;
        int c = at.c + t % 1;
        long f = (first_k + k) * sizes.w_image + c * sizes.w_channel +
            at.r * sizes.w_row + at.s * sizes.w_column;
        if (k < sizes.group_k && c < sizes.group_c) {
            store_dw(dw, f, fsum16(total[t]), beta);
        }
    }
}

__kernel
void bwd_weight_generic(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
    __global float *dw, long dw_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    x += x_offset;
    dw += dw_offset;
    tile(dy, x, dw, beta, sizes, (long)get_global_id(0));
}
