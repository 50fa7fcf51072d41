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

static float load_dy(__global const float *p, long i) {
    return p[i];
}

static float window_dy(__global const float *p, long i,
    long end) {
    return i >= 0 && i < end ? load_dy(p, i) : 0.0f;
}

static float load_x(__global const float *p, long i) {
    return p[i];
}

static float window_x(__global const float *p, long i,
    long end) {
    return i >= 0 && i < end ? load_x(p, i) : 0.0f;
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

typedef struct {
    int part, group, k, c, r, s;
} place_t;

static void tile(__global const float *dy, __global const float *x,
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
    int lanes = 0;
    float sum[1], total[1];
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
        for (int q = 0; q < sizes.q; q += 1) {
            int first_w = left + q * step;
            int w = first_w + lanes * step;
            int hit = (q + lanes < sizes.q) & (w >= 0) & (w < sizes.w);
            float d[1], v[1];
            #pragma unroll
            for (int k = 0; k < 1; ++k)
                d[k] = select((float)0.0f, window_dy(dy, i[k] + q, dy_end), hit);
            #pragma unroll
            for (int c = 0; c < 1; ++c)
                v[c] = select(0.0f, window_x(x, j[c] + first_w, x_end), hit);
            #pragma unroll
            for (int t = 0; t < 1; ++t)
                sum[t] += d[t / 1] * v[t % 1];
        }
        if (++pending == 1) {
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
            store_dw(dw, f, fsum(total[t]), beta);
        }
    }
}

__kernel
void bwd_weight_generic(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *dw, long dw_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    x += x_offset;
    dw += dw_offset;
    tile(dy, x, dw, beta, sizes, (long)get_global_id(0));
}
