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

static float load_dy(__global const float *p, long i) {
    return p[i];
}

static float window_dy(__global const float *p, long i,
    long end) {
    return i >= 0 && i < end ? load_dy(p, i) : 0.0f;
}

static float load_w(__global const float *p, long i) {
    return p[i];
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void put_dx(__global float *p, long i, long step, int count,
    float value, float beta) {
    if (count > 0)
        store_dx(p, i, value, beta);
}

typedef struct {
    int n, group, c, h, phase, column;
} place_t;

static void tile(__global const float *dy, __global const float *w,
    __global float *dx, float beta, sizes_t sizes,
    long item) {
    int phases = min(sizes.stride_w, sizes.w);
    int tiles = (sizes.w - 1) / sizes.stride_w / 1 + 1;
    int blocks = (sizes.group_c - 1) / 4 + 1;
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
    place_t at = { (int)item, group, block * 4, h, phase, column * 1 };
    long first_k = at.group * sizes.group_k;
    long dy_end = sizes.n * sizes.dy_image;
    int lanes = 0;
    float total[4];
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        total[t] = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        int up = at.h + sizes.pad_top - r * sizes.dilation_h;
        int p = up / sizes.stride_h;
        if (up < 0 || up % sizes.stride_h != 0 || p >= sizes.p)
            continue;
        for (int s = 0; s < sizes.s; ++s) {
            int left = at.phase + sizes.pad_left - s * sizes.dilation_w;
            int q = left / sizes.stride_w + at.column;
            if (left % sizes.stride_w != 0 || q <= -1 || q >= sizes.q)
                continue;
            float sum[4];
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                sum[t] = 0.0f;
            long i = at.n * sizes.dy_image + first_k * sizes.dy_channel +
                p * sizes.dy_row + q;
            int past = sizes.group_c - 1 - at.c;
            long f = first_k * sizes.w_image + at.c * sizes.w_channel +
                r * sizes.w_row + s * sizes.w_column;
            for (int k = 0; k < sizes.group_k; ++k) {
                float v = window_dy(dy, i, dy_end);
                #pragma unroll
                for (int t = 0; t < 4; ++t)
                    sum[t] += v * load_w(w, f + min(t, past) * sizes.w_channel);
                i += sizes.dy_channel;
                f += sizes.w_image;
            }
            int hit = (q + lanes >= 0) & (q + lanes < sizes.q);
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                total[t] = select(total[t], total[t] + sum[t], hit);
        }
    }
    int columns = (sizes.w - 1 - at.phase) / sizes.stride_w + 1 - at.column;
    long step = sizes.stride_w * sizes.x_column;
    long i = at.n * sizes.x_image + (at.group * sizes.group_c + at.c) * sizes.x_channel +
        at.h * sizes.x_row + at.phase * sizes.x_column + at.column * step;
    #pragma unroll
    for (int t = 0; t < 4; ++t)
        if (at.c + t < sizes.group_c)
            put_dx(dx, i + t * sizes.x_channel, step, columns, total[t], beta);
}

__kernel
void bwd_data_generic(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    tile(dy, w, dx, beta, sizes, (long)get_global_id(0));
}
