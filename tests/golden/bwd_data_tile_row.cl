/* Step 4: bwd_data_tile */

static float16 round_dy16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, 0x427fe000), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, 0x38800000, 0x47000000);
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
    bits = select(min(bits, 0x427fe000), bits, bits >= 0x7f800000);
    float a = as_float(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, 0x38800000, 0x47000000);
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

static float16 load_dy_short(__global const float *p, long i, long total) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,
                               8, 9, 10, 11, 12, 13, 14, 15);
    if (i + 16 <= total) {
        return select((float16)(0.0f), load_dy16(p, i), lane < 7);
    }
    float row[16] = {0.0f};
    for (int j = 0; j < 7; ++j) {
        row[j] = load_dy(p, i + j);
    }
    return vload16(0, row);
}

static void store_dy_short(__global half *p, int at, float16 v) {
    if (at + 16 <= 80) {
        store_dy_plane(p, at, v);
    } else {
        vstore_half4(v.s0123, 0, p + at + 0);
        vstore_half2(v.s45, 0, p + at + 4);
        vstore_half(v.s6, 0, p + at + 6);
    }
}

__kernel
void bwd_data_tile_pack_dy(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    int batch) {
    dy += dy_offset;
    scratch += scratch_offset;
    const long index = get_group_id(0);
    const long image = index / 3;
    __global half *plane = ((__global half *)(scratch + 0L)) + image * 240 + index % 3 * 80;
    const long total = (long)batch * 3 * 7 * 7;
    long i = index * 7 * 7;
    int at = 9;
    zero_dy_plane(plane, 0, at);
    for (int row = 0; row < 7; ++row) {
        store_dy_short(plane, at, load_dy_short(dy, i, total));
        zero_dy_plane(plane, at + 7, at + 8);
        i += 7;
        at += 8;
    }
    zero_dy_plane(plane, 64, 80);
}

static float16 round_w16(float16 v) {
    int16 bits = as_int16(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, 0x477fe000), bits, bits >= 0x7f800000);
    float16 a = as_float16(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int16 power = clamp(as_int16(a) & 0x7f800000, 0x38800000, 0x47000000);
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
    bits = select(min(bits, 0x477fe000), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, 0x38800000, 0x47000000);
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
    __global float *scratch, long scratch_offset) {
    w += w_offset;
    scratch += scratch_offset;
    const int k = get_group_id(0) % 3;
    const int c = get_group_id(0) / 3 * 4;
    const int count = min(4, 5 - c) * 9;
    const long from = ((long)k * 5 + c) * 9;
    __global float *to = scratch + 320 + (long)get_group_id(0) * 36;
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
    for (int i = count; i < 36; ++i) {
        to[i] = 0.0f;
    }
}

static void multiply(__global const half *plane, __global const float *weights, float *sums) {
    float16 sum0_0 = 0.0f;
    float16 sum0_1 = 0.0f;
    float16 sum1_0 = 0.0f;
    float16 sum1_1 = 0.0f;
    float16 sum2_0 = 0.0f;
    float16 sum2_1 = 0.0f;
    float16 sum3_0 = 0.0f;
    float16 sum3_1 = 0.0f;
    for (int k = 0; k < 3; ++k) {
        for (int r = 0; r < 3; ++r) {
            {
                const int shift = -(r * 8 + 0 * 1);
                __global const float *a = weights + r * 3 + 0;
                const float16 b0 = load_dy_plane(plane, shift + 0 * 16);
                const float16 b1 = load_dy_plane(plane, shift + 1 * 16);
                sum0_0 = a[0 * 9] * b0 + sum0_0;
                sum0_1 = a[0 * 9] * b1 + sum0_1;
                sum1_0 = a[1 * 9] * b0 + sum1_0;
                sum1_1 = a[1 * 9] * b1 + sum1_1;
                sum2_0 = a[2 * 9] * b0 + sum2_0;
                sum2_1 = a[2 * 9] * b1 + sum2_1;
                sum3_0 = a[3 * 9] * b0 + sum3_0;
                sum3_1 = a[3 * 9] * b1 + sum3_1;
            }
            {
                const int shift = -(r * 8 + 1 * 1);
                __global const float *a = weights + r * 3 + 1;
                const float16 b0 = load_dy_plane(plane, shift + 0 * 16);
                const float16 b1 = load_dy_plane(plane, shift + 1 * 16);
                sum0_0 = a[0 * 9] * b0 + sum0_0;
                sum0_1 = a[0 * 9] * b1 + sum0_1;
                sum1_0 = a[1 * 9] * b0 + sum1_0;
                sum1_1 = a[1 * 9] * b1 + sum1_1;
                sum2_0 = a[2 * 9] * b0 + sum2_0;
                sum2_1 = a[2 * 9] * b1 + sum2_1;
                sum3_0 = a[3 * 9] * b0 + sum3_0;
                sum3_1 = a[3 * 9] * b1 + sum3_1;
            }
            {
                const int shift = -(r * 8 + 2 * 1);
                __global const float *a = weights + r * 3 + 2;
                const float16 b0 = load_dy_plane(plane, shift + 0 * 16);
                const float16 b1 = load_dy_plane(plane, shift + 1 * 16);
                sum0_0 = a[0 * 9] * b0 + sum0_0;
                sum0_1 = a[0 * 9] * b1 + sum0_1;
                sum1_0 = a[1 * 9] * b0 + sum1_0;
                sum1_1 = a[1 * 9] * b1 + sum1_1;
                sum2_0 = a[2 * 9] * b0 + sum2_0;
                sum2_1 = a[2 * 9] * b1 + sum2_1;
                sum3_0 = a[3 * 9] * b0 + sum3_0;
                sum3_1 = a[3 * 9] * b1 + sum3_1;
            }
        }
        plane += 80;
        weights += 36;
    }
    vstore16(sum0_0, 0, sums + 0 * 32 + 0 * 16);
    vstore16(sum0_1, 0, sums + 0 * 32 + 1 * 16);
    vstore16(sum1_0, 0, sums + 1 * 32 + 0 * 16);
    vstore16(sum1_1, 0, sums + 1 * 32 + 1 * 16);
    vstore16(sum2_0, 0, sums + 2 * 32 + 0 * 16);
    vstore16(sum2_1, 0, sums + 2 * 32 + 1 * 16);
    vstore16(sum3_0, 0, sums + 3 * 32 + 0 * 16);
    vstore16(sum3_1, 0, sums + 3 * 32 + 1 * 16);
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

static void store_positions(__global float *dx, int position, const float *sums, float beta) {
    int h = position / 8;
    int w = position % 8;
    for (int i = 0; i < 32 && h < 7; ++h) {
        const int count = min(7 - w, 32 - i);
        if (count > 0) {
            store_run(dx, h * 7 + w, sums + i, count, beta);
        }
        i += 8 - w;
        w = 0;
    }
}

__kernel
void bwd_data_tile(
    __global float *scratch, long scratch_offset,
    __global float *dx, long dx_offset,
    float beta) {
    scratch += scratch_offset;
    dx += dx_offset;
    const int c_block = get_group_id(0) % 2;
    const int chunk = get_group_id(0) / 2 % 1;
    const long image = get_group_id(0) / 2 / 1;
    const int c = c_block * 4;
    const int channels = min(4, 5 - c);
    __global const half *plane = ((__global half *)(scratch + 0L)) + image * 3 * 80 + 18;
    __global const float *weights = scratch + 320 + (long)c_block * 3 * 36;
    dx += (image * 5 + c) * 7 * 7;
    float sums[4 * 32];
    const int end = min((chunk + 1) * 16, 2);
    for (int i = chunk * 16; i < end; ++i) {
        const int position = i * 32;
        multiply(plane + position, weights, sums);
        for (int j = 0; j < channels; ++j) {
            store_positions(dx + (long)j * 7 * 7, position, sums + j * 32, beta);
        }
    }
}
