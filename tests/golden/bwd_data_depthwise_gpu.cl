/* Step 2: bwd_data_depthwise_gpu */

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

static float4 load_dy4(__global const half *p, long i) {
    return vload_half4(0, p + i);
}

static float load_w(__global const half *p, long i) {
    return vload_half(i, p);
}

static void store_dx4(__global float *p, long i,
    float4 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload4(0, p + i);
    }
    vstore4(value, 0, p + i);
}

static float4 weight_of(__global const half *w, long f, long filter)
{
    return (float4)(load_w(w, f), load_w(w, f + filter), load_w(w, f + 2 * filter), load_w(w, f + 3 * filter));
}

static int divide(int a, int stride) {
    return stride == 1 ? a : a / stride;
}

__kernel
void bwd_data_depthwise_gpu(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    uint item = (uint)get_global_id(0);
    const int blocks = sizes.c / 4;
    int block = (int)(item % blocks);
    item /= blocks;
    int w_column = (int)(item % sizes.w);
    item /= sizes.w;
    int h = (int)(item % sizes.h);
    item /= sizes.h;
    const int c = block * 4;
    if (item >= sizes.n)
        return;
    const int k = c * sizes.group_k;
    const long image = item * sizes.dy_image + k * sizes.dy_channel;
    float4 sum = 0.0f;
    for (int r = 0; r < sizes.r; ++r) {
        const int up = h + sizes.pad_top - r * sizes.dilation_h;
        const int p = divide(up, sizes.stride_h);
        if (up < 0 || p >= sizes.p || p * sizes.stride_h != up)
            continue;
        const long row = image + p * sizes.dy_row;
        const long filter = k * sizes.w_image + r * sizes.w_row;
        for (int s = 0; s < sizes.s; ++s) {
            const int left = w_column + sizes.pad_left - s * sizes.dilation_w;
            const int q = divide(left, sizes.stride_w);
            if (left < 0 || q >= sizes.q || q * sizes.stride_w != left)
                continue;
            long i = row + q * sizes.dy_column;
            long f = filter + s * sizes.w_column;
            for (int plane = 0; plane < sizes.group_k; ++plane) {
                sum += load_dy4(dy, i) * weight_of(w, f, sizes.w_image);
                i += sizes.dy_channel;
                f += sizes.w_image;
            }
        }
    }
    store_dx4(dx, item * sizes.x_image + c * sizes.x_channel + h * sizes.x_row +
        w_column * sizes.x_column, sum, beta);
}
