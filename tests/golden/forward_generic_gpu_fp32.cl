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

static float load_x(__global const float *p, long i) {
    return p[i];
}

static float load_w(__global const float *p, long i) {
    return p[i];
}

static float load_b(__global const float *p, long i) {
    return p[i];
}

static void store_y(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void put_y(__global float *p, long i, long step, int count,
    float value, float beta) {
    if (count > 0)
        store_y(p, i, value, beta);
}

typedef struct {
    int n, group, k, p, q;
} place_t;

static void tile(__global const float *x, __global const float *w,
    __global const float *b, __global float *y, float beta,
    sizes_t sizes, long item) {
    int tiles = (sizes.q - 1) / 1 + 1;
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
    place_t at = { (int)item, group, block * 4, p, column * 1 };
    long first_k = (long)at.group * sizes.group_k + at.k;
    int lanes = 0;
    float total[4];
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
            if (first >= min(last, 1))
                continue;
            long f = ((long)at.group * sizes.group_k + at.k) * sizes.w_image +
                r * sizes.w_row + s * sizes.w_column;
            long line = at.n * sizes.x_image + row * sizes.x_row +
                (long)at.group * sizes.group_c * sizes.x_channel;
            float sum[4];
            #pragma unroll
            for (int t = 0; t < 4; ++t)
                sum[t] = 0.0f;
            int past = sizes.group_k - 1 - at.k;
            long i = line + column;
            for (int c = 0; c < sizes.group_c; ++c) {
                float v = load_x(x, i);
                #pragma unroll
                for (int t = 0; t < 4; ++t)
                    sum[t] += v * load_w(w, f + min(t, past) * sizes.w_image);
                i += sizes.x_channel;
                f += sizes.w_channel;
            }
            int hit = (lanes >= first) & (lanes < last);
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
            put_y(y, i + t * sizes.dy_channel, 1, sizes.q - at.q, total[t], beta);
}

__kernel
void forward_generic(
    __global const float *x, long x_offset,
    __global const float *w, long w_offset,
    __global const float *b, long b_offset,
    __global float *y, long y_offset,
    float beta,
    sizes_t sizes) {
    x += x_offset;
    w += w_offset;
    b += b_offset;
    y += y_offset;
    tile(x, w, b, y, beta, sizes, (long)get_global_id(0));
}
