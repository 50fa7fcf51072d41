/* Step 2: forward_generic */

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

static float load_x(__global const half *p, long i) {
    return vload_half(i, p);
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

__attribute__((noinline))
static float16 gather_x16(__global const half *x, long i, int stride,
    int first, int last) {
    float v[16] = { 0.0f };
    for (int lane = first; lane < last; ++lane)
        v[lane] = load_x(x, i + (long)lane * stride);
    return vload16(0, v);
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

static float load_b(__global const float *p, long i) {
    return p[i];
}

__attribute__((noinline))
static void prepare(__global const float *w, __global float *scratch,
    sizes_t sizes, long item) {
    scratch += item * sizes.group_k;
    int c = (int)(item % sizes.group_c);
    item /= sizes.group_c;
    int s = (int)(item % sizes.s);
    item /= sizes.s;
    int r = (int)(item % sizes.r);
    item /= sizes.r;
    if (item >= sizes.groups)
        return;
    long f = item * sizes.group_k * sizes.w_image + c * sizes.w_channel +
        r * sizes.w_row + s * sizes.w_column;
    for (int k = 0; k < sizes.group_k; ++k)
        scratch[k] = load_w(w, f + k * sizes.w_image);
}

__kernel
void forward_generic_weights(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    w += w_offset;
    scratch += scratch_offset;
    prepare(w, scratch, sizes, (long)get_global_id(0));
}

static void store_y(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    value = select(value, (float)0.0f, value < 0.0f);
    p[i] = value;
}

static void store_y16(__global float *p, long i,
    float16 value, float beta) {
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    value = select(value, (float16)0.0f, value < 0.0f);
    vstore16(value, 0, p + i);
}

__attribute__((noinline))
static void scatter_y16(__global float *p, long i, long step,
    int count, float16 value, float beta) {
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        store_y(p, i + lane * step, v[lane], beta);
}

static void put_y16(__global float *p, long i, long step, int count,
    float16 value, float beta) {
    if (step == 1 && count >= 16)
        store_y16(p, i, value, beta);
    else
        scatter_y16(p, i, step, min(count, 16), value, beta);
}

typedef struct {
    int n, group, k, p, q;
} place_t;

__attribute__((noinline))
static void tile(__global const half *x, __global const float *w,
    __global const float *b, __global float *y, float beta,
    sizes_t sizes, long item) {
    int tiles = (sizes.q - 1) / 16 + 1;
    int blocks = (sizes.group_k - 1) / 4 + 1;
    int column = (int)(item % tiles);
    item /= tiles;
    int p = (int)(item % sizes.p);
    item /= sizes.p;
    int block = (int)(item % blocks);
    item /= blocks;
    int group = (int)(item % sizes.groups);
    item /= sizes.groups;
    if (item >= sizes.n)
        return;
    place_t at = { (int)item, group, block * 4, p, column * 16 };
    long first_k = (long)at.group * sizes.group_k + at.k;
    long x_end = sizes.n * sizes.x_image;
    int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 total[4];
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        total[t] = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        int row = at.p * sizes.stride_h + r * sizes.dilation_h - sizes.pad_top;
        if (row < 0 || row >= sizes.h)
            continue;
        for (int s = 0; s < sizes.s; ++s) {
            int column = at.q * sizes.stride_w + s * sizes.dilation_w - sizes.pad_left;
            int first = column < 0 ? (-1 - column) / sizes.stride_w + 1 : 0;
            int last = column < sizes.w
                ? (sizes.w - 1 - column) / sizes.stride_w + 1 : 0;
            if (first >= min(last, 16))
                continue;
            long tap = ((long)at.group * sizes.r + r) * sizes.s + s;
            long f = tap * sizes.group_c * sizes.group_k + at.k;
            long line = at.n * sizes.x_image + row * sizes.x_row +
                (long)at.group * sizes.group_c * sizes.x_channel;
            float16 sum[4];
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                sum[t] = 0.0f;
            long i = line + column;
            for (int c = 0; c < sizes.group_c; ++c) {
                float16 v = sizes.stride_w == 1
                    ? window_x16(x, i, x_end)
                    : gather_x16(x, i, sizes.stride_w, first, min(last, 16));
                #pragma unroll
                for (int t = 0; t < 4; ++t)
                    sum[t] += v * w[f + t];
                i += sizes.x_channel;
                f += sizes.group_k;
            }
            int16 hit = (lanes >= first) & (lanes < last);
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                total[t] = select(total[t], total[t] + sum[t], hit);
        }
    }
    if (b) {
        #pragma unroll
        for (int t = 0; t < 4; ++t)
            total[t] += load_b(b, first_k + min(t, sizes.group_k - 1 - at.k));
    }
    long i = at.n * sizes.dy_image + first_k * sizes.dy_channel +
        at.p * sizes.dy_row + at.q * sizes.dy_column;
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        if (at.k + t < sizes.group_k)
            put_y16(y, i + t * sizes.dy_channel, 1, sizes.q - at.q, total[t], beta);
}

__kernel
void forward_generic(
    __global const half *x, long x_offset,
    __global float *scratch, long scratch_offset,
    __global const float *b, long b_offset,
    __global float *y, long y_offset,
    float beta,
    sizes_t sizes) {
    x += x_offset;
    scratch += scratch_offset;
    b += b_offset;
    y += y_offset;
    tile(x, scratch, b, y, beta, sizes, (long)get_global_id(0));
}
