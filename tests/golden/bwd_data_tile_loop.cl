/* Step 2: bwd_data_tile */

typedef struct {
    long dy_channels;
    long dy_rows;
    long dy_columns;
    long dy_pitch;
    long dy_start;
    long dy_length;
    long dy_tail;
    long dy_image_stride;
    long dy_channel_stride;
    long dy_offset;
    long c;
    long h;
    long w;
    long k;
    long r;
    long s;
    long filter;
    long origin;
    long row_step;
    long column_step;
    long weights;
    long run;
    long k_block;
    long c_blocks;
    long tiles;
    long chunks;
    long span;
} shape_t;

static float16 round_dy16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int16)(0x427fe000)), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, (int16)(0x38800000), (int16)(0x47000000));
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
}

static float16 load_dy16(__global const float *p, long i) {
    return round_dy16(vload16(0, p + i));
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

static float16 load_dy_plane(__global const half *p, long i) {
    return vload_half16(0, p + i);
}

static void store_dy_plane(__global half *p, int i, float16 v) {
    vstore_half16(v, 0, p + i);
}

static void zeros_dy(__global half *p, int i) {
    vstore16((ushort16)(0), 0, (__global ushort *)p + i);
}

static void zero_dy_plane(__global half *p, int from, int to) {
    for (; from + 16 <= to; from += 16) {
        zeros_dy(p, from);
    }
    for (; from < to; ++from) {
        ((__global ushort *)p)[from] = 0;
    }
}

static float16 load_dy_short(__global const float *p, long i, long total, int columns) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (i + 16 <= total) {
        return select((float16)(0.0f), load_dy16(p, i), lane < columns);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < columns; ++j) {
        row[j] = load_dy(p, i + j);
    }
    return vload16(0, row);
}

static void store_dy_short(__global half *p, int at, float16 v, int columns, int pitch, int length) {
    if (at + 16 <= length) {
        store_dy_plane(p, at, v);
        zero_dy_plane(p, at + 16, at + pitch);
        return;
    }
    float row[16];
    int done = 0;
    vstore16(v, 0, row);
    if (columns & 8) {
        vstore_half8(vload8(0, row + done), 0, p + at + done);
        done += 8;
    }
    if (columns & 4) {
        vstore_half4(vload4(0, row + done), 0, p + at + done);
        done += 4;
    }
    if (columns & 2) {
        vstore_half2(vload2(0, row + done), 0, p + at + done);
        done += 2;
    }
    if (columns & 1) {
        vstore_half(row[done], 0, p + at + done);
    }
    zero_dy_plane(p, at + columns, at + pitch);
}

static void pack_dy_long(__global const float *p, long i, __global half *plane, int at, int columns, int gap) {
    if (gap > 16)
        zero_dy_plane(plane, at + columns, at + columns + gap);
    else if (gap > 0)
        zeros_dy(plane, at + columns + gap - 16);
    for (int j = 0; j < columns; j += 16) {
        const int from = min(j, columns - 16);
        store_dy_plane(plane, at + from, load_dy16(p, i + from));
    }
}

__kernel
void bwd_data_tile_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch,
    shape_t shape) {
    dy += dy_offset;
    scratch += scratch_offset;
    const int rows = shape.dy_rows;
    const int columns = shape.dy_columns;
    const int pitch = shape.dy_pitch;
    const int length = shape.dy_length;
    const long channels = shape.dy_channels;
    const long total = batch * channels * rows * columns;
    const long index = get_group_id(0);
    const long image = index / channels;
    __global half *plane = ((__global half *)(scratch + shape.dy_offset)) + image * shape.dy_image_stride + index % channels * shape.dy_channel_stride;
    long i = index * rows * columns;
    int at = shape.dy_start;
    zero_dy_plane(plane, 0, at);
    for (int row = 0; row < rows; ++row) {
        if (columns < 16) {
            store_dy_short(plane, at, load_dy_short(dy, i, total, columns), columns, pitch, length);
        } else {
            pack_dy_long(dy, i, plane, at, columns, pitch - columns);
        }
        i += columns;
        at += pitch;
    }
    const int tail = image + 1 == batch ? shape.dy_tail : 0;
    zero_dy_plane(plane, at - pitch + columns, length + tail);
}

static float16 round_w16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int16)(0x477fe000)), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, (int16)(0x38800000), (int16)(0x47000000));
    float16 m = as_float16(power + 0x06800000);
    a = (a + m) - m;
    return as_float16(as_int16(a) | (as_int16(v) & (int)0x80000000));
}

static float16 load_w16(__global const float *p, long i) {
    return round_w16(vload16(0, p + i));
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

__kernel
void bwd_data_tile_pack_w(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    shape_t shape) {
    w += w_offset;
    scratch += scratch_offset;
    const long item = get_group_id(0);
    const long k = item % shape.k;
    const long c = item / shape.k * 4;
    const int count = min(4, (int)(shape.c - c)) * shape.filter;
    const long from = (k * shape.c + c) * shape.filter;
    __global float *to = scratch + shape.weights + item * shape.run;
    const int last = count - 16;
    for (int i = 0; i < last; i += 16) {
        vstore16(load_w16(w, from + i), 0, to + i);
    }
    if (last >= 0) {
        vstore16(load_w16(w, from + last), 0, to + last);
    } else {
        for (int i = 0; i < count; ++i) {
            to[i] = load_w(w, from + i);
        }
    }
    for (int i = count; i < shape.run; ++i) {
        to[i] = 0.0f;
    }
}

static void multiply(__global const half *plane, __global const float *weights, shape_t shape, int channels, float *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum0_1 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum1_1 = 0.0f;
    float16 sum2_0 = 0.0f;
    float16 sum2_1 = 0.0f;
    float16 sum3_0 = 0.0f;
    float16 sum3_1 = 0.0f;
    for (int k = 0; k < channels; ++k) {
        for (int r = 0; r < shape.r; ++r) {
            for (int s = 0; s < shape.s; ++s) {
                const long shift = -(r * shape.row_step + s * shape.column_step);
                __global const float *a = weights + r * shape.s + s;
                const float16 b0 = load_dy_plane(plane, shift + 0 * 16);
                const float16 b1 = load_dy_plane(plane, shift + 1 * 16);
                sum0_0 = a[0 * shape.filter] * b0 + sum0_0;
                sum0_1 = a[0 * shape.filter] * b1 + sum0_1;
                sum1_0 = a[1 * shape.filter] * b0 + sum1_0;
                sum1_1 = a[1 * shape.filter] * b1 + sum1_1;
                sum2_0 = a[2 * shape.filter] * b0 + sum2_0;
                sum2_1 = a[2 * shape.filter] * b1 + sum2_1;
                sum3_0 = a[3 * shape.filter] * b0 + sum3_0;
                sum3_1 = a[3 * shape.filter] * b1 + sum3_1;
            }
        }
        plane += shape.dy_length;
        weights += shape.run;
    }
    vstore16(vload16(0, sums + 0 * 32 + 0 * 16) + sum0_0, 0, sums + 0 * 32 + 0 * 16);
    vstore16(vload16(0, sums + 0 * 32 + 1 * 16) + sum0_1, 0, sums + 0 * 32 + 1 * 16);
    vstore16(vload16(0, sums + 1 * 32 + 0 * 16) + sum1_0, 0, sums + 1 * 32 + 0 * 16);
    vstore16(vload16(0, sums + 1 * 32 + 1 * 16) + sum1_1, 0, sums + 1 * 32 + 1 * 16);
    vstore16(vload16(0, sums + 2 * 32 + 0 * 16) + sum2_0, 0, sums + 2 * 32 + 0 * 16);
    vstore16(vload16(0, sums + 2 * 32 + 1 * 16) + sum2_1, 0, sums + 2 * 32 + 1 * 16);
    vstore16(vload16(0, sums + 3 * 32 + 0 * 16) + sum3_0, 0, sums + 3 * 32 + 0 * 16);
    vstore16(vload16(0, sums + 3 * 32 + 1 * 16) + sum3_1, 0, sums + 3 * 32 + 1 * 16);
}

static void store_dx16(__global float *p, long i,
    float16 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload16(0, p + i);
    }
    vstore16(value, 0, p + i);
}

static void store_dx8(__global float *p, long i,
    float8 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload8(0, p + i);
    }
    vstore8(value, 0, p + i);
}

static void store_dx4(__global float *p, long i,
    float4 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload4(0, p + i);
    }
    vstore4(value, 0, p + i);
}

static void store_dx2(__global float *p, long i,
    float2 value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload2(0, p + i);
    }
    vstore2(value, 0, p + i);
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_run(__global float *dx, long i, const float *sums, int count, float beta) {
    for (; count >= 16; count -= 16) {
        store_dx16(dx, i, vload16(0, sums), beta);
        i += 16;
        sums += 16;
    }
    if (count & 8) {
        store_dx8(dx, i, vload8(0, sums), beta);
        i += 8;
        sums += 8;
    }
    if (count & 4) {
        store_dx4(dx, i, vload4(0, sums), beta);
        i += 4;
        sums += 4;
    }
    if (count & 2) {
        store_dx2(dx, i, vload2(0, sums), beta);
        i += 2;
        sums += 2;
    }
    if (count & 1) {
        store_dx(dx, i, *sums, beta);
        i += 1;
        sums += 1;
    }
}

static void store_positions(__global float *dx, int position, shape_t shape, const float *sums, float beta) {
    const int pitch = shape.dy_pitch;
    const int width = shape.w;
    int h = position / pitch;
    int w = position % pitch;
    for (int i = 0; i < 32 && h < shape.h; ++h) {
        const int count = min(width - w, 32 - i);
        if (count > 0) {
            store_run(dx, h * width + w, sums + i, count, beta);
        }
        i += pitch - w;
        w = 0;
    }
}

__kernel
void bwd_data_tile(
    __global float *scratch, long scratch_offset,
    __global float *dx, long dx_offset,
    float beta,
    shape_t shape) {
    scratch += scratch_offset;
    dx += dx_offset;
    const long item = get_group_id(0);
    const long c_block = item % shape.c_blocks;
    const int chunk = item / shape.c_blocks % shape.chunks;
    const long image = item / shape.c_blocks / shape.chunks;
    const long c = c_block * 4;
    const long pixels = shape.h * shape.w;
    const int channels = min(4, (int)(shape.c - c));
    __global const half *plane = ((__global half *)(scratch + shape.dy_offset)) + image * shape.dy_image_stride + shape.origin;
    __global const float *weights = scratch + shape.weights + c_block * shape.k * shape.run;
    dx += (image * shape.c + c) * pixels;
    float sums[4 * 32];
    const int end = min((chunk + 1) * shape.span, shape.tiles);
    for (int i = chunk * shape.span; i < end; ++i) {
        const int position = i * 32;
        for (int j = 0; j < 4 * 32; ++j) {
            sums[j] = 0.0f;
        }
        for (long k = 0; k < shape.k; k += shape.k_block) {
            multiply(plane + position + k * shape.dy_length, weights + k * shape.run, shape, min(shape.k_block, shape.k - k), sums);
        }
        for (int j = 0; j < channels; ++j) {
            store_positions(dx + j * pixels, position, shape, sums + j * 32, beta);
        }
    }
}
