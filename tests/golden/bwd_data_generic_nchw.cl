/* Step 2: bwd_data_generic */

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

__attribute__((noinline))
static void prepare(__global const float *w, __global float *scratch,
    sizes_t sizes, long item) {
    scratch += item * sizes.group_c;
    int k = (int)(item % sizes.group_k);
    item /= sizes.group_k;
    int s = (int)(item % sizes.s);
    item /= sizes.s;
    int r = (int)(item % sizes.r);
    item /= sizes.r;
    if (item >= sizes.groups)
        return;
    long f = (item * sizes.group_k + k) * sizes.w_image +
        r * sizes.w_row + s * sizes.w_column;
    for (int c = 0; c < sizes.group_c; ++c)
        scratch[c] = load_w(w, f + c * sizes.w_channel);
}

__kernel
void bwd_data_generic_weights(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    w += w_offset;
    scratch += scratch_offset;
    prepare(w, scratch, sizes, (long)get_global_id(0));
}

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

static void store_dx(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_dx16(__global float *p, long i,
    float16 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    vstore16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_dx16(__global float *p, long i, long step,
    int count, float16 value, float beta) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_dx(p, i + lane * step, v[lane], beta);
}

static void put_dx16(__global float *p, long i, long step, int count,
    float16 value, float beta) {
    if (step == 1 && count >= 16)
        store_dx16(p, i, value, beta);
    else
        scatter_dx16(p, i, step, min(count, 16), value, beta);
}

typedef struct {
    int n, group, c, h, phase, column;
} place_t;

__attribute__((noinline))
static void tile(__global const half *dy, __global const float *w,
    __global float *dx, float beta, sizes_t sizes,
    long item) {
    int phases = min(sizes.stride_w, sizes.w);
    int tiles = (sizes.w - 1) / sizes.stride_w / 16 + 1;
    int blocks = (sizes.group_c - 1) / 2 + 1;
    int column = (int)(item % tiles);
    item /= tiles;
    int phase = (int)(item % phases);
    item /= phases;
    int h = (int)(item % sizes.h);
    item /= sizes.h;
    int block = (int)(item % blocks);
    item /= blocks;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= sizes.n)
        return;
    place_t at = { (int)item, group, block * 2, h, phase, column * 16 };
    long first_k = at.group * sizes.group_k;
    long dy_end = sizes.n * sizes.dy_image;
    int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 total[2];
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        total[t] = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        int up = at.h + sizes.pad_top - r * sizes.dilation_h;
        int p = up / sizes.stride_h;
        if (up < 0 || up % sizes.stride_h != 0 || p >= sizes.p)
            continue;
        for (int s = 0; s < sizes.s; ++s) {
            int left = at.phase + sizes.pad_left - s * sizes.dilation_w;
            int q = left / sizes.stride_w + at.column;
            if (left % sizes.stride_w != 0 || q <= -16 || q >= sizes.q)
                continue;
            float16 sum[2];
            #pragma unroll
            for (int t = 0; t < 2; ++t)
                sum[t] = 0.0f;
            long i = at.n * sizes.dy_image + first_k * sizes.dy_channel +
                p * sizes.dy_row + q;
            long tap = ((long)at.group * sizes.r + r) * sizes.s + s;
            long f = tap * sizes.group_k * sizes.group_c + at.c;
            for (int k = 0; k < sizes.group_k; ++k) {
                float16 v = window_dy16(dy, i, dy_end);
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                    sum[t] += v * w[f + t];
                i += sizes.dy_channel;
                f += sizes.group_c;
            }
            int16 hit = (q + lanes >= 0) & (q + lanes < sizes.q);
            #pragma unroll
            for (int t = 0; t < 2; ++t)
                total[t] = select(total[t], total[t] + sum[t], hit);
        }
    }
    int columns = (sizes.w - 1 - at.phase) / sizes.stride_w + 1 - at.column;
    long step = sizes.stride_w * sizes.x_column;
    long i = at.n * sizes.x_image + (at.group * sizes.group_c + at.c) * sizes.x_channel +
        at.h * sizes.x_row + at.phase * sizes.x_column + at.column * step;
    #pragma unroll
    for (int t = 0; t < 2; ++t)
        if (at.c + t < sizes.group_c)
            put_dx16(dx, i + t * sizes.x_channel, step, columns, total[t], beta);
}

__kernel
void bwd_data_generic(
    __global const half *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    scratch += scratch_offset;
    dx += dx_offset;
    tile(dy, scratch, dx, beta, sizes, (long)get_global_id(0));
}
