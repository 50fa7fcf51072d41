/* Step 2: bwd_data_grouped */

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
    long k;
    long r;
    long s;
    long stride_h;
    long dilation_h;
    long pad_top;
    long w_image;
    long w_channel;
    long w_tap;
    long strips;
    long first_q;
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

static float load_w(__global const half *p, long i) {
    return vload_half(i, p);
}

static uint2 fetch_dy(__global const half *p, long i) {
    return *(__global const uint2 *)(p + i);
}

static void floats_dy(float4 *to, const uint2 *from) {
    #pragma unroll
    for (int j = 0; j < 6; ++j)
        to[j] = to_floats4(from[j]);
}

static void row_dy(uint2 *to, __global const half *p, long row,
    int step, int first, int end) {
    #pragma unroll
    for (int j = 0; j < 6; ++j) {
        to[j] = 0;
        if ((uint)(first + j) < (uint)end)
            to[j] = fetch_dy(p, row + (first + j) * step);
    }
}

static void strip_dy(float4 *to, __global const half *p, long row,
    long channel, int step, int first, int end) {
    uint2 raw[6];
    row_dy(raw, p, row, step, first, end);
    floats_dy(to, raw);
}

static void stage_weights(__local float4 *weights, __global const half *w,
    int first_c, int id, shape_t shape) {
    for (int i = id; i < 288; i += 128) {
        const int c = first_c + i % 4 * 4;
        const int tap = i / 4 % 9;
        const long k = c / 8 * 8 + i / (4 * 9);
        const long at = k * shape.w_image + c % 8 * shape.w_channel + tap * shape.w_tap;
        weights[i] = (float4)(load_w(w, at), load_w(w, at + shape.w_channel),
            load_w(w, at + 2 * shape.w_channel), load_w(w, at + 3 * shape.w_channel));
    }
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
    for (int j = 0; j < 4; ++j)
        most = fmax(most, fmax(fmax(fabs(v[j].x), fabs(v[j].y)), fmax(fabs(v[j].z), fabs(v[j].w))));
    if (most > as_float(0x477fe000)) {
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            v[j] = clip_dx4(v[j]);
        return;
    }
}

static void keep(__global half *dx, long i, float4 *values, int count,
    int step) {
    tame_dx(values);
    #pragma unroll
    for (int j = 0; j < 4; ++j)
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
    for (int j = 0; j < min(count, 4); ++j) {
        store_dx4(dx, i + j * step, values[0], beta, tally);
        #pragma unroll
        for (int k = 1; k < 4; ++k)
            values[k - 1] = values[k];
    }
}

__kernel
void bwd_data_grouped(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
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
        .blocks = 1,
        .k = 16,
        .r = 3,
        .s = 3,
        .stride_h = 1,
        .dilation_h = 1,
        .pad_top = 1,
        .w_image = 72,
        .w_channel = 1,
        .w_tap = 8,
        .strips = 5,
        .first_q = -1,
    };
    __local float4 weights[288];
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    const int id = get_local_id(0);
    const int lane = id % 4, slot = id / 4;
    long group = get_group_id(0);
    const int first_c = group % shape.blocks * (4 * 4);
    const int c = first_c + lane * 4;
    const int first_k = c / 8 * 8;
    const int plain = beta == 0.0f && !dx_counts;
    stage_weights(weights, w, first_c, id, shape);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint strips = shape.strips, rows = shape.h;
    uint strip = group / shape.blocks * (32 * 4) + slot;
    float4 d[6], sums[4], weight;
    for (int turn = 0; turn < 4; ++turn, strip += 32) {
        const int across = strip % strips;
        const int left = across * 4;
        const int first_q = shape.first_q + across * 4;
        const int h = strip / strips % rows;
        const long n = strip / strips / rows;
        if (n >= shape.n)
            break;
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[i] = 0.0f;
        for (int r = 0; r < (int)shape.r; ++r) {
            const int up = h + (int)shape.pad_top - r * (int)shape.dilation_h;
            const int p = up / (int)shape.stride_h;
            if (up < 0 || p >= (int)shape.p || p * (int)shape.stride_h != up)
                continue;
            for (int k = 0; k < 8; k += 4) {
                __local const float4 *row = weights + (k * 9 + r * (int)shape.s) * 4 + lane;
                strip_dy(d, dy, n * shape.dy_image + (first_k + k) * shape.dy_channel + p * shape.dy_row,
                    shape.dy_channel, (int)shape.k, first_q, (int)shape.q);
                weight = row[0];
                sums[0] = d[2].s0 * weight + sums[0];
                sums[1] = d[3].s0 * weight + sums[1];
                sums[2] = d[4].s0 * weight + sums[2];
                sums[3] = d[5].s0 * weight + sums[3];
                weight = row[4];
                sums[0] = d[1].s0 * weight + sums[0];
                sums[1] = d[2].s0 * weight + sums[1];
                sums[2] = d[3].s0 * weight + sums[2];
                sums[3] = d[4].s0 * weight + sums[3];
                weight = row[8];
                sums[0] = d[0].s0 * weight + sums[0];
                sums[1] = d[1].s0 * weight + sums[1];
                sums[2] = d[2].s0 * weight + sums[2];
                sums[3] = d[3].s0 * weight + sums[3];
                weight = row[36];
                sums[0] = d[2].s1 * weight + sums[0];
                sums[1] = d[3].s1 * weight + sums[1];
                sums[2] = d[4].s1 * weight + sums[2];
                sums[3] = d[5].s1 * weight + sums[3];
                weight = row[40];
                sums[0] = d[1].s1 * weight + sums[0];
                sums[1] = d[2].s1 * weight + sums[1];
                sums[2] = d[3].s1 * weight + sums[2];
                sums[3] = d[4].s1 * weight + sums[3];
                weight = row[44];
                sums[0] = d[0].s1 * weight + sums[0];
                sums[1] = d[1].s1 * weight + sums[1];
                sums[2] = d[2].s1 * weight + sums[2];
                sums[3] = d[3].s1 * weight + sums[3];
                weight = row[72];
                sums[0] = d[2].s2 * weight + sums[0];
                sums[1] = d[3].s2 * weight + sums[1];
                sums[2] = d[4].s2 * weight + sums[2];
                sums[3] = d[5].s2 * weight + sums[3];
                weight = row[76];
                sums[0] = d[1].s2 * weight + sums[0];
                sums[1] = d[2].s2 * weight + sums[1];
                sums[2] = d[3].s2 * weight + sums[2];
                sums[3] = d[4].s2 * weight + sums[3];
                weight = row[80];
                sums[0] = d[0].s2 * weight + sums[0];
                sums[1] = d[1].s2 * weight + sums[1];
                sums[2] = d[2].s2 * weight + sums[2];
                sums[3] = d[3].s2 * weight + sums[3];
                weight = row[108];
                sums[0] = d[2].s3 * weight + sums[0];
                sums[1] = d[3].s3 * weight + sums[1];
                sums[2] = d[4].s3 * weight + sums[2];
                sums[3] = d[5].s3 * weight + sums[3];
                weight = row[112];
                sums[0] = d[1].s3 * weight + sums[0];
                sums[1] = d[2].s3 * weight + sums[1];
                sums[2] = d[3].s3 * weight + sums[2];
                sums[3] = d[4].s3 * weight + sums[3];
                weight = row[116];
                sums[0] = d[0].s3 * weight + sums[0];
                sums[1] = d[1].s3 * weight + sums[1];
                sums[2] = d[2].s3 * weight + sums[2];
                sums[3] = d[3].s3 * weight + sums[3];
            }
        }
        const long to = n * shape.x_image + c * shape.x_channel + h * shape.x_row + left * (int)shape.c;
        {
            float4 values[4];
            values[0] = sums[0];
            values[1] = sums[1];
            values[2] = sums[2];
            values[3] = sums[3];
            put_row(dx, to + 0 * shape.x_channel, values,
                (int)shape.w - left, (int)shape.c, beta, plain, &tally);
        }
    }
    counts_flush(dx_counts, &tally);
}
