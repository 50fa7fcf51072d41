/* Step 2: bwd_data_strip */

typedef struct {
    long n;
    long c;
    long h;
    long w;
    long p;
    long q;
    long dy_image;
    long dy_channel;
    long dy_row;
    long x_image;
    long x_channel;
    long x_row;
    long blocks;
    long strips;
    long bands;
    long band;
    long first_p;
    long end_p;
    long first_q;
    long pad_top;
} shape_t;

typedef struct {
    long n;
} call_t;

/*
 * Two fp16 numbers side by side in a word, from and to floats that fp16 holds
 * or is to round, to nearest even.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float2 word_floats(uint word)
{
    return vload_half2(0, (const half *)&word);
}

static uint floats_word(float2 v)
{
    uint word;
    vstore_half2_rte(v, 0, (half *)&word);
    return word;
}

static uint2 to_words4(float4 v) {
    return (uint2)(floats_word(v.lo), floats_word(v.hi));
}

static float4 to_floats4(uint2 v) {
    return (float4)(word_floats(v.x), word_floats(v.y));
}

static float4 clip_dy4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int4)(0x427fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits) * 0x1p10f;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static void tame_dy(float4 *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        most = fmax(most, fmax(fmax(fabs(v[j].x), fabs(v[j].y)), fmax(fabs(v[j].z), fabs(v[j].w))));
    if (most > as_float(0x427fe000)) {
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            v[j] = clip_dy4(v[j]);
        return;
    }
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        v[j] *= 0x1p10f;
}

static float4 fetch_dy(__global const float *p, long i) {
    return *(__global const float4 *)(p + i);
}

static void floats_dy(float4 *to, const float4 *from) {
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        to[j] = from[j];
    tame_dy(to);
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        to[j] = to_floats4(to_words4(to[j]));
}

static float4 clip_w4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static void tame_w(float4 *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        most = fmax(most, fmax(fmax(fabs(v[j].x), fabs(v[j].y)), fmax(fabs(v[j].z), fabs(v[j].w))));
    if (most > as_float(0x477fe000)) {
        #pragma unroll
        for (int j = 0; j < 9; ++j)
            v[j] = clip_w4(v[j]);
        return;
    }
}

static float4 fetch_w(__global const float *p, long i) {
    return *(__global const float4 *)(p + i);
}

static void floats_w(float4 *to, const float4 *from) {
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = from[j];
    tame_w(to);
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        to[j] = to_floats4(to_words4(to[j]));
}

static void row_dy(float4 *to, __global const float *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_dy(p, row + (first + j) * step);
    }
}

static void read_weights(float4 *weights, __global const float *w, long i) {
    float4 raw[9];
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        raw[j] = fetch_w(w, i + j * 4);
    floats_w(weights, raw);
    float rows[9 * 4];
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        vstore4(weights[j], j, rows);
    #pragma unroll
    for (int j = 0; j < 9; ++j)
        weights[j] = (float4)(rows[j], rows[9 + j], rows[2 * 9 + j], rows[3 * 9 + j]);
}

static float4 round_dx4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int4 power = clamp(as_int4(a) & 0x7f800000, (int4)(0x38800000), (int4)(0x47000000));
    float4 m = as_float4(power + 0x06800000);
    a = (a + m) - m;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

/*
 * What rounding did to elements of one tensor: a work-item's own sums, then
 * added to the report. Fields as in clconv_counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef struct {
    uint nonzero, zeroed, subnormal, saturated, nan, inf;
} counts_t;

/* Adds to a 64-bit count, two uints, low first. */
static void counts_add(volatile __global uint *count, uint amount)
{
    if (amount == 0)
        return;
    uint old = atomic_add(count, amount);
    if (old + amount < old)
        atomic_inc(count + 1);
}

/* No report, no work. */
static void counts_flush(volatile __global uint *counts, counts_t *tally)
{
    if (!counts)
        return;
    counts_add(counts, tally->nonzero);
    counts_add(counts + 2, tally->zeroed);
    counts_add(counts + 4, tally->subnormal);
    counts_add(counts + 6, tally->saturated);
    counts_add(counts + 8, tally->nan);
    counts_add(counts + 10, tally->inf);
}

/* Classes of an element as five-bit fields, so that one sum over a vector of
 * up to 16 elements counts all six: nonzero, zeroed, subnormal, saturated,
 * nan, inf from the lowest. */
static void counts_take(counts_t *tally, int classes)
{
    tally->nonzero += classes & 31;
    tally->zeroed += classes >> 5 & 31;
    tally->subnormal += classes >> 10 & 31;
    tally->saturated += classes >> 15 & 31;
    tally->nan += classes >> 20 & 31;
    tally->inf += classes >> 25 & 31;
}

static void count_dx4(counts_t *tally, float4 before, float4 after) {
    int4 b = as_int4(before) & 0x7fffffff;
    int4 a = as_int4(after) & 0x7fffffff;
    int4 is_nan = b > 0x7f800000;
    int4 is_inf = b == 0x7f800000;
    int4 nonzero = (b > 0) & (b <= 0x7f800000);
    int4 zeroed = nonzero & (a == 0);
    int4 subnormal = (a > 0) & (a < 0x38800000);
    int4 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int4 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int4 four = packed;
    int2 two = four.lo + four.hi;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx4(__global half *p, long i,
    float4 value, float beta, counts_t *tally) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half4(0, p + i);
    }
    float4 before = value;
    value = round_dx4(value);
    count_dx4(tally, before, value);
    vstore_half4(value, 0, p + i);
}

static float4 clip_dx4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static void tame_dx(float4 *v) {
    float most = 0.0f;
    #pragma unroll
    for (int j = 0; j < 2; ++j)
        most = fmax(most, fmax(fmax(fabs(v[j].x), fabs(v[j].y)), fmax(fabs(v[j].z), fabs(v[j].w))));
    if (most > as_float(0x477fe000)) {
        #pragma unroll
        for (int j = 0; j < 2; ++j)
            v[j] = clip_dx4(v[j]);
        return;
    }
}

static void keep(__global half *dx, long i, float4 *values, int count,
    int step) {
    #pragma unroll
    for (int j = 0; j < 2; ++j)
        values[j] *= 0x1p-10f;
    tame_dx(values);
    #pragma unroll
    for (int j = 0; j < 2; ++j)
        if (j < count)
            *(__global uint2 *)(dx + i + j * step) = to_words4(values[j]);
}

static void put_row(__global half *dx, long i, float4 *values, int count,
    int step, float beta, int plain, counts_t *tally) {
    if (plain) {
        keep(dx, i, values, count, step);
        return;
    }
    #pragma unroll 1
    for (int j = 0; j < min(count, 2); ++j) {
        store_dx4(dx, i + j * step, values[0], beta, tally);
        #pragma unroll
        for (int k = 1; k < 2; ++k)
            values[k - 1] = values[k];
    }
}

__kernel
void bwd_data_strip(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    __global uint *dx_counts, long dx_counts_offset,
    call_t call) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    const shape_t shape = {
        .n = call.n,
        .c = 16,
        .h = 7,
        .w = 17,
        .p = 7,
        .q = 17,
        .dy_image = 1904,
        .dy_channel = 1,
        .dy_row = 272,
        .x_image = 1904,
        .x_channel = 1,
        .x_row = 272,
        .blocks = 4,
        .strips = 9,
        .bands = 1,
        .band = 7,
        .first_p = 1,
        .end_p = 8,
        .first_q = -1,
        .pad_top = 1,
    };
    uint item = (uint)get_global_id(0);
    int block = (int)(item % (int)shape.blocks);
    item /= (int)shape.blocks;
    int strip = (int)(item % (int)shape.strips);
    item /= (int)shape.strips;
    int band = (int)(item % (int)shape.bands);
    item /= (int)shape.bands;
    if (item >= shape.n)
        return;
    const int c = block * 4;
    const int left = strip * 2;
    const int first_q = shape.first_q + strip * 2;
    const int first_p = shape.first_p + band * shape.band;
    const int end_p = min(first_p + (int)shape.band, (int)shape.end_p);
    const int stop = min(end_p, (int)shape.p);
    const int columns = shape.q;
    const long from = item * shape.dy_image + c * shape.dy_channel;
    const long to = item * shape.x_image + c * shape.x_channel + (long)left * (int)shape.c;
    const int plain = beta == 0.0f && !dx_counts;
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    float4 weights[9], sums[6];
    float4 next[4];
    read_weights(weights, w, (long)c * 9);
    int h, p = first_p - 2;
    float4 d[4];
    #pragma unroll
    for (int i = 0; i < 6; ++i)
        sums[0 + i] = 0.0f;
    row_dy(next, dy, from + (p) * shape.dy_row, (int)shape.c, first_q, p >= 0 && p < stop ? columns : 0);
    while (p < end_p) {
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[0] = d[0] * weights[2] + sums[0];
        sums[2] = d[0] * weights[5] + sums[2];
        sums[4] = d[0] * weights[8] + sums[4];
        sums[0] = d[1] * weights[1] + sums[0];
        sums[1] = d[1] * weights[2] + sums[1];
        sums[2] = d[1] * weights[4] + sums[2];
        sums[3] = d[1] * weights[5] + sums[3];
        sums[4] = d[1] * weights[7] + sums[4];
        sums[5] = d[1] * weights[8] + sums[5];
        sums[0] = d[2] * weights[0] + sums[0];
        sums[1] = d[2] * weights[1] + sums[1];
        sums[2] = d[2] * weights[3] + sums[2];
        sums[3] = d[2] * weights[4] + sums[3];
        sums[4] = d[2] * weights[6] + sums[4];
        sums[5] = d[2] * weights[7] + sums[5];
        sums[1] = d[3] * weights[0] + sums[1];
        sums[3] = d[3] * weights[3] + sums[3];
        sums[5] = d[3] * weights[6] + sums[5];
        h = p * 1 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = sums[0];
            values[1] = sums[1];
            put_row(dx, to + h * shape.x_row, values,
                (int)shape.w - left, (int)shape.c, beta, plain, &tally);
        }
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            sums[0 + i] = 0.0f;
        ++p;
        if (p == end_p)
            break;
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[2] = d[0] * weights[2] + sums[2];
        sums[4] = d[0] * weights[5] + sums[4];
        sums[0] = d[0] * weights[8] + sums[0];
        sums[2] = d[1] * weights[1] + sums[2];
        sums[3] = d[1] * weights[2] + sums[3];
        sums[4] = d[1] * weights[4] + sums[4];
        sums[5] = d[1] * weights[5] + sums[5];
        sums[0] = d[1] * weights[7] + sums[0];
        sums[1] = d[1] * weights[8] + sums[1];
        sums[2] = d[2] * weights[0] + sums[2];
        sums[3] = d[2] * weights[1] + sums[3];
        sums[4] = d[2] * weights[3] + sums[4];
        sums[5] = d[2] * weights[4] + sums[5];
        sums[0] = d[2] * weights[6] + sums[0];
        sums[1] = d[2] * weights[7] + sums[1];
        sums[3] = d[3] * weights[0] + sums[3];
        sums[5] = d[3] * weights[3] + sums[5];
        sums[1] = d[3] * weights[6] + sums[1];
        h = p * 1 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = sums[2];
            values[1] = sums[3];
            put_row(dx, to + h * shape.x_row, values,
                (int)shape.w - left, (int)shape.c, beta, plain, &tally);
        }
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            sums[2 + i] = 0.0f;
        ++p;
        if (p == end_p)
            break;
        floats_dy(d, next);
        row_dy(next, dy, from + (p + 1) * shape.dy_row, (int)shape.c, first_q, p + 1 >= 0 && p + 1 < stop ? columns : 0);
        sums[4] = d[0] * weights[2] + sums[4];
        sums[0] = d[0] * weights[5] + sums[0];
        sums[2] = d[0] * weights[8] + sums[2];
        sums[4] = d[1] * weights[1] + sums[4];
        sums[5] = d[1] * weights[2] + sums[5];
        sums[0] = d[1] * weights[4] + sums[0];
        sums[1] = d[1] * weights[5] + sums[1];
        sums[2] = d[1] * weights[7] + sums[2];
        sums[3] = d[1] * weights[8] + sums[3];
        sums[4] = d[2] * weights[0] + sums[4];
        sums[5] = d[2] * weights[1] + sums[5];
        sums[0] = d[2] * weights[3] + sums[0];
        sums[1] = d[2] * weights[4] + sums[1];
        sums[2] = d[2] * weights[6] + sums[2];
        sums[3] = d[2] * weights[7] + sums[3];
        sums[5] = d[3] * weights[0] + sums[5];
        sums[1] = d[3] * weights[3] + sums[1];
        sums[3] = d[3] * weights[6] + sums[3];
        h = p * 1 + 0 - (int)shape.pad_top;
        if (p >= first_p && h >= 0 && h < (int)shape.h) {
            float4 values[2];
            values[0] = sums[4];
            values[1] = sums[5];
            put_row(dx, to + h * shape.x_row, values,
                (int)shape.w - left, (int)shape.c, beta, plain, &tally);
        }
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            sums[4 + i] = 0.0f;
        ++p;
    }
    counts_flush(dx_counts, &tally);
}
